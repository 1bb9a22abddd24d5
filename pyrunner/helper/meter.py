"""The transfer meter: a line on stdout that is written over while bytes move (facts/cache-artifacts.md 2.3)."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TextIO

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
#: Covers what is left of a longer line before.
_BLANK = " " * 16
_SHORTEST = 1.0


class Meter:
    """Counts the bytes of one transfer and shows them at most every `frequency` seconds.

    Args:
        label: ``Uploading artifacts`` and its like.
        frequency: seconds, at least one; 0 = silent.
        total: bytes to come, 0 when unknown.
    """

    def __init__(
        self,
        label: str,
        frequency: float,
        *,
        total: int = 0,
        clock: Callable[[], float] = time.monotonic,
        out: TextIO | None = None,
    ) -> None:
        self.total = total
        self._label = label
        self._frequency = max(frequency, _SHORTEST) if frequency > 0 else 0.0
        self._clock = clock
        self._out = out or sys.stdout
        self._start = self._shown = clock()
        self._count = 0

    def add(self, count: int) -> None:
        """`count` more bytes have moved."""
        self._count += count
        if self._frequency and self._clock() - self._shown >= self._frequency:
            self._show()

    def counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """`pieces`, counted as they are taken."""
        for piece in pieces:
            yield piece
            self.add(len(piece))

    def restart(self) -> None:
        """Begin again at nothing: the transfer is tried once more."""
        self._count = 0
        self._start = self._shown = self._clock()

    def finish(self) -> None:
        """Show the final figures and end the line."""
        if self._frequency:
            self._show()
            self._out.write("\n")
            self._out.flush()

    def _show(self) -> None:
        self._shown = self._clock()
        elapsed = self._shown - self._start
        rate = self._count / elapsed if elapsed > 0 else 0.0
        total = f"/{size_text(self.total)}" if self.total else ""
        self._out.write(f"\r{self._label} {size_text(self._count)}{total} ({size_text(rate, 1)}/s){_BLANK}")
        self._out.flush()


def size_text(count: float, decimals: int = 2) -> str:
    """A number of bytes in units of thousands: ``512 B``, ``1.23 MB``."""
    if count < 1000:
        return f"{int(count)} B"
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.{decimals}f} {_UNITS[unit]}"
