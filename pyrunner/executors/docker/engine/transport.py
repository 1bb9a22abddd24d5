"""HTTP to an engine: one kept connection for calls, one of its own for everything that streams.

Written on sockets because everything interesting is one: a stream must be polled beside a cancel, half-closed, and
broken off while the engine is still silent.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import urlencode

from pyrunner.api.answer import Answer, ProtocolError
from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.dial import dial
from pyrunner.executors.docker.engine.errors import EngineUnreachableError, refused
from pyrunner.executors.docker.engine.hijack import Hijacked

#: Newest API that we know; an older engine is spoken to in its own.
NEWEST_API = (1, 47)
#: Seconds for an answer. Creating and starting take long on a busy machine, never this long.
TIMEOUT = 300.0
#: Seconds for an answer that comes over time, such as a pull: no limit but the job's.
_LONG = 7 * 86400.0
_PIECE = 256 * 1024

Params = Mapping[str, Any]


class Transport:
    """A client with its own connections; to be used by one thread at a time. All methods raise `EngineError`."""

    def __init__(self, address: EngineAddress, timeout: float = TIMEOUT) -> None:
        self.address = address
        self._timeout = timeout
        self._kept: socket.socket | None = None
        #: Ours until the engine has told its own.
        self.version = "1.41"

    def call(self, method: str, path: str, *, params: Params | None = None, body: object = None) -> Any:
        """Send a request; the decoded JSON answer, or None when it has no body."""
        data = None if body is None else json.dumps(body).encode()
        content = self._whole(method, path, params, data)
        with _translated(self.address):
            return json.loads(content) if content else None

    def head(self, path: str, limit: int, *, params: Params | None = None) -> bytes:
        """Get the first `limit` bytes of an answer that may be of any size."""
        with _translated(self.address):
            sock = dial(self.address)
        with sock, _translated(self.address):
            answer = self._exchange(sock, "get", path, params, None)
            content = bytearray()
            for piece in answer.pieces(time.monotonic() + self._timeout):
                content += piece
                if len(content) >= limit:
                    break
            return bytes(content[:limit])

    def upload(self, path: str, body: IO[bytes], *, params: Params | None = None) -> list[dict[str, Any]]:
        """Post a file of any size; the JSON objects of the answer."""
        token = CancelToken()
        with self.stream(path, token, params=params, body=body) as progress:
            return list(progress)

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        token: CancelToken,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        body: IO[bytes] | None = None,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Post a request whose answer is a sequence of JSON objects, one per line, that come over time.

        Leave the block to end the request early. Request and sequence raise the cause of `token` when that is
        cancelled, however long the engine has been silent.
        """
        with _translated(self.address):
            sock = dial(self.address)
        detach = token.on_cancel(lambda: _break_off(sock))
        try:
            with self._cancellable(token):
                answer = self._exchange(sock, "post", path, params, body, headers, limit=_LONG)
            yield self._objects(answer, token)
        finally:
            detach()
            sock.close()

    def hijack(self, path: str, *, params: Params | None = None, body: object = None) -> Hijacked:
        """Send a request that turns its connection into a stream in both directions."""
        with _translated(self.address):
            sock = dial(self.address)
        try:
            with _translated(self.address):
                headers = {"Connection": "Upgrade", "Upgrade": "tcp"}
                data = None if body is None else json.dumps(body).encode()
                answer = self._exchange(sock, "post", path, params, data, headers)
        except BaseException:
            sock.close()
            raise
        sock.setblocking(False)
        return Hijacked(sock, answer.take_early(), sock.close)

    def close(self) -> None:
        """Close the kept connection; may be called twice."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _whole(self, method: str, path: str, params: Params | None, data: bytes | None) -> bytes:
        with _translated(self.address):
            sock, self._kept = self._connection(), None
        try:
            with _translated(self.address):
                answer = self._exchange(sock, method, path, params, data)
                content = b"".join(map(bytes, answer.pieces(time.monotonic() + self._timeout)))
            if answer.finished:
                self._kept = sock
        finally:
            if self._kept is None:
                sock.close()
        return content

    def _connection(self) -> socket.socket:
        kept, self._kept = self._kept, None
        if kept is not None:
            # readable without a request means: the engine has closed it
            if not select.select([kept], [], [], 0)[0]:
                return kept
            kept.close()
        return dial(self.address)

    def _exchange(
        self,
        sock: socket.socket,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | IO[bytes] | None,
        headers: Mapping[str, str] | None = None,
        limit: float = 0.0,
    ) -> Answer:
        if not path.isprintable() or " " in path:
            raise ValueError(f"not a path of a request: {path!r}")
        sock.settimeout(self._timeout)
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        lines = [f"{method.upper()} /v{self.version}{path}{query} HTTP/1.1", "Host: docker"]
        lines += [f"{name}: {value}" for name, value in {**_framing(body), **(headers or {})}.items()]
        _send(sock, "\r\n".join([*lines, "", ""]).encode("latin-1"), body)
        answer = Answer(sock)
        answer.read_head(method.upper(), limit or self._timeout)
        # 304: a container that shall start runs already, or one that shall stop does not run. Redirects are refused:
        # an engine has no reason to send any.
        if answer.status >= 300 and answer.status != 304:
            content = b"".join(map(bytes, answer.pieces(time.monotonic() + self._timeout)))
            raise refused(answer.status, _message(answer.status, content))
        return answer

    def _objects(self, answer: Answer, token: CancelToken) -> Iterator[dict[str, Any]]:
        rest = b""
        pieces = answer.pieces(time.monotonic() + _LONG)
        while True:
            with self._cancellable(token):
                piece = next(pieces, None)
                *lines, rest = (rest + piece).split(b"\n") if piece is not None else (rest, b"")
                told = [json.loads(line) for line in lines if line.strip()]
            yield from told
            if piece is None:
                return

    @contextlib.contextmanager
    def _cancellable(self, token: CancelToken) -> Iterator[None]:
        token.raise_if_cancelled()
        try:
            with _translated(self.address):
                yield
        finally:
            token.raise_if_cancelled()


def _framing(body: bytes | IO[bytes] | None) -> dict[str, str]:
    if body is None:
        return {"Content-Length": "0"}
    if isinstance(body, bytes):
        return {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return {"Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"}


def _send(sock: socket.socket, head: bytes, body: bytes | IO[bytes] | None) -> None:
    if body is None or isinstance(body, bytes):
        sock.sendall(head + (body or b""))
        return
    sock.sendall(head)
    while piece := body.read(_PIECE):
        sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
    sock.sendall(b"0\r\n\r\n")


def _break_off(sock: socket.socket) -> None:
    # closed already by whoever reads
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _translated(address: EngineAddress) -> Iterator[None]:
    """Turn errors of sockets and answers into ours."""
    try:
        yield
    except (OSError, ProtocolError, ValueError) as error:
        where = address.host or "the default address"
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EngineUnreachableError(f"cannot talk to the Docker engine at {where}: {cause}") from error


def _message(status: int, content: bytes) -> str:
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        message = content.decode("utf-8", "replace").strip()
    return str(message) or f"HTTP status {status}"
