"""Where a job's log waits for the server: memory first, then a file, with size and CRC-32 of all of it."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile

from isal import isal_zlib

log = logging.getLogger(__name__)

#: Logs up to this size, bytes, never touch the disk unless a directory is named.
IN_MEMORY = 64 * 1024


class Spool:
    """Append-only bytes that can be read anywhere. Not thread-safe by itself.

    With `directory` the file is made there at once; without, a log that outgrows `IN_MEMORY` goes to the temporary
    directory. The file is only for its owner. When its disk is full the rest stays in memory, whose size the limit
    bounds: a full disk must not cost the log that says so.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.size = 0
        self._crc = 0
        self._memory = bytearray()
        #: Offset of the log at which `_memory` starts; everything before is in the file.
        self._memory_start = 0
        self._descriptor = -1
        self._path = ""
        self._broken = False
        if directory:
            self._open(directory)

    def append(self, data: bytes) -> None:
        """Add `data` at the end."""
        self._crc = isal_zlib.crc32(data, self._crc)
        self.size += len(data)
        self._memory += data
        if len(self._memory) > IN_MEMORY or self._descriptor >= 0:
            self._spill()

    @property
    def checksum(self) -> str:
        """``crc32:<8 hex digits>`` of everything appended (facts/runner-api.md 6.1)."""
        return f"crc32:{self._crc:08x}"

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes from offset `start`."""
        if start >= self._memory_start:
            place = start - self._memory_start
            return bytes(self._memory[place : place + length])
        data = os.pread(self._descriptor, min(length, self._memory_start - start), start)
        if len(data) < length:
            data += bytes(self._memory[: length - len(data)])
        return data

    def close(self) -> None:
        """Forget everything; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._path = ""
        self._memory.clear()

    def _open(self, directory: str | None) -> None:
        try:
            self._descriptor, self._path = tempfile.mkstemp(prefix="trace-", dir=directory)
        except OSError as error:
            self._give_up(error)

    def _spill(self) -> None:
        if self._descriptor < 0 and not self._broken:
            self._open(None)
        if self._broken:
            return
        try:
            written = 0
            while written < len(self._memory):
                place = self._memory_start + written
                written += os.pwrite(self._descriptor, memoryview(self._memory)[written:], place)
        except OSError as error:
            self._give_up(error)
            return
        self._memory_start += written
        self._memory = bytearray()

    def _give_up(self, error: OSError) -> None:
        self._broken = True
        log.warning(
            "Job log cannot be spooled to disk, keeping it in memory",
            extra={"action": "spool_failed", "error": error.strerror},
        )
