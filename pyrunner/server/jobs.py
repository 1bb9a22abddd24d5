"""The job book: which job is where, and what every request about it is answered.

Pure: the clock is a parameter, nothing is read or written. Requests give an `Answer`; what must happen outside (tell
the source, drop a trace) comes back as `Action`s in the order in which to do it. States of one job::

    pending ─reserve→ reserved ─PUT running→ running ─PUT success|failed→ success | failed
       ↑                 │ 2 min of silence     │
       └─────────────────┘                      └─cancel→ canceling ─PUT …→ canceled

A runner without two-phase acceptance goes from ``pending`` to ``running`` at once (facts/runner-api.md 6.6).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyrunner.api.wire import JobUpdate, TraceOutput
from pyrunner.server.source import Verdict
from pyrunner.server.states import FINAL_STATES, JobState
from pyrunner.server.tokens import same

#: How long a reserved job waits for a sign of life (section 6.6), in seconds.
ACCEPTANCE_SECONDS = 120.0
#: How long a running job may be silent before it counts as lost, in seconds.
SILENCE_SECONDS = 3600.0
#: How long a final update is refused because the trace does not match; then the job ends with what is there.
VERIFICATION_SECONDS = 300.0


@dataclass(kw_only=True)
class StoredArtifact:
    """One uploaded artifact file; `path` is relative to the job's directory."""

    type: str
    format: str
    filename: str
    path: str
    size: int
    expire_in: str = ""


@dataclass(kw_only=True)
class JobRecord:
    """Everything that the server knows about one job. Times are seconds of the clock that callers pass in."""

    id: int
    token: str
    state: JobState = JobState.PENDING
    name: str = ""
    runner_id: int = 0
    system_id: str = ""
    cancel_gracefully: bool = False
    verdict: Verdict | None = None
    trace_size: int = 0
    trace_crc: int = 0
    trace_matches: bool | None = None
    taken_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    last_seen: float = 0.0
    first_verdict_at: float | None = None
    open_patches: int = 0
    artifacts: dict[str, StoredArtifact] = field(default_factory=dict)

    @property
    def deadline(self) -> float | None:
        """When silence ends this state, or None."""
        if self.state is JobState.RESERVED:
            return self.last_seen + ACCEPTANCE_SECONDS
        if self.state in (JobState.RUNNING, JobState.CANCELING):
            return self.last_seen + SILENCE_SECONDS
        return None


@dataclass(frozen=True, kw_only=True)
class Started:
    """The runner committed to the job."""

    job_id: int


@dataclass(frozen=True, kw_only=True)
class Returned:
    """The runner never committed: the job is free again, its trace is void."""

    job_id: int


@dataclass(frozen=True, kw_only=True)
class Canceling:
    """The runner is asked to stop the job."""

    job_id: int


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The job has its final state."""

    job_id: int
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class DropTrace:
    """The stored trace differs from the runner's: the runner sends all of it again."""

    job_id: int


Action = Started | Returned | Canceling | Finished | DropTrace


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a request is answered: status, ``Job-Status``, the trace size for ``Range``, and what to do besides."""

    status: int
    job_status: str = ""
    trace_size: int | None = None
    actions: tuple[Action, ...] = ()


class JobBook:
    """All jobs that runners have taken, by id."""

    def __init__(self, records: Iterable[JobRecord] = ()) -> None:
        self._jobs = {record.id: record for record in records}
        self._by_token = {record.token: record for record in self._jobs.values() if record.token}

    def find(self, job_id: int) -> JobRecord | None:
        """The record of a job that was taken at least once."""
        return self._jobs.get(job_id)

    def records(self) -> list[JobRecord]:
        """All records, oldest id first."""
        return [self._jobs[job_id] for job_id in sorted(self._jobs)]

    def resume(self, now: float) -> None:
        """After a restart of the server: what was on its way gets its whole time again."""
        for record in self._jobs.values():
            record.last_seen = now
            record.open_patches = 0

    def reserve(self, record: JobRecord, *, two_phase: bool, now: float) -> list[Action]:
        """A job leaves the queue for a runner; an older record of the same id (a returned one) is replaced."""
        record.taken_at = record.last_seen = now
        record.state = JobState.RESERVED
        self._jobs[record.id] = self._by_token[record.token] = record
        return [] if two_phase else self._start(record, now)

    def release(self, job_id: int) -> list[Action]:
        """The answer with the job never reached its runner."""
        record = self._jobs[job_id]
        if record.state is not JobState.RESERVED:
            return []
        record.state = JobState.PENDING
        record.token = ""
        return [Returned(job_id=job_id)]

    def refusal(self, job_id: int, token: str) -> Answer | None:
        """404 for an unknown job, 403 for a wrong token or for a job that no longer runs, else None."""
        record = self._jobs.get(job_id)
        if record is None:
            return Answer(status=404)
        if not same(token, record.token):
            return Answer(status=403)
        if record.state in FINAL_STATES:
            return Answer(status=403, job_status=record.state.wire)
        return None

    def token_is_active(self, token: str) -> bool:
        """Whether `token` belongs to a job that a runner has and has not ended."""
        record = self._by_token.get(token)
        return record is not None and record.token == token and record.deadline is not None

    def update(self, job_id: int, token: str, update: JobUpdate, now: float) -> Answer:
        """``PUT jobs/:id`` (sections 6.1 and 6.6)."""
        record = self._jobs.get(job_id)
        if refused := self.refusal(job_id, token):
            # a commit for a job that this runner already brought to its end is a conflict, not a lost token
            over = record is not None and record.state in (JobState.SUCCESS, JobState.FAILED)
            if over and refused.job_status and update.state == "running":
                return Answer(status=409, job_status=refused.job_status)
            return refused
        assert record is not None  # noqa: S101 - refusal() answers 404 without one
        record.last_seen = now
        if update.state == "pending":
            return Answer(status=200 if record.state is JobState.RESERVED else 400, job_status=record.state.wire)
        if update.state == "running":
            actions = self._start(record, now) if record.state is JobState.RESERVED else []
            return Answer(status=200, job_status=record.state.wire, actions=tuple(actions))
        if update.state in ("success", "failed"):
            return self._final(record, update, now)
        return Answer(status=400, job_status=record.state.wire)

    def check_patch(self, job_id: int, token: str, content_range: str, length: int, now: float) -> Answer:
        """``PATCH jobs/:id/trace`` before its `length` bytes are stored; 202 allows storing them at `trace_size`."""
        if refused := self.refusal(job_id, token):
            return refused
        record = self._jobs[job_id]
        record.last_seen = now
        bounds = parse_content_range(content_range)
        if bounds is None or bounds[1] - bounds[0] + 1 != length:
            return Answer(status=400, job_status=record.state.wire)
        status = 202 if bounds[0] == record.trace_size else 416
        return Answer(status=status, job_status=record.state.wire, trace_size=record.trace_size)

    def patched(self, job_id: int, content: bytes) -> Answer:
        """The bytes that `check_patch` allowed are stored."""
        record = self._jobs[job_id]
        record.trace_size += len(content)
        record.trace_crc = zlib.crc32(content, record.trace_crc)
        return Answer(status=202, job_status=record.state.wire, trace_size=record.trace_size)

    def cancel(self, job_id: int, now: float, *, force: bool = False) -> list[Action]:
        """Cancel a taken job: at once when it has not started, when the runner cannot do better, or with `force`."""
        record = self._jobs.get(job_id)
        if record is None or record.deadline is None or (record.state is JobState.CANCELING and not force):
            return []
        if record.state is JobState.RUNNING and record.cancel_gracefully and not force:
            record.state = JobState.CANCELING
            return [Canceling(job_id=job_id)]
        # a source hears of an end only after a start
        before: list[Action] = [Started(job_id=job_id)] if record.state is JobState.RESERVED else []
        return [*before, self._finish(record, Verdict(state="canceled"), now)]

    def expire(self, now: float) -> list[Action]:
        """What silence ends: reservations are returned, running jobs fail."""
        actions: list[Action] = []
        for record in list(self._jobs.values()):
            if record.deadline is None or now < record.deadline:
                continue
            if record.state is JobState.RESERVED:
                actions += self.release(record.id)
            elif record.state is JobState.CANCELING:
                actions.append(self._finish(record, Verdict(state="canceled"), now))
            else:
                lost = Verdict(state="failed", failure_reason="stuck_or_timeout_failure")
                actions.append(self._finish(record, lost, now))
        return actions

    def next_deadline(self) -> float | None:
        """When `expire` may have something to do next, or None."""
        return min((d for record in self._jobs.values() if (d := record.deadline) is not None), default=None)

    def _start(self, record: JobRecord, now: float) -> list[Action]:
        record.state = JobState.RUNNING
        record.started_at = now
        return [Started(job_id=record.id)]

    def _final(self, record: JobRecord, update: JobUpdate, now: float) -> Answer:
        if record.first_verdict_at is None:
            record.first_verdict_at = now
        patient = now - record.first_verdict_at < VERIFICATION_SECONDS
        if record.open_patches and patient:
            return Answer(status=202, job_status=record.state.wire)
        record.trace_matches = trace_matches(record, update)
        if record.trace_matches is False and patient:
            record.trace_size = record.trace_crc = 0
            drop = DropTrace(job_id=record.id)
            return Answer(status=412, job_status=record.state.wire, trace_size=0, actions=(drop,))
        verdict = Verdict(state=update.state, failure_reason=update.failure_reason, exit_code=update.exit_code)
        actions: list[Action] = self._start(record, now) if record.state is JobState.RESERVED else []
        if record.state is JobState.CANCELING:
            verdict = Verdict(state="canceled", exit_code=update.exit_code)
        actions.append(self._finish(record, verdict, now))
        return Answer(status=200, job_status=record.state.wire, actions=tuple(actions))

    def _finish(self, record: JobRecord, verdict: Verdict, now: float) -> Finished:
        record.state = JobState(verdict.state)
        record.verdict = verdict
        record.finished_at = now
        return Finished(job_id=record.id, verdict=verdict)


def parse_content_range(text: str) -> tuple[int, int] | None:
    """First and last byte of ``<first>-<last>``, both inclusive (section 6.4), or None when it is something else."""
    first, dash, last = text.strip().partition("-")
    if not (dash and first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
        return None
    bounds = int(first), int(last)
    return bounds if bounds[0] <= bounds[1] else None


def trace_matches(record: JobRecord, update: JobUpdate) -> bool | None:
    """Whether the stored trace is the one that the final update announces; None when it announces none."""
    output = update.output if isinstance(update.output, TraceOutput) else TraceOutput()
    checksum = output.checksum or update.checksum
    if not checksum:
        return None
    size_matches = not output.bytesize or output.bytesize == record.trace_size
    return size_matches and checksum == f"crc32:{record.trace_crc:08x}"
