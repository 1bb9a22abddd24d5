"""A stage's output through a pipe that belongs to the job, not to the stage."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios

from pyrunner.executors.protocol import TraceWriter

#: Bytes that the kernel may hold for a job; a script that writes faster than this is read waits, as it should.
CAPACITY = 1024 * 1024
_PIECE = 256 * 1024
#: A script that writes little at a time is read only so often, seconds.
_COALESCE = 0.01
_COALESCE_BELOW = 64 * 1024


class PipeOutput:
    """Implements `process.Output`.

    One pipe serves all stages, so that what a script leaves in the background can still write afterwards instead of
    dying of SIGPIPE, and its output shows up in the stages that follow. A regular file in its place would be cut short
    by the first ``echo … >/dev/stderr`` of a script.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        with contextlib.suppress(OSError):
            # Refused when this user has too many large pipes already; a small one works as well.
            fcntl.fcntl(self._reader, fcntl.F_SETPIPE_SZ, CAPACITY)
        self._trace: TraceWriter | None = None
        self._pause: float | None = None
        #: Bytes read so far, of all stages.
        self.received = 0

    def direct(self, trace: TraceWriter) -> None:
        """Output goes to `trace` from now on."""
        self._trace = trace
        self._pause = None

    def fileno(self) -> int:
        """The reading end."""
        return self._reader

    def pause(self) -> float | None:
        """A moment after a small read, so that a chatty script does not wake us for every line."""
        return self._pause

    def pump(self) -> None:
        """Read once."""
        if self._pause is not None:
            # The moment is over: wait for output again, and then read all that came meanwhile.
            self._pause = None
            return
        size = self._read(_PIECE)
        self._pause = _COALESCE if 0 < size < _COALESCE_BELOW else None

    def finish(self) -> None:
        """Read as much as is there now."""
        left = self._waiting()
        while left > 0:
            size = self._read(min(left, _PIECE))
            if size == 0:
                return
            left -= size

    def close(self) -> None:
        """Release the pipe; may be called twice."""
        for descriptor in (self._reader, self.writer):
            if descriptor >= 0:
                os.close(descriptor)
        self._reader = self.writer = -1

    def _read(self, limit: int) -> int:
        try:
            data = os.read(self._reader, limit)
        except BlockingIOError:
            return 0
        if data and self._trace is not None:
            self._trace.write(data)
        self.received += len(data)
        return len(data)

    def _waiting(self) -> int:
        count: int = struct.unpack("i", fcntl.ioctl(self._reader, termios.FIONREAD, b"\0\0\0\0"))[0]
        return count
