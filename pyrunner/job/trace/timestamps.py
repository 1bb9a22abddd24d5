"""Timestamps before each line, and valid UTF-8 (facts/job-lifecycle.md 5.5, 5.7)."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable

#: An unterminated line longer than this becomes an entry of its own.
LONGEST_OPEN_LINE = 8192


class Stamper:
    """Prefixes each line of one stream with 32 bytes: time, stream, and whether it continues the entry before.

    `stream` is two hex digits and ``O`` or ``E``, e.g. ``01O``. All lines of one piece get the same time: one look at
    the clock and one replacement in C per piece. `clock` gives nanoseconds since the epoch.
    """

    def __init__(self, stream: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._stream = stream.encode()
        self._clock = clock
        self._second = -1
        self._date = ""
        self._line = b""
        self._continued = False

    def feed(self, data: bytes) -> bytes:
        """Complete entries after `data`; an open line stays until it ends, grows too long or holds a ``\\r``."""
        if not data:
            return b""
        cut = data.rfind(b"\n") + 1
        entries = b""
        if cut:
            head = self._head()
            body = self._line + data[: cut - 1] if self._line else data[: cut - 1]
            entries = b"%b%b%b\n" % (head, self._flag(), body.replace(b"\n", b"\n%b " % head))
            self._line = data[cut:]
            self._continued = False
        else:
            self._line += data
        # At the very end of a piece of lines it is likely half of a CRLF that the reader has cut.
        if len(self._line) > LONGEST_OPEN_LINE or b"\r" in (self._line[:-1] if cut else self._line):
            entries += self._close_line()
            self._continued = True
        return entries

    def flush(self) -> bytes:
        """The open line, terminated."""
        entry = self._close_line() if self._line else b""
        self._continued = False
        return entry

    def _close_line(self) -> bytes:
        line, self._line = self._line, b""
        return b"%b%b%b\n" % (self._head(), self._flag(), line)

    def _flag(self) -> bytes:
        return b"+" if self._continued else b" "

    def _head(self) -> bytes:
        second, rest = divmod(self._clock(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._date}.{rest // 1000:06d}Z ".encode() + self._stream


class Utf8Repair:
    """Replaces what is not UTF-8 with U+FFFD; holds back at most three bytes of an incomplete character."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Valid output after `data`."""
        buffer = self._held + data if self._held else data
        if buffer.isascii():
            self._held = b""
            return buffer
        try:
            _, used = codecs.utf_8_decode(buffer, "strict", False)
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(buffer, "replace", False)
            self._held = buffer[used:]
            return text.encode()
        self._held = buffer[used:]
        return buffer[:used] if self._held else buffer

    def flush(self) -> bytes:
        """What is left of an incomplete character."""
        rest, self._held = self._held, b""
        return rest.decode("utf-8", "replace").encode()
