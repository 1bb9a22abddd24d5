"""Where a job's log waits for the server: memory first, then a file, with size and CRC-32 of all of it."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile

from isal import isal_zlib

log = logging.getLogger(__name__)

#: Logs up to this size, bytes, never touch the disk while they grow.
IN_MEMORY = 64 * 1024
_PIECE = 1024 * 1024


class Spool:
    """Append-only bytes that can be read anywhere. Not thread-safe by itself.

    A log that outgrows `IN_MEMORY` goes to a file in `directory` (None: the temporary directory) that has no name, so
    that nothing of it is left when the process dies. When its disk is full the rest stays in memory, whose size the
    limit bounds: a full disk must not cost the log that says so.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.size = 0
        self._crc = 0
        self._memory = bytearray()
        #: Offset of the log at which `_memory` starts; everything before is in the file.
        self._memory_start = 0
        self._descriptor = -1
        self._directory = directory
        self._broken = False

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

    def save_as(self, path: str) -> None:
        """Put all of it into a new file, for its owner only; costs nothing when the file system can name our file.

        Raises:
            OSError: the file cannot be made, or there is no room for it.
        """
        if self._descriptor >= 0 and not self._memory and self._name(path):
            return
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            for start in range(0, self.size, _PIECE):
                rest = memoryview(self.read(start, _PIECE))
                while rest:
                    rest = rest[file.write(rest) :]

    def close(self) -> None:
        """Forget everything; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._memory.clear()

    def _name(self, path: str) -> bool:
        own = self._descriptor
        try:
            # Python follows links only when a descriptor is given, which an absolute path makes meaningless
            os.link(f"/proc/self/fd/{own}", path, src_dir_fd=own, follow_symlinks=True)
        except OSError:
            # another file system, or a system without /proc
            return False
        return True

    def _open(self) -> None:
        try:
            self._descriptor = _nameless(self._directory or tempfile.gettempdir())
        except OSError as error:
            self._give_up(error)

    def _spill(self) -> None:
        if self._descriptor < 0 and not self._broken:
            self._open()
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


def _nameless(directory: str) -> int:
    flag = getattr(os, "O_TMPFILE", 0)
    if flag:
        with contextlib.suppress(OSError):
            return os.open(directory, flag | os.O_RDWR | os.O_CLOEXEC, 0o600)
    handle, path = tempfile.mkstemp(prefix="trace-", dir=directory)
    os.unlink(path)
    return handle
