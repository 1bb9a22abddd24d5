"""One stream of a trace: the runner's own lines, or the script's output."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pyrunner.job.trace.commands import AddMask, MaskLines
from pyrunner.job.trace.masker import Masker, Masks
from pyrunner.job.trace.timestamps import Stamper, Utf8Repair

CLEAR = "\x1b[0K"
RESET = "\x1b[0;m"
BOLD_GREEN = "\x1b[32;1m"
BOLD_CYAN = "\x1b[36;1m"
BOLD_RED = "\x1b[31;1m"
YELLOW = "\x1b[0;33m"

#: Bytes that go through the filters at once: fits the caches and malloc's pools (of 128 KiB, and timestamps add a
#: third), large enough that Python does not count.
PIECE = 64 * 1024


class Stream:
    """Filters of one stream, and the line kinds of facts/job-lifecycle.md 5.2. Safe from any thread.

    `sink` takes what is ready for the log and tells whether the log takes more. Invalid UTF-8 is repaired before
    timestamps are set, not behind as GitLab Runner does it: so a character that is cut between two writes survives
    the lines of another stream in between. In a stream with `commands` a line can add to the masks.
    """

    def __init__(
        self,
        name: str,
        sink: Callable[[bytes], bool],
        masks: Masks,
        prefixes: Sequence[str],
        *,
        timestamps: bool,
        commands: bool = False,
    ) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._masks = masks
        self._lines = MaskLines() if commands else None
        self._masker = Masker(masks, prefixes)
        self._repair = Utf8Repair()
        self._stamper = Stamper(name) if timestamps else None
        self._open = True

    def write(self, data: bytes) -> None:
        """Append raw output; once the log is full this costs nothing."""
        with self._lock:
            for start in range(0, len(data), PIECE):
                if not self._open:
                    return
                piece = data if len(data) <= PIECE else data[start : start + PIECE]
                if self._lines is None:
                    self._emit(self._masker.feed(piece))
                else:
                    self._follow(self._lines.feed(piece))

    def flush(self) -> None:
        """Write out what was held back: the stream ends here, or pauses for another."""
        with self._lock:
            if not self._open:
                return
            if self._lines is not None:
                self._follow(self._lines.flush())
            self._emit(self._masker.flush())
            rest = self._repair.flush()
            if self._stamper is not None:
                rest = self._stamper.feed(rest) + self._stamper.flush()
            if rest:
                self._open = self._sink(rest)

    def plain(self, text: str) -> None:
        """``CLEAR text RESET``"""
        self._line(f"{CLEAR}{text}{RESET}\n")

    def info(self, text: str) -> None:
        """Bold green."""
        self._line(f"{BOLD_GREEN}{text}{RESET}\n")

    def warning(self, text: str) -> None:
        """Yellow, ``WARNING: `` in front."""
        self._line(f"{YELLOW}WARNING: {text}{RESET}\n")

    def error(self, text: str) -> None:
        """Bold red, ``ERROR: `` in front."""
        self._line(f"{BOLD_RED}ERROR: {text}{RESET}\n")

    def _line(self, line: str) -> None:
        self.write(line.encode("utf-8", "surrogateescape"))

    def _follow(self, found: list[bytes | AddMask]) -> None:
        for item in found:
            if isinstance(item, AddMask):
                self._masks.add(item.values)
                self._emit(self._masker.insert(item.shown))
            else:
                self._emit(self._masker.feed(item))

    def _emit(self, data: bytes) -> None:
        if not data:
            return
        data = self._repair.feed(data)
        if self._stamper is not None:
            data = self._stamper.feed(data)
        if data:
            self._open = self._sink(data)
