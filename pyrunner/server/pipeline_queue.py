"""Pipelines in the coordinator's queue: jobs enter it as they become ready, and a restart finds its way again.

What has happened to a pipeline's jobs is in the queue and in the job records; after a restart the schedule is played
again from there, and a job whose turn had come but that had not reached the queue yet enters it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pyrunner.api.wire import Dependency, JobResponse
from pyrunner.base.errors import PyrunnerError
from pyrunner.pipeline.graph import Graph
from pyrunner.pipeline.payload import job_payload
from pyrunner.pipeline.schedule import Begin, Ended, Schedule, Started, State
from pyrunner.pipeline.variables import RunContext, job_tags
from pyrunner.server.database import Database
from pyrunner.server.queue_source import TOKEN_PLACEHOLDER, QueuedJob, QueueSource
from pyrunner.server.source import RunnerIdentity, Verdict
from pyrunner.server.submit import PipelineOrder, open_order

log = logging.getLogger(__name__)

_decode = msgspec.json.Decoder(PipelineOrder).decode


@dataclass(kw_only=True)
class _Run:
    """One pipeline that is not over; `latest` maps jobs to the queue ids of their latest tries."""

    id: int
    graph: Graph
    context: RunContext
    schedule: Schedule
    latest: dict[str, int] = field(default_factory=dict)


class PipelineQueue:
    """The coordinator's `JobSource`: single jobs and pipelines in one queue. Safe from any thread."""

    def __init__(self, database: Database) -> None:
        self.queue = QueueSource(database)
        self._database = database
        self._lock = threading.RLock()
        self._runs: dict[int, _Run] = {}
        verdicts = {record.id: record.verdict for record in database.jobs() if record.verdict}
        for pipeline_id, definition in database.query("SELECT id, definition FROM pipelines WHERE state = 'running'"):
            self._resume(pipeline_id, definition, verdicts)

    # --- pipelines --------------------------------------------------------------------------------------------

    def submit(self, order: PipelineOrder) -> int:
        """Start a pipeline; returns its id.

        Raises:
            PipelineError: the file is wrong.
            UsageError: there is no such job.
            msgspec.ValidationError: a field has the wrong type.
        """
        open_order(order, 0)
        with self._lock:
            pipeline_id = self._database.change(
                "INSERT INTO pipelines (definition, state, created_at) VALUES (?, 'running', ?)",
                (msgspec.json.encode(order), time.time()),
            )
            run = self._open(pipeline_id, order)
            self._enqueue(run, run.schedule.handle(Begin()))
            self._close_if_over(run)
        return pipeline_id

    def cancel(self, job_id: int) -> bool:
        """Cancel a job that no runner has taken; whether it was one."""
        with self._lock:
            if not self.queue.cancel(job_id):
                return False
            self._ended(job_id, Verdict(state="canceled"))
        return True

    def _open(self, pipeline_id: int, order: PipelineOrder) -> _Run:
        graph, context = open_order(order, pipeline_id)
        run = _Run(id=pipeline_id, graph=graph, context=context, schedule=Schedule(graph))
        self._runs[pipeline_id] = run
        return run

    def _enqueue(self, run: _Run, names: list[str]) -> None:
        for name in names:
            job = run.graph.jobs[name]
            sources = [
                Dependency(id=run.latest[s.name], name=s.name) for s in run.graph.sources(job) if s.name in run.latest
            ]

            def build(job_id: int, name: str = name, sources: list[Dependency] = sources) -> dict[str, Any]:
                job = run.graph.jobs[name]
                payload = job_payload(job, run.context, job_id, TOKEN_PLACEHOLDER, sources)
                built: dict[str, Any] = msgspec.to_builtins(payload)
                return built

            tags = job_tags(job, run.context)
            run.latest[name] = self.queue.submit_built(name, build, tags=tags, pipeline_id=run.id)

    def _ended(self, job_id: int, verdict: Verdict) -> None:
        job = self.queue.job(job_id)
        run = self._runs.get(job.pipeline_id) if job else None
        if job is None or run is None or run.latest.get(job.name) != job_id:
            return
        self._enqueue(run, run.schedule.handle(_end(job.name, verdict)))
        self._close_if_over(run)

    def _close_if_over(self, run: _Run) -> None:
        if run.schedule.idle:
            outcome = run.schedule.outcome.value
            self._database.change("UPDATE pipelines SET state = ? WHERE id = ?", (outcome, run.id))
            del self._runs[run.id]

    def _resume(self, pipeline_id: int, definition: bytes, verdicts: dict[int, Verdict]) -> None:
        try:
            run = self._open(pipeline_id, _decode(definition))
        except (PyrunnerError, msgspec.MsgspecError) as error:
            # written by a version that read the file otherwise; its open jobs still run
            log.warning("Pipeline cannot go on", extra={"pipeline": pipeline_id, "error": str(error)})
            return
        tries: dict[str, list[QueuedJob]] = {}
        for job in self.queue.jobs_of(pipeline_id):
            tries.setdefault(job.name, []).append(job)
        ready = run.schedule.handle(Begin())
        while ready:
            name = ready.pop(0)
            known = tries.get(name)
            if not known:
                self._enqueue(run, [name])
                continue
            job = known.pop(0)
            run.latest[name] = job.id
            if job.state == "taken":
                run.schedule.handle(Started(job=name))
            elif job.state != "pending":
                verdict = verdicts.get(job.id) if job.state == "done" else None
                ready += run.schedule.handle(_end(name, verdict or Verdict(state="canceled")))
        self._close_if_over(run)

    # --- JobSource --------------------------------------------------------------------------------------------

    def take(self, runner: RunnerIdentity) -> JobResponse | None:
        """See `JobSource`."""
        return self.queue.take(runner)

    def started(self, job_id: int) -> None:
        """See `JobSource`."""
        with self._lock:
            job = self.queue.job(job_id)
            run = self._runs.get(job.pipeline_id) if job else None
            if job is not None and run is not None:
                run.schedule.handle(Started(job=job.name))

    def returned(self, job_id: int) -> None:
        """See `JobSource`."""
        self.queue.returned(job_id)

    def finished(self, job_id: int, verdict: Verdict) -> None:
        """See `JobSource`."""
        with self._lock:
            self.queue.finished(job_id, verdict)
            self._ended(job_id, verdict)

    def subscribe(self, notify: Callable[[], None]) -> None:
        """See `JobSource`."""
        self.queue.subscribe(notify)


def _end(name: str, verdict: Verdict) -> Ended:
    state = {"success": State.SUCCESS, "canceled": State.CANCELED}.get(verdict.state, State.FAILED)
    return Ended(job=name, state=state, reason=verdict.failure_reason, exit_code=verdict.exit_code)
