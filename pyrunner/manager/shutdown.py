"""How a process ends: what stop signals mean, as a pure state machine (facts/job-lifecycle.md 11, commands.md 3)."""

from __future__ import annotations

from enum import Enum, auto

#: Seconds for the last words of jobs whose processes had to be killed because the process leaves.
LAST_WAIT = 2.0


class Process(Enum):
    """Where the process stands."""

    RUNNING = "running"
    #: No new jobs; running ones are waited for without limit.
    GRACEFUL = "graceful-shutdown"
    #: Jobs are aborted and waited for as long as ``shutdown_timeout``.
    FORCEFUL = "forceful-shutdown"
    #: Another signal came: leave now.
    IMPATIENT = "impatient"


class StopAction(Enum):
    """What a stop request changes."""

    NOTHING = auto()
    STOP_GRACEFULLY = auto()
    STOP_FORCEFULLY = auto()
    LEAVE = auto()


class Shutdown:
    """The state of the process; moves only forwards."""

    def __init__(self) -> None:
        self.state = Process.RUNNING

    def graceful(self) -> StopAction:
        """A request to finish the running jobs."""
        if self.state is Process.RUNNING:
            self.state = Process.GRACEFUL
            return StopAction.STOP_GRACEFULLY
        if self.state is Process.FORCEFUL:
            return self._leave()
        return StopAction.NOTHING

    def forceful(self) -> StopAction:
        """A request to abort the running jobs."""
        if self.state in (Process.RUNNING, Process.GRACEFUL):
            self.state = Process.FORCEFUL
            return StopAction.STOP_FORCEFULLY
        return self._leave()

    def _leave(self) -> StopAction:
        self.state = Process.IMPATIENT
        return StopAction.LEAVE
