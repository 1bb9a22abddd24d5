"""Lines by which a job masks a value itself: ``::add-mask::VALUE``."""

from __future__ import annotations

from dataclasses import dataclass

from pyrunner.job.trace.phrases import MASK
from pyrunner.job.trace.search import Search

MARKER = b"::add-mask::"
#: A value, bytes; what a line has beyond it is hidden with the line, but not looked for.
LONGEST_VALUE = 16 * 1024
#: Values that one job may add, and their bytes in all: the job pays neither for the search nor for its memory.
MAXIMUM_VALUES = 500
MAXIMUM_BYTES = 64 * 1024

_REFUSED = b" (not masked elsewhere: the job has added too many)"
_search = Search([MARKER])
#: What stands for characters that a value of one line cannot have.
_ESCAPES = ((b"%0D", b"\r"), (b"%0A", b"\n"), (b"%25", b"%"))


@dataclass(frozen=True, kw_only=True)
class AddMask:
    """A line that adds a mask."""

    #: Values to look for from now on; the second one if the line has escapes.
    values: tuple[bytes, ...]
    #: What the log shows in place of the line.
    shown: bytes


class MaskLines:
    """Takes the lines that add masks out of a stream; the same ones however the stream is cut.

    A line counts when it begins with `MARKER`. Held back is what may become such a line.
    """

    def __init__(self) -> None:
        self._held = b""
        self._at_start = True
        #: In a line whose value is already out, until it ends.
        self._dropping = False
        self._count = 0
        self._bytes = 0

    def feed(self, data: bytes) -> list[bytes | AddMask]:
        """What comes through, in order."""
        if not data:
            return []
        if self._dropping:
            end = data.find(b"\n")
            if end < 0:
                return []
            data = data[end:]
            self._at_start = self._dropping = False
        if self._held:
            data, self._held = self._held + data, b""
        if not _search(data):
            return self._without_line(data)
        return self._with_lines(data)

    def flush(self) -> list[bytes | AddMask]:
        """The rest, when the stream ends or pauses; what follows is the start of a line."""
        rest, self._held = self._held, b""
        self._at_start, self._dropping = True, False
        if rest.startswith(MARKER):
            return [self._line(rest)]
        return [rest] if rest else []

    def _without_line(self, data: bytes) -> list[bytes | AddMask]:
        tail = data[-len(MARKER) :]
        start = tail.rfind(b"\n") + 1
        if start or (self._at_start and len(data) < len(MARKER)):
            last = tail[start:]
            if last and MARKER.startswith(last):
                self._held = last
                data = data[: -len(last)]
        self._at_start = bool(self._held) or data.endswith(b"\n")
        return [data] if data else []

    def _with_lines(self, data: bytes) -> list[bytes | AddMask]:
        found: list[bytes | AddMask] = []
        place = 0
        for start, after in _search(data):
            if start < place or not (data[start - 1 : start] == b"\n" if start else self._at_start):
                continue
            if start > place:
                found.append(data[place:start])
            self._at_start = True
            end = data.find(b"\n", after) + 1
            if not end:
                return found + self._open_line(data[start:])
            found.append(self._line(data[start:end]))
            place = end
        return found + (self._without_line(data[place:]) if place < len(data) else [])

    def _open_line(self, line: bytes) -> list[bytes | AddMask]:
        if len(line) <= len(MARKER) + LONGEST_VALUE:
            self._held = line
            return []
        self._dropping = True
        return [self._line(line[: len(MARKER) + LONGEST_VALUE])]

    def _line(self, line: bytes) -> AddMask:
        ending = b"\r\n" if line.endswith(b"\r\n") else b"\n" if line.endswith(b"\n") else b""
        value = line[len(MARKER) : len(MARKER) + LONGEST_VALUE].strip()
        if not self._allowed(value):
            return AddMask(values=(), shown=MARKER + MASK + _REFUSED + ending)
        unescaped = value
        for escape, character in _ESCAPES:
            unescaped = unescaped.replace(escape, character)
        return AddMask(values=tuple(dict.fromkeys((value, unescaped))), shown=MARKER + MASK + ending)

    def _allowed(self, value: bytes) -> bool:
        self._count += 1
        self._bytes += len(value)
        return self._count <= MAXIMUM_VALUES and self._bytes <= MAXIMUM_BYTES
