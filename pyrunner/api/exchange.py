"""One request and its answer on one connection."""

from __future__ import annotations

import time
import zlib

from pyrunner.api.answer import Answer, ProtocolError
from pyrunner.api.dial import Timeouts, basic, dial, proxy_authorization
from pyrunner.api.errors import RequestCancelledError, TransportError, describe
from pyrunner.api.pool import Connection, Pool, route_of
from pyrunner.api.urls import clean_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

    from pyrunner.api.urls import Target
    from pyrunner.base.cancel import CancelToken

    Piece = bytes | bytearray | memoryview
    Body = Piece | Callable[[], Iterable[Piece]] | None

    class Sink(Protocol):
        """Takes a downloaded body: a binary file opened for writing."""

        def write(self, data: Piece, /) -> object: ...
        def seek(self, offset: int, /) -> int: ...
        def tell(self) -> int: ...
        def truncate(self) -> int: ...


#: The largest body that is kept in memory: far above any job payload, far below what would hurt.
BODY_LIMIT = 64 * 1024 * 1024
_PIECE = 1024 * 1024
_SMALL = 16 * 1024


class Outgoing:
    """One request to be sent."""

    __slots__ = ("body", "cancel", "headers", "method", "sink", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body,
        sink: Sink | None,
        cancel: CancelToken | None,
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.sink = sink
        self.cancel = cancel


class Response:
    """An answer whose body was read."""

    __slots__ = ("_headers", "_sent_id", "attempts", "body", "chain", "method", "reason", "retried", "status", "url")

    def __init__(self, outgoing: Outgoing, answer: Answer) -> None:
        self.method = outgoing.method
        #: Where the answer came from, after redirects.
        self.url = outgoing.url
        self.status = answer.status
        self.reason = answer.reason
        self.body = b""
        #: How many times the request was made, and whether any attempt met a retriable status.
        self.attempts = 1
        self.retried = False
        #: PEM of the verified chain of a TLS connection; only filled for a 201.
        self.chain = ""
        self._headers = answer.headers
        self._sent_id = outgoing.headers.get("X-Request-Id", "")

    def header(self, name: str) -> str:
        """Value of a header, empty when missing."""
        return self._headers.get(name.lower(), "")

    def headers(self) -> list[tuple[str, str]]:
        """All headers in their order."""
        return list(self._headers.items())

    @property
    def correlation_id(self) -> str:
        """``X-Request-Id`` of the answer, else the one that was sent."""
        return self.header("X-Request-Id") or self._sent_id

    @property
    def is_json(self) -> bool:
        """Whether the body claims to be JSON."""
        return self.header("Content-Type").partition(";")[0].strip().lower() == "application/json"

    @property
    def status_line(self) -> str:
        """``403 Forbidden``"""
        return f"{self.status} {self.reason}".rstrip()


class Exchange:
    """Sends requests over the connections of a pool. Safe from any thread."""

    def __init__(self, pool: Pool, timeouts: Timeouts, context: Callable[[], ssl.SSLContext]) -> None:
        self.pool = pool
        self._timeouts = timeouts
        self._context = context

    def run(self, outgoing: Outgoing, target: Target, proxy: Target | None) -> Response:
        """Send `outgoing` to `target` and read the answer.

        A kept connection may be closed by the server at the very moment it is used again. When it was, and not one byte
        of an answer arrived, the request is made once more on a new connection.

        Raises:
            TransportError: no (complete) answer.
        """
        connection = self.pool.take(route_of(target, proxy))
        if connection is not None:
            try:
                return self._guarded(connection, outgoing, target, proxy)
            except TransportError as error:
                stale = isinstance(error.__cause__, ConnectionError) and not error.received
                if not stale or isinstance(error, RequestCancelledError):
                    raise
        return self._guarded(Connection(route_of(target, proxy)), outgoing, target, proxy)

    def _guarded(self, connection: Connection, outgoing: Outgoing, target: Target, proxy: Target | None) -> Response:
        cancel = outgoing.cancel
        place = f"{outgoing.method} {clean_url(outgoing.url)}"
        forget = cancel.on_cancel(connection.abort) if cancel else None
        answer: Answer | None = None
        try:
            if cancel is not None:
                cancel.raise_if_cancelled()
            deadline = time.monotonic() + self._timeouts.total
            sock = connection.sock or dial(target, proxy, self._context, self._timeouts, connection.watch)
            connection.watch(sock)
            answer = Answer(sock)
            sent = _send(connection, sock, _head(outgoing, target, proxy), outgoing, self._timeouts.header, deadline)
            answer.read_head(outgoing.method, self._timeouts.header)
            response = _read(answer, outgoing, sock, deadline)
        except (OSError, ProtocolError, zlib.error, ValueError, TransportError) as error:
            connection.close()
            if cancel is not None and cancel.cancelled:
                raise RequestCancelledError(f"{place}: cancelled") from cancel.cause
            received = answer is not None and answer.received
            raise TransportError(f"{place}: {describe(error)}", received=received) from error
        except BaseException as error:
            connection.close()
            if cancel is not None and error is cancel.cause:
                raise RequestCancelledError(f"{place}: cancelled") from error
            raise
        finally:
            if forget is not None:
                forget()
        # an aborted connection may look whole here: its last bytes had arrived before
        if sent and answer.finished and not (cancel and cancel.cancelled):
            self.pool.give_back(connection)
        else:
            connection.close()
        return response


def _head(outgoing: Outgoing, target: Target, proxy: Target | None) -> bytes:
    path, extra = target.path, ""
    if proxy is not None and target.scheme == "http":
        path, extra = f"http://{target.authority}{target.path}", proxy_authorization(proxy)
    if target.userinfo and "Authorization" not in outgoing.headers:
        extra += f"Authorization: {basic(target.userinfo)}\r\n"
    body = outgoing.body
    if callable(body):
        extra += "" if _has_length(outgoing) else "Transfer-Encoding: chunked\r\n"
    elif body is not None or outgoing.method in ("POST", "PUT", "PATCH"):
        extra += f"Content-Length: {len(body or b'')}\r\n"
    lines = "".join([f"{name}: {value}\r\n" for name, value in outgoing.headers.items()])
    if lines.count("\n") != len(outgoing.headers) or lines.count("\r") != len(outgoing.headers):
        raise ValueError("a header value holds a line break")
    return f"{outgoing.method} {path} HTTP/1.1\r\nHost: {target.authority}\r\n{lines}{extra}\r\n".encode("latin-1")


def _has_length(outgoing: Outgoing) -> bool:
    """Whether the caller knows how long its pieces are together: object storage takes no chunked uploads."""
    return "Content-Length" in outgoing.headers


def _send(
    connection: Connection, sock: socket.socket, head: bytes, outgoing: Outgoing, timeout: float, deadline: float
) -> bool:
    """Send everything; False when the server answered (or hung up) before the end of the body."""
    body = outgoing.body
    sock.settimeout(timeout)
    if callable(body):
        return _send_pieces(connection, sock, head, _in_time(body(), deadline), chunked=not _has_length(outgoing))
    if body is None or len(body) <= _SMALL:
        sock.sendall(head + body if body else head)
        return True
    sock.sendall(head)
    try:
        sock.sendall(body)
    except ConnectionError:
        # the answer may have come before the whole body was wanted: 413, 403
        if not connection.readable():
            raise
        return False
    return True


def _in_time(pieces: Iterable[Piece], deadline: float) -> Iterable[Piece]:
    for piece in pieces:
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
        yield piece


def _send_pieces(
    connection: Connection, sock: socket.socket, head: bytes, pieces: Iterable[Piece], *, chunked: bool
) -> bool:
    secure = hasattr(sock, "do_handshake")
    sock.sendall(head)
    end = b""
    for piece in pieces:
        # an empty chunk would end the body
        if not len(piece):
            continue
        # over TLS a waiting byte may be a session ticket, so only a failed send tells there
        if not secure and connection.readable():
            return False
        try:
            if chunked:
                sock.sendall(end + b"%x\r\n" % len(piece))
            sock.sendall(piece)
        except ConnectionError:
            if not connection.readable():
                raise
            return False
        end = b"\r\n"
    if chunked:
        sock.sendall(end + b"0\r\n\r\n")
    return True


def _read(answer: Answer, outgoing: Outgoing, sock: socket.socket, deadline: float) -> Response:
    response = Response(outgoing, answer)
    if outgoing.sink is not None and answer.status in (200, 206):
        _copy(answer, outgoing.sink, deadline)
    else:
        response.body = _collect(answer, deadline)
    if answer.status == 201 and hasattr(sock, "do_handshake"):
        from pyrunner.api.tls import verified_chain

        response.chain = verified_chain(sock)  # type: ignore[arg-type] # only TLS sockets shake hands
    return response


def _pieces(answer: Answer, deadline: float) -> Iterable[Piece]:
    """The decoded body; a piece is only valid until the next one is asked for."""
    if answer.headers.get("content-encoding", "").lower() != "gzip":
        yield from answer.pieces(deadline)
        return
    gzip = zlib.decompressobj(31)
    for piece in answer.pieces(deadline):
        waiting: Piece = piece
        while waiting:
            yield gzip.decompress(waiting, _PIECE)
            waiting = gzip.unconsumed_tail
    if answer.received and not gzip.eof:
        raise ProtocolError("the answer was cut short")


def _collect(answer: Answer, deadline: float) -> bytes:
    body = bytearray()
    for piece in _pieces(answer, deadline):
        body += piece
        if len(body) > BODY_LIMIT:
            raise ProtocolError(f"the answer is larger than {BODY_LIMIT} bytes")
    return bytes(body)


def _copy(answer: Answer, sink: Sink, deadline: float) -> None:
    start = sink.tell()
    try:
        for piece in _pieces(answer, deadline):
            sink.write(piece)
    except BaseException:
        sink.seek(start)
        sink.truncate()
        raise
