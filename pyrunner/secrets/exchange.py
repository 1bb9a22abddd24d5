"""Requests to a provider, and their failures sorted by who must act.

All sources use the project's own HTTP client and no SDK of a cloud: each store needs one or two plain HTTPS requests.
An SDK is large for that (boto3, the one of AWS: 29 MB on disk, 0.2 s and 20 MB of memory until its first request), each
cloud would add one, and their waits do not end when the job is cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from pyrunner.api.dial import Timeouts
from pyrunner.api.errors import ClientError, RequestCancelledError, TransportError
from pyrunner.api.exchange import Response
from pyrunner.api.http import HttpClient
from pyrunner.api.retry import RetryPolicy
from pyrunner.api.tls import TlsFiles
from pyrunner.api.urls import clean_url, parse_target
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretOutageError

#: Seconds for one request with all its attempts.
TIMEOUT = 60.0
_TRIES = RetryPolicy(attempts=3, minimum=0.1, maximum=2.0)
_MASK = "[MASKED]"
_TEXT_LIMIT = 300
#: Short values would tear every message apart, and no token is that short.
_SHORTEST_HIDDEN = 8

Answer = TypeVar("Answer")
OpenClient = Callable[[str], HttpClient]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request; headers and body hold tokens, so `repr` leaves them out."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


def certified_client(url: str, tls: TlsFiles | None = None) -> HttpClient:
    """A client that trusts the system's pool, `tls` and ``<host>.crt`` in the runner's certificate directory."""
    timeouts = Timeouts(dial=10.0, header=30.0, total=TIMEOUT)
    return HttpClient.of_server(url, tls or TlsFiles(), retry=_TRIES, timeouts=timeouts)


def unproxied_client(url: str) -> HttpClient:
    """A client for services of the machine itself: they are never behind a proxy, and answer soon or never."""
    del url
    timeouts = Timeouts(dial=1.0, header=5.0, total=5.0)
    return HttpClient(retry=RetryPolicy(attempts=1), timeouts=timeouts, environment={})


class Caller:
    """Makes the requests of one source; used by one thread.

    Redirects are not followed: every request carries a token, which would go to whoever is named there.
    """

    def __init__(self, open_client: OpenClient = certified_client, *, timeout: float = TIMEOUT) -> None:
        self._open = open_client
        self._timeout = timeout
        self._clients: dict[tuple[str, str, int], HttpClient] = {}
        self._hidden: list[str] = []

    def hide(self, *values: str) -> None:
        """Never show `values` in a message, even if a server repeats them."""
        self._hidden += [value for value in values if len(value) >= _SHORTEST_HIDDEN]

    def call(self, request: Request, cancel: CancelToken) -> Response:
        """The answer to `request` with any status below 500 but 408 and 429.

        Raises:
            SecretOutageError: no answer, or one of a server in trouble.
            SecretConfigError: the URL cannot be used.
            BaseException: the cause of `cancel`.
        """
        limit = cancel.child(self._timeout, TimeoutError("timed out"))
        try:
            response = self._client(request.url).request(
                request.method,
                request.url,
                request.headers,
                request.body,
                follow_redirects=False,
                cancel=limit,
            )
        except RequestCancelledError:
            cancel.raise_if_cancelled()
            text = f"{request.method} {clean_url(request.url)}: no answer within {self._timeout:g} seconds"
            raise SecretOutageError(text) from None
        except ClientError as error:
            raise SecretConfigError(self._shown(str(error))) from None
        except TransportError as error:
            # without its cause: a decoding error carries the whole request along
            raise SecretOutageError(self._shown(str(error))) from None
        finally:
            limit.close()
        if response.status >= 500 or response.status in (408, 429):
            raise SecretOutageError(self.failure(response))
        return response

    def failure(self, response: Response) -> str:
        """``GET https://host/path: 403 Forbidden (permission denied)``"""
        text = f"{response.method} {clean_url(response.url)}: {response.status_line}"
        # the body of a good answer is the secret
        said = error_text(response.body) if response.status >= 300 else ""
        return self._shown(f"{text} ({said})" if said else text)

    def read(self, response: Response, kind: type[Answer]) -> Answer:
        """The JSON body of a good answer as a `kind`.

        Raises:
            SecretOutageError: it is something else: a proxy or a login page answered.
        """
        try:
            return msgspec.json.decode(response.body, type=kind)
        except msgspec.DecodeError as error:
            place = f"{response.method} {clean_url(response.url)}: {response.status_line}"
            reason = str(error) if isinstance(error, msgspec.ValidationError) else "it is not valid JSON"
            raise SecretOutageError(self._shown(f"{place}: the answer cannot be used: {reason}")) from None

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _client(self, url: str) -> HttpClient:
        origin = parse_target(url).origin
        client = self._clients.get(origin)
        if client is None:
            client = self._clients[origin] = self._open(url)
        return client

    def _shown(self, text: str) -> str:
        # the longest first: one token may begin another
        for value in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(value, _MASK)
        return text


def refuse(caller: Caller, response: Response, wrong_setting: tuple[int, ...]) -> SecretError:
    """The error for an answer that is not a 200; statuses in `wrong_setting` are the job's to mend."""
    kind = SecretConfigError if response.status in wrong_setting else SecretError
    return kind(caller.failure(response))


def error_text(body: bytes) -> str:
    """What an error body says, in one line: the forms of Vault, Google, Azure and AWS, JSON or XML."""
    try:
        content = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = (re.search(rb"<%s>([^<]*)</%s>" % (tag, tag), body[:65536]) for tag in (b"Code", b"Message"))
        return _one_line(": ".join(match.group(1).decode("utf-8", "replace") for match in found if match))
    if not isinstance(content, dict):
        return ""
    inner = content.get("error")
    if isinstance(inner, dict):
        content = inner
    lists = (content.get(name) for name in ("errors", "warnings"))
    texts = [str(text) for items in lists if isinstance(items, list) for text in items]
    names = ("__type", "error", "code", "status", "error_description", "message", "Message")
    texts += [text for name in names if isinstance(text := content.get(name), str)]
    return _one_line(": ".join(texts))


def _one_line(text: str) -> str:
    # Azure's second line on holds numbers for its support only
    line = text.strip().partition("\n")[0].partition("\r")[0][:_TEXT_LIMIT]
    return "".join(character if character.isprintable() else " " for character in line).strip()
