"""One HTTP request to the engine, over the ``docker`` package's transports (unix socket, TCP, TLS, named pipe)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from typing import IO, Any

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import MissingExtraError
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.errors import EngineUnreachableError, refused
from pyrunner.executors.docker.engine.hijack import Hijacked

#: Newest API that we know; an older engine is spoken to in its own.
NEWEST_API = (1, 47)
#: Seconds without a byte from the engine. Creating and starting take long on a busy machine, never this long.
TIMEOUT = 300.0

Params = Mapping[str, Any]


class Transport:
    """A client with its own connections; to be used by one thread at a time."""

    def __init__(self, address: EngineAddress, timeout: float = TIMEOUT) -> None:
        self.address = address
        self._client = _client(address, timeout)
        #: Ours until the engine has told its own.
        self.version = "1.41"

    def call(self, method: str, path: str, *, params: Params | None = None, body: object = None) -> Any:
        """Send a request; the decoded JSON answer, or None when it has no body.

        Raises:
            EngineError: the engine refused or cannot be reached.
        """
        with _translated(self.address), self._request(method, path, params, body) as response:
            content = response.content
            return json.loads(content) if content else None

    def raw(self, method: str, path: str, *, params: Params | None = None) -> bytes:
        """Send a request; the answer as it is."""
        with _translated(self.address), self._request(method, path, params, None) as response:
            content: bytes = response.content
            return content

    @contextlib.contextmanager
    def stream(
        self, path: str, token: CancelToken, *, params: Params | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Post a request whose answer is a sequence of JSON objects that come over time.

        Leave the block to end the request early. The sequence raises the cause of `token` when that is cancelled,
        however long the engine has been silent.
        """
        with _translated(self.address):
            connection = self._connection()
        # Before the request: an engine that waits for somebody else sends not even a head.
        detach = token.on_cancel(lambda: _break_off(connection))
        try:
            with self._cancellable(token):
                response = self._request("post", path, params, None, headers=headers, stream=True)
            with response:
                yield self._objects(response, token)
        finally:
            detach()
            vars(connection).pop("connect", None)

    def upload(self, path: str, body: IO[bytes], *, params: Params | None = None) -> list[dict[str, Any]]:
        """Post a file of any size; the JSON objects of the answer."""
        with _translated(self.address), self._request("post", path, params, body) as response:
            return [json.loads(line) for line in response.content.splitlines() if line.strip()]

    def hijack(self, path: str, *, params: Params | None = None, body: object = None) -> Hijacked:
        """Send a request that turns its connection into a stream in both directions."""
        with _translated(self.address):
            headers = {"Connection": "Upgrade", "Upgrade": "tcp"}
            response = self._request("post", path, params, body, headers=headers, stream=True)
            reader = response.raw._fp.fp
            sock: socket.socket = reader.raw._sock
            sock.setblocking(False)
            # What came in one packet with the head is in the reader, where nobody would look for it.
            early: bytes = reader.read1(len(reader.peek())) if reader.peek() else b""
            return Hijacked(sock, early, response.close)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _objects(self, response: Any, token: CancelToken) -> Iterator[dict[str, Any]]:
        lines = response.iter_lines(chunk_size=None)
        while True:
            with self._cancellable(token):
                line = next(lines, None)
                told = json.loads(line) if line else {}
            if line is None:
                return
            if line:
                yield told

    @contextlib.contextmanager
    def _cancellable(self, token: CancelToken) -> Iterator[None]:
        try:
            with _translated(self.address):
                yield
        finally:
            token.raise_if_cancelled()

    def _connection(self) -> Any:
        """The connection that the next request will use: there is no way to ask for it, but it is the last one used."""
        response = self._request("get", "/_ping", None, None, stream=True)
        with response:
            connection = response.raw.connection
            response.raw.read()
        return connection

    def _request(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: object,
        *,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> Any:
        is_file = hasattr(body, "read")
        kind = "application/x-tar" if is_file else "application/json"
        sent = {"Content-Type": kind} if body is not None else {}
        response = self._client.request(
            method.upper(),
            f"{self._client.base_url}/v{self.version}{path}",
            params=params,
            data=body if body is None or is_file else json.dumps(body),
            headers={**sent, **(headers or {})},
            timeout=self._client.timeout,
            stream=stream,
            # GitLab Runner refuses redirects, too: an engine has no reason to send any.
            allow_redirects=False,
        )
        # 304: a container that shall start runs already, or one that shall stop does not run.
        if response.status_code >= 300 and response.status_code != 304:
            with response:
                raise refused(response.status_code, _message(response))
        return response


def _client(address: EngineAddress, timeout: float) -> Any:
    try:
        import docker
    except ImportError as error:
        raise MissingExtraError("the docker executor", "docker") from error
    with _translated(address):
        tls: Any = False
        if address.tls_directory:
            directory = address.tls_directory
            tls = docker.tls.TLSConfig(
                client_cert=(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")),
                ca_cert=os.path.join(directory, "ca.pem"),
                verify=address.tls_verify,
            )
        client = docker.APIClient(base_url=address.host or None, version="1.41", timeout=timeout, tls=tls)
        # A proxy of the environment is for registries and servers, never for a local engine.
        client.trust_env = False
        return client


@contextlib.contextmanager
def _translated(address: EngineAddress) -> Iterator[None]:
    """Turn the errors of the libraries below into ours."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (RequestException, HTTPError, DockerException, OSError, ValueError) as error:
        where = address.host or "the default address"
        raise EngineUnreachableError(f"cannot talk to the Docker engine at {where}: {_cause(error)}") from error


def _break_off(connection: Any) -> None:
    """Whoever reads from the connection gets an end, whoever is just about to use it an error."""

    def refuse() -> None:
        raise ConnectionAbortedError("broken off")

    connection.connect = refuse
    sock = connection.sock
    # closed: whoever reads has noticed already
    with contextlib.suppress(OSError):
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)


def _cause(error: BaseException) -> str:
    """The innermost reason: the libraries wrap it four times, each with all that is inside."""
    seen: BaseException = error
    while (inner := seen.__cause__ or seen.__context__) is not None:
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    return str(seen) or type(seen).__name__


def _message(response: Any) -> str:
    try:
        message = response.json()["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text.strip()
    return str(message) or f"HTTP status {response.status_code}"
