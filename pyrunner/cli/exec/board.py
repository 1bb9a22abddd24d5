"""What a display shows: every job of the run with state and times. No I/O; the clock is a parameter."""

from __future__ import annotations

from msgspec import Struct

from pyrunner.pipeline.graph import Graph
from pyrunner.pipeline.schedule import ENDED, State
from pyrunner.server.pipeline_source import Change
from pyrunner.server.source import Verdict


class Row(Struct, kw_only=True):
    """One job."""

    job: str
    stage: str
    state: State = State.CREATED
    #: Id of the latest try, 0 before the first.
    job_id: int = 0
    tries: int = 0
    forgiven: bool = False
    verdict: Verdict | None = None
    began: float | None = None
    ended: float | None = None

    def seconds(self, now: float) -> float | None:
        """How long the latest try has run or ran; None when it never did."""
        if self.began is None:
            return None
        return (now if self.ended is None else self.ended) - self.began

    @property
    def reason(self) -> str:
        """Why it failed, in a few words."""
        if self.verdict is None or self.state is not State.FAILED:
            return ""
        if self.verdict.failure_reason in ("", "script_failure") and self.verdict.exit_code:
            return f"exit code {self.verdict.exit_code}"
        return self.verdict.failure_reason.replace("_", " ")


class Board:
    """All rows in order of stages."""

    def __init__(self, graph: Graph, began: float) -> None:
        self.began = began
        self.stages = {
            stage: [Row(job=job.name, stage=stage) for job in jobs] for stage, jobs in graph.by_stage().items()
        }
        self._rows = {row.job: row for rows in self.stages.values() for row in rows}

    def rows(self) -> list[Row]:
        """All rows."""
        return list(self._rows.values())

    def row(self, job: str) -> Row:
        """The row of a job."""
        return self._rows[job]

    def apply(self, change: Change, now: float) -> Row:
        """Take a change over; returns its row."""
        row = self._rows[change.job]
        if change.state is State.RUNNING:
            row.began, row.ended = now, None
            row.tries += 1
        elif row.state is State.RUNNING and (change.state in ENDED or change.state is State.PENDING):
            row.ended = now
        row.state, row.job_id, row.forgiven = change.state, change.job_id, change.forgiven
        row.verdict = change.verdict
        return row
