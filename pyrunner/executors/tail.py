"""Reading a growing log by offsets, so that a later process can go on where this one stopped."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable

#: Bytes per read at most.
PIECE = 1024 * 1024
#: Consumed bytes are given back to the disk in steps of this size.
PUNCH_STEP = 16 * 1024 * 1024
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class Tail:
    """Reads `path` from `offset` on. Not thread-safe.

    With `punch`, what has been read is given back to the disk from time to time while the offsets stay: a job that
    writes for days does not need room for all of it. Without, everything stays until the file is removed.
    """

    def __init__(self, path: str, offset: int = 0, *, punch: bool = True) -> None:
        self.offset = offset
        self._punch = punch
        self._punched = 0
        flags = os.O_RDWR if punch else os.O_RDONLY
        self._descriptor = os.open(path, flags | os.O_CLOEXEC)

    def read(self, limit: int = PIECE) -> bytes:
        """The next bytes, at most `limit`; empty when there are none yet."""
        data = os.pread(self._descriptor, limit, self.offset)
        self.offset += len(data)
        if self._punch and self.offset - self._punched >= PUNCH_STEP:
            self._give_back()
        return data

    @property
    def size(self) -> int:
        """Bytes that the log has in all, read or not."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Release the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _give_back(self) -> None:
        end = self.offset - self.offset % 4096
        if not punch_hole(self._descriptor, self._punched, end - self._punched):
            self._punch = False
        self._punched = end


def punch_hole(descriptor: int, start: int, length: int) -> bool:
    """Free the blocks of a stretch of a file, whose size stays; False where the file system cannot."""
    fallocate = _fallocate()
    if fallocate is None:
        return False
    while fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, length):
        if ctypes.get_errno() != errno.EINTR:
            return False
    return True


@functools.lru_cache(maxsize=1)
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    function.restype = ctypes.c_int
    found: Callable[[int, int, int, int], int] = function
    return found
