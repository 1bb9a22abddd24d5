"""The second phase of taking a job: tell the server that it runs before any work is done (facts/runner-api.md 6.6)."""

from __future__ import annotations

from enum import Enum, auto

from pyrunner.api.outcomes import UpdateAnswer
from pyrunner.api.wire import Info, JobResponse, JobUpdate, TraceOutput


class Acceptance(Enum):
    """What to do with a job after the server was told."""

    RUN = auto()
    #: It is not ours any more: no trace, no final update.
    DROP = auto()
    #: It was canceled meanwhile: finish it as such.
    CANCELED = auto()


def commit_update(job: JobResponse, info: Info) -> JobUpdate:
    """The body of the commit."""
    return JobUpdate(info=info, token=job.token, state="running", output=TraceOutput())


def decide(answer: UpdateAnswer) -> Acceptance:
    """Every answer that does not take the job away lets it run, also none at all."""
    if answer.state.lost:
        return Acceptance.DROP
    return Acceptance.CANCELED if answer.cancel_requested else Acceptance.RUN
