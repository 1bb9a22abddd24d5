"""The work of ``read-logs``: follow a growing log file, each line with the offset behind it (facts/commands.md 17)."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

#: The file went away while it was read: its job's pod is being cleaned up.
EXIT_GONE = 100
_PIECE = 16 * 1024
_POLL = 0.5
_OPEN_PAUSE = 1.0


class _OpenError(Exception):
    pass


class LogReader:
    """Follows one file.

    Args:
        path: the file.
        offset: where to begin, in bytes.
        wait: seconds to wait for the file to appear; it is looked for once a second.
    """

    def __init__(
        self,
        path: str,
        offset: int,
        wait: float,
        *,
        out: BinaryIO | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._offset = offset
        self._wait = wait
        self._out = out or sys.stdout.buffer
        self._sleep = sleep
        self._kept = b""

    def run(self) -> int:
        """Follow until the file is removed (100) or cannot be read (1)."""
        try:
            fd = self._open()
        except _OpenError as error:
            return self._fail(str(error))
        try:
            os.lseek(fd, self._offset, os.SEEK_SET)
            while True:
                data = os.read(fd, 1 << 20)
                if data:
                    self._take(data)
                    continue
                self._out.flush()
                if not os.path.exists(self._path):
                    self._take_rest()
                    return EXIT_GONE
                self._sleep(_POLL)
        except BrokenPipeError:
            raise
        except OSError as error:
            return self._fail(error.strerror or str(error))
        finally:
            os.close(fd)

    def _open(self) -> int:
        tries = int(self._wait / _OPEN_PAUSE)
        if tries < 1:
            raise _OpenError("no attempts to open log file configured")
        for number in range(tries):
            if number:
                self._sleep(_OPEN_PAUSE)
            try:
                return os.open(self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _OpenError(f"open {self._path}: {(error.strerror or '').lower()}") from error
        raise _OpenError("timeout waiting for file to be created")

    def _take(self, data: bytes) -> None:
        """Write the whole lines of what has been kept and `data`; keep the rest."""
        *lines, rest = (self._kept + data).split(b"\n")
        parts: list[bytes] = []
        for line in lines:
            self._cut(line + b"\n", parts)
        whole = len(rest) // _PIECE * _PIECE
        self._cut(rest[:whole], parts)
        self._kept = rest[whole:]
        self._out.write(b"".join(parts))

    def _take_rest(self) -> None:
        parts: list[bytes] = []
        self._cut(self._kept, parts)
        self._kept = b""
        self._out.write(b"".join(parts))
        self._out.flush()

    def _cut(self, line: bytes, parts: list[bytes]) -> None:
        for start in range(0, len(line), _PIECE):
            piece = line[start : start + _PIECE]
            self._offset += len(piece)
            parts.append(b"%d %s" % (self._offset, piece if piece.endswith(b"\n") else piece + b"\n"))

    def _fail(self, reason: str) -> int:
        self._out.write(f"error reading logs from {self._path}: {reason}\n".encode("utf-8", "surrogateescape"))
        self._out.flush()
        return 1
