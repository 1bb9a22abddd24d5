"""Reading one HTTP/1.1 answer from a socket.

The standard library's reader takes an answer whose head was cut off for a complete one, and costs 20 ms of imports and
most of the CPU of a poll. This one is strict about ends and knows nothing but HTTP/1.1: status line, headers, and a
body by length, by chunks or to the end of the connection.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_HEAD_LIMIT = 256 * 1024
_LINE_LIMIT = 16 * 1024
_RECEIVE = 64 * 1024
_PIECE = 1024 * 1024


class ProtocolError(Exception):
    """What came is not HTTP."""


class CutShortError(ConnectionError):
    """The connection ended in the middle of an answer, or before it."""


class Answer:
    """One answer: call `read_head`, then exhaust `pieces`.

    Attributes:
        received: whether any byte arrived.
        finished: whether the body was read to its end and the connection can be used again.
    """

    __slots__ = (
        "_body", "_buffer", "_deadline", "_keep", "_left", "_sock",
        "finished", "headers", "reason", "received", "status",
    )  # fmt: skip

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._deadline = 0.0
        self._keep = False
        #: ``length``, ``chunked``, ``close``; bytes that are left of the body or the chunk.
        self._body = "length"
        self._left = 0
        self.received = False
        self.finished = False
        self.status = 0
        self.reason = ""
        #: By lower-case name; several of one name are joined with commas.
        self.headers: dict[str, str] = {}

    def read_head(self, method: str, timeout: float) -> None:
        """Read status and headers, all of them within `timeout` seconds.

        Raises:
            ProtocolError, CutShortError, TimeoutError: there is no (whole) head.
        """
        self._deadline = time.monotonic() + timeout
        while True:
            head = self._take_head()
            self._parse_head(head)
            # interim answers (100, 102, 103) come before the real one; behind 101 comes no HTTP any more
            if self.status >= 200 or self.status == 101:
                break
        self._frame(method)

    def _take_head(self) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\r\n\r\n", searched)) < 0:
            searched = max(0, len(self._buffer) - 3)
            if len(self._buffer) > _HEAD_LIMIT:
                raise ProtocolError("the headers of the answer are too long")
            self._fill()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    def _parse_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code, _, reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or len(code) != 3 or not (code.isascii() and code.isdigit()):
            raise ProtocolError(f"the answer is not HTTP/1.1: {first[:60]!r}")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise ProtocolError(f"a header of the answer is malformed: {line[:60]!r}")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self.status, self.reason, self.headers = int(code), reason.strip(), headers
        self._keep = version != "HTTP/1.0" or "keep-alive" in headers.get("connection", "").lower()

    def _frame(self, method: str) -> None:
        length, coding = self.headers.get("content-length"), self.headers.get("transfer-encoding")
        self._keep = self._keep and "close" not in self.headers.get("connection", "").lower()
        if method == "HEAD" or self.status in (101, 204, 304):
            return
        if coding is not None:
            if coding.lower() != "chunked":
                raise ProtocolError(f"cannot read the transfer encoding {coding[:60]!r}")
            self._body = "chunked"
            # both headers at once is how requests are smuggled: nothing may follow on this connection
            self._keep = self._keep and length is None
        elif length is None:
            self._body, self._keep = "close", False
        else:
            # proxies may repeat the header; all copies must agree
            values = {value.strip() for value in length.split(",")}
            text = values.pop()
            if values or not (text.isascii() and text.isdigit()):
                raise ProtocolError(f"cannot read the content length {length[:60]!r}")
            self._left = int(text[:18])

    def pieces(self, deadline: float) -> Iterator[memoryview]:
        """The body in pieces of up to 1 MiB; each is only valid until the next one is asked for.

        Raises:
            ProtocolError, CutShortError, TimeoutError: the body did not arrive before `deadline` (monotonic).
        """
        self._deadline = deadline
        if self._body == "chunked":
            yield from self._chunks()
        elif self._body == "close":
            yield from self._rest()
        elif self._left:
            yield from self._counted(memoryview(bytearray(min(_PIECE, self._left))))
        self.finished = self._keep and not self._buffer

    def take_early(self) -> bytes:
        """What was read of the stream behind the head of an upgraded connection."""
        early = bytes(self._buffer)
        self._buffer.clear()
        return early

    def _chunks(self) -> Iterator[memoryview]:
        view = memoryview(bytearray(_PIECE))
        while True:
            text = self._line().partition(b";")[0].strip()
            try:
                self._left = int(text, 16) if text.isalnum() and len(text) < 16 else -1
            except ValueError:
                self._left = -1
            if self._left < 0:
                raise ProtocolError(f"cannot read the chunk size {text[:60]!r}")
            if self._left == 0:
                break
            yield from self._counted(view)
            if self._line():
                raise ProtocolError("a chunk of the answer is longer than it says")
        while self._line():
            """Trailers mean nothing to us."""

    def _counted(self, view: memoryview) -> Iterator[memoryview]:
        while self._left:
            size = self._read_into(view[: self._left] if self._left < len(view) else view)
            self._left -= size
            yield view[:size]

    def _rest(self) -> Iterator[memoryview]:
        view = memoryview(bytearray(_PIECE))
        while True:
            try:
                size = self._read_into(view)
            except CutShortError:
                return
            yield view[:size]

    def _read_into(self, view: memoryview) -> int:
        """Fill at least the first byte of `view`: what was read ahead goes first."""
        if self._buffer:
            size = min(len(view), len(self._buffer))
            view[:size] = self._buffer[:size]
            del self._buffer[:size]
            return size
        self._set_timeout()
        size = self._sock.recv_into(view)
        if not size:
            raise CutShortError("the answer was cut short")
        return size

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LINE_LIMIT:
                raise ProtocolError("a line of the answer is too long")
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r")

    def _fill(self) -> None:
        self._set_timeout()
        data = self._sock.recv(_RECEIVE)
        if not data:
            raise CutShortError("the answer was cut short" if self.received else "the server gave no answer")
        self.received = True
        self._buffer += data

    def _set_timeout(self) -> None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(remaining)
