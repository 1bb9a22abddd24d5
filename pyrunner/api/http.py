"""A small blocking HTTP/1.1 client over sockets and the standard library's answer parser.

It exists because a poll must cost little (0.1 ms of CPU), because an open long poll must end the moment its token is
cancelled, and because helper commands cannot afford to import a big client. It keeps connections alive, verifies TLS,
goes through proxies, follows redirects, reads gzip, streams both ways, and repeats as facts/runner-api.md 1.5 says.
"""

from __future__ import annotations

import os
import time

from pyrunner.api.dial import Timeouts
from pyrunner.api.errors import RequestCancelledError, TransportError
from pyrunner.api.exchange import Exchange, Outgoing, Response
from pyrunner.api.pool import Pool
from pyrunner.api.proxy import Proxies
from pyrunner.api.retry import RetryPolicy, is_retriable
from pyrunner.api.tls import TlsFiles, contexts
from pyrunner.api.urls import api_base, clean_url, is_same_server, parse_target, redirected
from pyrunner.base.host import user_agent
from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from pyrunner.api.exchange import Body, Sink
    from pyrunner.base.cancel import CancelToken

log = Log(__name__)

_MAX_REDIRECTS = 10
_SECRET_HEADERS = frozenset(("job-token", "runner-token", "private-token", "authorization"))


class HttpClient:
    """Requests to one server. Safe from any thread; every thread gets a connection of its own.

    Args:
        tls: CA file and client pair; changed files are noticed before the next request.
        connection_max_age: see `Pool`.
        environment: where proxies are read from.
    """

    def __init__(
        self,
        tls: TlsFiles | None = None,
        *,
        connection_max_age: float = 900.0,
        retry: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.tls = tls or TlsFiles()
        self._stamp = self.tls.stamp()
        self._retry = retry or RetryPolicy()
        self._proxies = Proxies(environment)
        self._exchange = Exchange(Pool(max_age=connection_max_age), timeouts or Timeouts(), self._context)
        self._agent = user_agent()

    @classmethod
    def of_server(
        cls,
        url: str,
        tls: TlsFiles,
        *,
        connection_max_age: float = 900.0,
        retry: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
    ) -> HttpClient:
        """A client for the server at `url`; material that `tls` lacks is looked for in the certificate directory.

        Raises:
            ClientError: the URL cannot be used.
        """
        files = tls.completed(parse_target(api_base(url)).host)
        return cls(files, connection_max_age=connection_max_age, retry=retry, timeouts=timeouts)

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Body = None,
        *,
        sink: Sink | None = None,
        follow_redirects: bool = True,
        cancel: CancelToken | None = None,
    ) -> Response:
        """Send a request and return the answer, whatever its status; retriable ones only after all attempts.

        Args:
            body: bytes-like, or a function that makes the pieces of an upload, called for each attempt; they are sent
                chunked unless `headers` says how long they are together (``Content-Length``).
            sink: takes the body of a 200 or 206 answer instead of `Response.body`; its position is restored when a
                transfer starts over.
            cancel: ends the request at once, whatever it waits for.

        Raises:
            ClientError: the URL or the proxy cannot be used.
            TransportError: there is no answer.
            RequestCancelledError: `cancel` was cancelled.
        """
        sent = {"User-Agent": self._agent, "Accept-Encoding": "gzip", "X-Request-Id": _correlation_id()}
        sent |= headers or {}
        outgoing = Outgoing(method, url, sent, body, sink, cancel)
        self._notice_rotation()
        for attempt in range(1, self._retry.attempts + 1):
            response = self._follow(outgoing) if follow_redirects else self._send(outgoing)
            response.attempts = attempt
            response.retried = attempt > 1 or is_retriable(response.status)
            if not is_retriable(response.status) or attempt == self._retry.attempts:
                break
            self._pause(outgoing, self._retry.delay(attempt, response.header))
        return response

    def close(self) -> None:
        """Close idle connections."""
        self._exchange.pool.close()

    def _send(self, outgoing: Outgoing) -> Response:
        target = parse_target(outgoing.url)
        return self._exchange.run(outgoing, target, self._proxies.of(target))

    def _follow(self, outgoing: Outgoing) -> Response:
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._send(outgoing)
            location = response.header("Location")
            if response.status not in (301, 302, 303, 307, 308) or not location:
                return response
            outgoing = _redirect(outgoing, response.status, redirected(outgoing.url, location))
        raise TransportError(
            f"{outgoing.method} {clean_url(outgoing.url)}: stopped after {_MAX_REDIRECTS} redirects", received=True
        )

    def _pause(self, outgoing: Outgoing, seconds: float) -> None:
        log.info(
            "Waiting before making the next call",
            extra={
                "action": "api_retry",
                "duration": f"{seconds:.3f}s",
                "url": clean_url(outgoing.url),
                "method": outgoing.method,
                "context": "ratelimit-requester-gitlab-request",
            },
        )
        if outgoing.cancel is None:
            time.sleep(seconds)
        elif outgoing.cancel.wait(seconds):
            raise RequestCancelledError(f"{outgoing.method} {clean_url(outgoing.url)}: cancelled") from (
                outgoing.cancel.cause
            )

    def _context(self) -> ssl.SSLContext:
        return contexts.get(self.tls)

    def _notice_rotation(self) -> None:
        stamp = self.tls.stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self._exchange.pool.close()


def _redirect(outgoing: Outgoing, status: int, url: str) -> Outgoing:
    """The request that follows a redirect; tokens never go to another server."""
    before, after = parse_target(outgoing.url), parse_target(url)
    headers, method, body = outgoing.headers, outgoing.method, outgoing.body
    if not is_same_server(before, after):
        headers = {name: value for name, value in headers.items() if name.lower() not in _SECRET_HEADERS}
    if status not in (307, 308) and method not in ("GET", "HEAD"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    return Outgoing(method, url, headers, body, outgoing.sink, outgoing.cancel)


def _correlation_id() -> str:
    """A random UUID (version 4) without its dashes."""
    digits = os.urandom(16).hex()
    return f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) & 3]}{digits[17:]}"
