"""The server's one place of action: carries out what the job book decides. Lives on the server's thread."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable

from pyrunner.api.wire import JobRequest, JobResponse, JobUpdate
from pyrunner.server.completion import complete
from pyrunner.server.files import JobFiles
from pyrunner.server.jobs import (
    Action,
    Answer,
    DropTrace,
    Finished,
    JobBook,
    JobRecord,
    Returned,
    Started,
    StoredArtifact,
)
from pyrunner.server.ledger import Ledger
from pyrunner.server.observer import Observer
from pyrunner.server.runners import RunnerBook, RunnerRecord
from pyrunner.server.source import JobSource
from pyrunner.server.states import FINAL_STATES

log = logging.getLogger(__name__)


class Waiter:
    """One held ``jobs/request``: `job` is resolved with a job, or with None when the server stops."""

    def __init__(self, runner: RunnerRecord, request: JobRequest, gone: Callable[[], bool]) -> None:
        self.runner = runner
        self.request = request
        self.gone = gone
        self.job: asyncio.Future[JobResponse | None] = asyncio.get_running_loop().create_future()


class Desk:
    """Books, files, source and observer together. Not thread-safe: everything runs on the server's event loop."""

    def __init__(self, source: JobSource, files: JobFiles, ledger: Ledger, observer: Observer | None) -> None:
        self.source = source
        self.files = files
        self.ledger = ledger
        self.observer = observer
        self.runners = RunnerBook(ledger.runners())
        self.book = JobBook(self._saved_jobs(ledger.jobs()))
        self.book.resume(time.time())
        self.closing = False
        self._boot = secrets.token_hex(4)
        self._changes = 0
        self._waiters: list[Waiter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._watchers: dict[int, set[asyncio.Event]] = {}

    def _saved_jobs(self, records: Iterable[JobRecord]) -> Iterable[JobRecord]:
        for record in records:
            if record.state not in FINAL_STATES:
                record.trace_size, record.trace_crc = self.files.measure_trace(record.id)
            yield record

    # --- taking jobs ------------------------------------------------------------------------------------------

    @property
    def last_update(self) -> str:
        """The current ``X-GitLab-Last-Update``: another value whenever there may be new jobs."""
        return f"{self._boot}{self._changes:x}"

    def take(self, runner: RunnerRecord, request: JobRequest) -> JobResponse | None:
        """A job for this request, reserved in the book, or None."""
        if runner.paused or self.closing:
            return None
        job = self.source.take(runner.identity(request.system_id, request.info))
        if job is None:
            return None
        complete(job, self.book, runner.maximum_timeout)
        features = request.info.features
        record = JobRecord(
            id=job.id,
            token=job.token,
            name=job.job_info.name,
            runner_id=runner.id,
            system_id=request.system_id,
            cancel_gracefully=bool(features and features.cancel_gracefully),
        )
        self.files.clear(job.id)
        two_phase = bool(features and features.two_phase_job_commit)
        actions = self.book.reserve(record, two_phase=two_phase, now=time.time())
        self._notify_state(record)
        self._keep(record)
        self._carry_out(actions)
        if record.deadline is not None:
            self._expire_at(record.deadline)
        return job

    def hold(self, waiter: Waiter) -> None:
        """Let a request wait for a job."""
        if self.closing:
            waiter.job.set_result(None)
            return
        self._waiters.append(waiter)

    def let_go(self, waiter: Waiter) -> None:
        """The request waits no longer."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def give_back(self, job_id: int) -> None:
        """The answer that carried the job has nobody to go to."""
        self._carry_out(self.book.release(job_id))

    def jobs_changed(self) -> None:
        """The source may have jobs: serve held requests, longest waiting first."""
        self._changes += 1
        for waiter in list(self._waiters):
            if waiter.gone() or waiter.job.done():
                continue
            job = self.take(waiter.runner, waiter.request)
            if job is not None:
                self.let_go(waiter)
                waiter.job.set_result(job)

    def open(self) -> None:
        """Serve (again, after a `close`)."""
        self.closing = False
        self.schedule_expiry()

    def close(self) -> None:
        """Stop giving jobs and let every held request go."""
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiter in self._waiters:
            if not waiter.job.done():
                waiter.job.set_result(None)
        self._waiters.clear()
        for job_id in list(self._watchers):
            self._wake(job_id)

    # --- what runners report ----------------------------------------------------------------------------------

    def update(self, job_id: int, token: str, update: JobUpdate) -> Answer:
        """``PUT jobs/:id``."""
        answer = self.book.update(job_id, token, update, time.time())
        self._carry_out(answer.actions)
        return answer

    def store_patch(self, job_id: int, token: str, content_range: str, content: bytes) -> Answer:
        """``PATCH jobs/:id/trace``.

        Raises:
            OSError: the trace could not be written; the book still expects the same bytes.
        """
        answer = self.book.check_patch(job_id, token, content_range, len(content), time.time())
        if answer.status != 202 or answer.trace_size is None:
            return answer
        self.files.write_trace(job_id, answer.trace_size, content)
        stored = self.book.patched(job_id, content)
        if self.observer is not None:
            self.observer.trace_appended(job_id, answer.trace_size, content)
        self._wake(job_id)
        return stored

    def store_artifact(self, job_id: int, artifact: StoredArtifact) -> None:
        """An uploaded artifact is whole on disk."""
        record = self.book.find(job_id)
        assert record is not None  # noqa: S101 - the upload was authorised against it
        record.artifacts[artifact.type] = artifact
        self._keep(record)
        if self.observer is not None:
            self.observer.artifact_stored(job_id, artifact, str(self.files.directory(job_id) / artifact.path))

    def cancel(self, job_id: int, *, force: bool = False) -> bool:
        """Cancel a job that a runner has; whether that changed anything."""
        actions = self.book.cancel(job_id, time.time(), force=force)
        self._carry_out(actions)
        return bool(actions)

    # --- carrying out -----------------------------------------------------------------------------------------

    def _carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            record = self.book.find(action.job_id)
            assert record is not None  # noqa: S101 - actions are about records
            if isinstance(action, DropTrace):
                self.files.drop_trace(record.id)
                continue
            # the record is saved before the source hears of it: a crash in between repeats, but never loses, an end
            self._keep(record)
            if isinstance(action, Started):
                self.source.started(record.id)
            elif isinstance(action, Returned):
                log.info("Job returned to the queue", extra={"action": "job_returned", "job": record.id})
                self.source.returned(record.id)
            elif isinstance(action, Finished):
                self.source.finished(record.id, action.verdict)
            if not isinstance(action, Started) or record.verdict is None:
                self._notify_state(record)

    def _notify_state(self, record: JobRecord) -> None:
        if self.observer is not None:
            self.observer.job_changed(record.id, record.state.value, record.verdict)
        self._wake(record.id)

    def _keep(self, record: JobRecord) -> None:
        self.ledger.save_job(record)

    def schedule_expiry(self) -> None:
        """Look after silent jobs at the next deadline in the book."""
        deadline = self.book.next_deadline()
        if deadline is not None:
            self._expire_at(deadline)

    def _expire_at(self, deadline: float) -> None:
        if self.closing or (self._timer is not None and self._timer_due <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0.0, deadline - time.time())
        self._timer, self._timer_due = asyncio.get_running_loop().call_later(delay, self._expire), deadline

    def _expire(self) -> None:
        self._timer = None
        self._carry_out(self.book.expire(time.time()))
        self.schedule_expiry()

    # --- watching ---------------------------------------------------------------------------------------------

    def watch(self, job_id: int) -> asyncio.Event:
        """An event that is set at the next change of the job or its trace; give it back with `unwatch`."""
        event = asyncio.Event()
        self._watchers.setdefault(job_id, set()).add(event)
        return event

    def unwatch(self, job_id: int, event: asyncio.Event) -> None:
        """Stop watching."""
        events = self._watchers.get(job_id, set())
        events.discard(event)
        if not events:
            self._watchers.pop(job_id, None)

    def _wake(self, job_id: int) -> None:
        for event in self._watchers.get(job_id, ()):
            event.set()
