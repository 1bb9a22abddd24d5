"""Everything that can stop a job before its end, in one place (facts/job-lifecycle.md 3.2 and 3.3)."""

from __future__ import annotations

import threading
from enum import Enum, auto

from pyrunner.base.cancel import CancelToken
from pyrunner.base.durations import format_duration
from pyrunner.base.errors import JobCanceled, JobError, JobInterrupted, JobTimeout

SCRIPT_TIMEOUT_TEXT = "script timeout: context deadline exceeded"


class Phase(Enum):
    """What a graceful cancel means now."""

    #: Before the user's steps: like an abort.
    BEFORE_STEPS = auto()
    #: The running script is stopped, ``after_script`` and uploads still run.
    STEPS = auto()
    #: The request comes too late and changes nothing.
    AFTER_STEPS = auto()


class JobCancel:
    """The stop switch of one job. All methods are safe from any thread; the first cause wins.

    `token` is the job's: when it is cancelled, everything stops at once. The user's steps run under a child of it that
    a graceful cancel or the script timeout ends alone.
    """

    def __init__(self, parent: CancelToken | None = None) -> None:
        self.token = CancelToken(parent)
        self._lock = threading.Lock()
        self._phase = Phase.BEFORE_STEPS
        self._script: CancelToken | None = None

    def start_clock(self, timeout: float) -> None:
        """The job may take `timeout` seconds from now."""
        text = f"execution took longer than {format_duration(timeout)} seconds"
        self.token.expire_in(timeout, JobTimeout(text))

    def begin_steps(self, timeout: float | None) -> CancelToken:
        """The token of all user steps together; `timeout` is the script timeout in seconds."""
        script = self.token.child(timeout, JobTimeout(SCRIPT_TIMEOUT_TEXT))
        with self._lock:
            self._phase = Phase.STEPS
            self._script = script
        return script

    def end_steps(self) -> None:
        """From here a graceful cancel has no effect."""
        with self._lock:
            self._phase = Phase.AFTER_STEPS
            script, self._script = self._script, None
        if script is not None:
            script.close()

    def cancel(self) -> None:
        """The server asks for a graceful end (``canceling``)."""
        with self._lock:
            phase, script = self._phase, self._script
        if phase is Phase.BEFORE_STEPS:
            self.token.cancel(JobCanceled())
        elif script is not None:
            script.cancel(JobCanceled())

    def abort(self) -> None:
        """The job is over for the server (``canceled``, ``failed``, 403): stop everything."""
        self.token.cancel(JobCanceled())

    def interrupt(self, signal_text: str) -> None:
        """This process was told to stop by a signal, in Go's words: ``terminated``, ``interrupt``, ``quit``."""
        self.token.cancel(JobInterrupted(f"aborted: {signal_text}"))

    def kill(self) -> None:
        """This process must go: processes that still take their time to end are killed. Comes after `interrupt`."""
        self.token.urgency.cancel(JobInterrupted("no time left"))

    def lose(self, cause: JobError) -> None:
        """The executor lost the instance that the job runs on."""
        self.token.cancel(cause)

    def close(self) -> None:
        """The job is over: nothing long-lived holds its tokens any more."""
        self.end_steps()
        self.token.close()
