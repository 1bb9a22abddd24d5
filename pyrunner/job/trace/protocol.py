"""What delivers a trace: the part of the API client that it needs, and who keeps the end of a job until then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyrunner.api.outcomes import PatchAnswer, UpdateAnswer
from pyrunner.api.wire import Info, JobUpdate
from pyrunner.base.cancel import CancelToken

if TYPE_CHECKING:
    from pyrunner.job.trace.final import Ending


class TraceClient(Protocol):
    """Blocking calls that never raise for what a server does."""

    def update_job(self, job_id: int, update: JobUpdate, cancel: CancelToken | None = None) -> UpdateAnswer:
        """``PUT jobs/:id`` (facts/runner-api.md 6.2)."""
        ...

    def patch_trace(
        self,
        job_id: int,
        job_token: str,
        content: bytes,
        start: int,
        *,
        debug_trace: bool = False,
        cancel: CancelToken | None = None,
    ) -> PatchAnswer:
        """``PATCH jobs/:id/trace`` (facts/runner-api.md 6.4)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a job ended."""

    #: ``success`` or ``failed``.
    state: str
    failure_reason: str = ""
    exit_code: int = 0


@dataclass(frozen=True, kw_only=True)
class JobEnd:
    """All that the server must be told about a job that is over; size and checksum are those of the whole trace."""

    job_id: int
    job_token: str
    info: Info | None
    debug_trace: bool
    verdict: Verdict
    size: int
    checksum: str
    #: Bytes of the trace that the server has, as far as is known.
    offset: int
    #: Writes the trace to a new file; raises `OSError`.
    save_trace: Callable[[str], object]

    def __repr__(self) -> str:
        return f"JobEnd(job_id={self.job_id}, verdict={self.verdict})"


class Kept(Protocol):
    """One job's end that survives the process. Methods are called in one thread and do not raise."""

    @property
    def leaving(self) -> CancelToken:
        """Cancelled when the process is about to go: what is not delivered then waits for the next one."""
        ...

    def sync(self) -> None:
        """The first try failed: make it survive the machine, too."""
        ...

    def delivered(self) -> None:
        """The server has it: forget it."""
        ...

    def hand_over(self, ending: Ending) -> None:
        """It is not delivered and the job's slot is wanted: go on in the background. Last call."""
        ...


class Keeper(Protocol):
    """Keeps the ends of jobs."""

    def keep(self, end: JobEnd) -> Kept | None:
        """Keep `end` until the server has it; None when that is impossible (which has been logged). Never raises."""
        ...
