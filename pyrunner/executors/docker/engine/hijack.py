"""A container's stdin and output on one socket: frames split in large chunks, one poll for everything."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.process import Wake

_CHUNK = 1024 * 1024
_HEADER = 8
#: A script that writes little at a time is read only so often, seconds.
_COALESCE = 0.01
_COALESCE_BELOW = 16 * 1024
#: So many small reads in a row make a chatty script; the last words of a stage are not held back.
_CHATTY = 3


class Ended(Enum):
    """Why `Hijacked.pump` came back."""

    #: The engine closed the stream: everything has been passed on.
    CLOSED = auto()
    CANCELLED = auto()
    #: Nothing came for as long as the caller wanted to wait.
    IDLE = auto()
    #: The caller has seen what it waited for.
    ENOUGH = auto()


class Demultiplexer:
    """Takes the engine's frames (8 bytes of head: stream, 0, 0, 0, length) apart; stdout and stderr stay in order."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """The payload in the next piece of the stream."""
        if self._left >= len(data):
            # the usual case of a flood: the piece lies within one frame
            self._left -= len(data)
            return data
        parts: list[bytes] = []
        position = 0
        while position < len(data):
            if self._left:
                part = data[position : position + self._left]
                parts.append(part)
                position += len(part)
                self._left -= len(part)
                continue
            missing = _HEADER - len(self._head)
            self._head += data[position : position + missing]
            position += missing
            if len(self._head) == _HEADER:
                self._left = int.from_bytes(self._head[4:], "big")
                self._head = b""
        return b"".join(parts)


@dataclass(kw_only=True)
class _Pace:
    small: int = 0

    def after(self, size: int) -> float:
        """Seconds to leave the stream alone after a read of `size` bytes."""
        self.small = self.small + 1 if size < _COALESCE_BELOW else 0
        return _COALESCE if self.small > _CHATTY else 0.0


class Hijacked:
    """One attached stream; used by one thread, closed by it. `close` may be called twice."""

    def __init__(self, sock: socket.socket, early: bytes, close: Callable[[], object]) -> None:
        self._sock = sock
        self._close = close
        self._early = early
        self._frames = Demultiplexer()
        self._pace = _Pace()
        self._unsent = memoryview(b"")
        self._half_close = False

    def send(self, data: bytes) -> None:
        """What `pump` shall write to the container's stdin, which is closed behind it."""
        self._unsent = memoryview(data)
        self._half_close = True

    def pump(
        self,
        sink: Callable[[bytes], object],
        token: CancelToken,
        *,
        idle: float | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> Ended:
        """Pass output to `sink` and write what `send` has left, until the stream ends, `token` is cancelled, nothing
        came for `idle` seconds, or `enough` says so after a piece of output.

        Raises:
            OSError: the connection broke.
        """
        if self._early:
            sink(self._frames.feed(self._early))
            self._early = b""
            if enough():
                return Ended.ENOUGH
        wake = Wake()
        detach = token.on_cancel(wake.set)
        try:
            return self._loop(sink, token, wake, idle, enough)
        finally:
            detach()
            wake.close()

    def close(self) -> None:
        """Release the connection."""
        self._close()

    def _loop(
        self,
        sink: Callable[[bytes], object],
        token: CancelToken,
        wake: Wake,
        idle: float | None,
        enough: Callable[[], bool],
    ) -> Ended:
        poller = select.poll()
        poller.register(wake.fileno(), select.POLLIN)
        poller.register(self._sock.fileno(), select.POLLIN)
        quiet_since = time.monotonic()
        while True:
            if token.cancelled:
                return Ended.CANCELLED
            self._write(poller)
            size = self._read(sink)
            if size == 0:
                return Ended.CLOSED
            if size > 0:
                if enough():
                    return Ended.ENOUGH
                quiet_since = time.monotonic()
                if pause := self._pace.after(size):
                    token.wait(pause)
                continue
            left = None if idle is None else idle - (time.monotonic() - quiet_since)
            if left is not None and left <= 0:
                return Ended.IDLE
            poller.poll(None if left is None else int(left * 1000) + 1)

    def _read(self, sink: Callable[[bytes], object]) -> int:
        """Bytes read: 0 at the end, -1 when there is nothing now."""
        try:
            data = self._sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return -1
        if payload := self._frames.feed(data):
            sink(payload)
        return len(data)

    def _write(self, poller: select.poll) -> None:
        if self._unsent:
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
            events = select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN
            poller.modify(self._sock.fileno(), events)
        if self._half_close and not self._unsent:
            self._half_close = False
            # TLS has no half-closed state in Python; scripts end by `exit`, they do not need the end of their input.
            if not isinstance(self._sock, ssl.SSLSocket):
                self._sock.shutdown(socket.SHUT_WR)
