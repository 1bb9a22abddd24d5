"""A stage's output through a log file that outlives this process.

The scripts write into a pipe, and a tiny process of its own (``cat``) appends that to the log. A log file as the
script's stdout would do without that process, but the first ``echo … >/dev/stderr`` or ``tee /dev/stderr`` of a script
opens the file anew and truncates it.
"""

from __future__ import annotations

import contextlib
import os
import select
import time

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.protocol import TraceWriter
from pyrunner.executors.tail import Tail

#: Pauses between looks at the log, seconds: while output comes, and when there is none.
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
#: How long to wait for the keeper without any progress, seconds: one of our own, which is told where the stage ends,
#: and one of an earlier process, which only ends when nothing in the background writes any more.
_SETTLE = 30.0
_SETTLE_ADOPTED = 2.0


class LogKeeper:
    """The process that moves output from the job's pipe to its log; it ends with the last writer."""

    def __init__(self, pid: int, writer: int, pidfd: int) -> None:
        self.pid = pid
        #: Writing end of the pipe; -1 for the keeper of an earlier process.
        self.writer = writer
        self._pidfd = pidfd

    @classmethod
    def start(cls, path: str) -> LogKeeper:
        """Start one that appends to the log `path`, made if need be, readable for its owner only."""
        reader, writer = os.pipe()
        try:
            log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, log, 1)]
            # In a session of its own: signals for the job or the manager must not cost the end of the log.
            pid = os.posix_spawnp("cat", ["cat"], os.environ, file_actions=actions, setsid=True)
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        os.close(log)
        return cls(pid, writer, os.pidfd_open(pid))

    @classmethod
    def adopt(cls, pid: int) -> LogKeeper:
        """The keeper `pid` that an earlier process has started."""
        try:
            return cls(pid, -1, os.pidfd_open(pid))
        except ProcessLookupError:
            return cls(pid, -1, -1)

    def ended(self, timeout: float = 0.0) -> bool:
        """Whether it has ended, or does within `timeout` seconds."""
        if self._pidfd < 0:
            return True
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(int(timeout * 1000)))

    def close(self) -> None:
        """Let it end with the last writer; something in the background that still writes is not waited for."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1
            if self.ended(1.0):
                os.waitpid(self.pid, 0)
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class LogOutput:
    """Implements `process.Output` over a log file that is read by offsets.

    `marker` separates stages in the log: it is written into the pipe behind a stage's last byte, so finding it in the
    log means that everything before has arrived. It is never shown.
    """

    def __init__(self, path: str, *, marker: bytes, keeper: LogKeeper, offset: int = 0) -> None:
        self._tail = Tail(path, offset)
        self._path = path
        self._marker = marker
        self._keeper = keeper
        self._trace: TraceWriter | None = None
        self._pause = _SHORTEST_PAUSE
        self._held = b""
        #: Markers that are in the pipe or the log and have not been read yet.
        self._open_marks = 0

    @property
    def offset(self) -> int:
        """How far the log has been passed on."""
        return self._tail.offset - len(self._held)

    @property
    def writer(self) -> int:
        """Where scripts write."""
        return self._keeper.writer

    def direct(self, trace: TraceWriter) -> None:
        """Output goes to `trace` from now on."""
        self._trace = trace
        self._pause = _SHORTEST_PAUSE

    def fileno(self) -> int:
        """None: a file cannot be waited for."""
        return -1

    def pause(self) -> float | None:
        """Short while output comes, growing when it does not."""
        return self._pause

    def pump(self) -> None:
        """Pass on all that is in the log."""
        came = False
        while self._advance():
            came = True
        self._pause = _SHORTEST_PAUSE if came else min(self._pause * 2, _LONGEST_PAUSE)

    def finish(self) -> None:
        """Pass on everything up to the stage's end.

        Raises:
            SystemFailure: the log could not be written to the end.
        """
        if self._keeper.writer < 0:
            self._keeper.ended(_SETTLE_ADOPTED)
            self.pump()
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(self._keeper.writer, self._marker)
        self._open_marks += 1
        self._read_to_marker()

    def close(self) -> None:
        """Release log and keeper; may be called twice."""
        self._tail.close()
        self._keeper.close()

    def _read_to_marker(self) -> None:
        deadline = time.monotonic() + _SETTLE
        pause = 0.0002
        while self._open_marks:
            if self._advance():
                deadline = time.monotonic() + _SETTLE
                continue
            lost = self._keeper.ended() and self._tail.offset >= self._tail.size
            if lost or time.monotonic() > deadline:
                raise SystemFailure(
                    f"the job's output cannot be stored in {self._path}{_room(self._path)}",
                    reason="runner_system_failure",
                )
            time.sleep(pause)
            pause = min(pause * 2, 0.02)

    def _advance(self) -> bool:
        """Pass on one piece; whether there was one."""
        piece = self._tail.read()
        if not piece:
            return False
        data = self._held + piece
        if self._marker in data:
            self._open_marks -= data.count(self._marker)
            data = data.replace(self._marker, b"")
        start = data.rfind(self._marker[:1], max(0, len(data) - len(self._marker) + 1))
        if start >= 0 and self._marker.startswith(data[start:]):
            data, self._held = data[:start], data[start:]
        else:
            self._held = b""
        if data and self._trace is not None:
            self._trace.write(data)
        return True


def _room(path: str) -> str:
    """Why a log could not be written, as far as can be told."""
    free = os.statvfs(os.path.dirname(path) or ".").f_bavail
    return "" if free else ": no space left on device"
