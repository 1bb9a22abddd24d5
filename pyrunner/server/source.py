"""Where the server's jobs come from: the one seam between the runner API and a queue, a pipeline or an upstream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyrunner.api.wire import Info, JobResponse


@dataclass(frozen=True, kw_only=True)
class RunnerIdentity:
    """Who asks for a job."""

    id: int
    description: str
    system_id: str
    tags: frozenset[str]
    run_untagged: bool
    info: Info


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a job ended on the runner: ``success``, ``failed`` or ``canceled``."""

    state: str
    failure_reason: str = ""
    exit_code: int = 0


class JobSource(Protocol):
    """Gives jobs and is told what becomes of them. Methods are quick, never block, and are safe from any thread.

    Order for one job: `take`, then `started` or `returned`, then (after `started`) exactly one `finished`.
    """

    def take(self, runner: RunnerIdentity) -> JobResponse | None:
        """A job that this runner may run, reserved for it, or None."""
        ...

    def started(self, job_id: int) -> None:
        """The runner committed to the job: it is running."""
        ...

    def returned(self, job_id: int) -> None:
        """The runner never committed (acceptance timed out or was declined): the job is free again."""
        ...

    def finished(self, job_id: int, verdict: Verdict) -> None:
        """The job has its final state and its whole trace."""
        ...

    def subscribe(self, notify: Callable[[], None]) -> None:
        """Have `notify` called, from any thread, whenever a `take` that gave None might now give a job."""
        ...
