"""The jobs of one pipeline run as a `JobSource`: ready jobs are handed out, verdicts move the pipeline on."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from pyrunner.api.wire import Dependency, JobResponse
from pyrunner.pipeline.graph import Graph
from pyrunner.pipeline.job import Job
from pyrunner.pipeline.payload import job_payload
from pyrunner.pipeline.schedule import (
    Begin,
    Cancel,
    Ended,
    Event,
    Returned,
    Schedule,
    Started,
    State,
)
from pyrunner.pipeline.variables import RunContext, job_tags
from pyrunner.server.source import RunnerIdentity, Verdict
from pyrunner.server.tokens import new_job_token


class Change(Struct, frozen=True, kw_only=True):
    """A job has a new state; `job_id` is that of its latest try, 0 when it was never handed out."""

    job: str
    state: State
    job_id: int = 0
    #: How its latest try ended, when it has.
    verdict: Verdict | None = None
    #: The job failed and was allowed to.
    forgiven: bool = False


class PipelineSource:
    """One run of a pipeline; safe from any thread.

    Every try of a job has its own id from `ids` and its own token. `observe` is told about each change of a job's
    state, in order, under the source's lock: it must be quick and must not call back.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        ids: Iterator[int] | None = None,
        observe: Callable[[Change], None] = lambda change: None,
    ) -> None:
        self._graph = graph
        self._ids = ids or itertools.count(1)
        self._observe = observe
        self._lock = threading.Lock()
        self._schedule = Schedule(graph)
        self._context: RunContext | None = None
        self._ready: list[str] = []
        #: Id of a try → job, for tries that have not ended; and the latest try of each job.
        self._open: dict[int, str] = {}
        self._latest: dict[str, int] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._known = dict.fromkeys(graph.jobs, State.CREATED)
        self._notify: list[Callable[[], None]] = []
        self._over = threading.Event()

    # --- steering ---------------------------------------------------------------------------------------------

    def begin(self, context: RunContext) -> None:
        """Start the run; `context` holds what is the same for all its jobs."""
        self._context = context
        self._handle(Begin())

    def cancel(self) -> list[int]:
        """Start nothing more; returns the ids of the tries that are out with runners."""
        self._handle(Cancel())
        with self._lock:
            return list(self._open)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run is over; whether it is."""
        return self._over.wait(timeout)

    @property
    def over(self) -> bool:
        """Whether nothing runs and nothing can run any more; when it is true, all changes have been told."""
        with self._lock:
            return self._over.is_set()

    @property
    def outcome(self) -> State:
        """``success``, ``failed`` or ``canceled``, so far."""
        with self._lock:
            return self._schedule.outcome

    # --- JobSource --------------------------------------------------------------------------------------------

    def take(self, runner: RunnerIdentity) -> JobResponse | None:
        """The first ready job whose tags this runner has."""
        with self._lock:
            context = self._context
            if context is None:
                return None
            for name in self._ready:
                job = self._graph.jobs[name]
                if _accepts(runner, job, context):
                    self._ready.remove(name)
                    return self._hand_out(job, context, runner)
        return None

    def started(self, job_id: int) -> None:
        """See `JobSource`."""
        self._handle_try(job_id, lambda name: Started(job=name), ends=False)

    def returned(self, job_id: int) -> None:
        """See `JobSource`: the job is ready again, its next try gets a new id."""
        self._handle_try(job_id, lambda name: Returned(job=name), ends=True)

    def finished(self, job_id: int, verdict: Verdict) -> None:
        """See `JobSource`."""
        state = {"success": State.SUCCESS, "canceled": State.CANCELED}.get(verdict.state, State.FAILED)

        def ended(name: str) -> Event:
            self._verdicts[name] = verdict
            return Ended(job=name, state=state, reason=verdict.failure_reason, exit_code=verdict.exit_code)

        self._handle_try(job_id, ended, ends=True)

    def subscribe(self, notify: Callable[[], None]) -> None:
        """See `JobSource`."""
        self._notify.append(notify)

    # --- inside -----------------------------------------------------------------------------------------------

    def _hand_out(self, job: Job, context: RunContext, runner: RunnerIdentity) -> JobResponse:
        number = next(self._ids)
        self._open[number] = job.name
        self._latest[job.name] = number
        token = new_job_token()
        return job_payload(job, context, number, token, self._dependencies(job), _moment(runner))

    def _dependencies(self, job: Job) -> list[Dependency]:
        """Earlier tries whose archives the job downloads; the server adds their files and tokens."""
        return [
            Dependency(id=self._latest[source.name], name=source.name)
            for source in self._graph.sources(job)
            if source.name in self._latest
        ]

    def _handle_try(self, job_id: int, event: Callable[[str], Event], *, ends: bool) -> None:
        with self._lock:
            name = self._open.pop(job_id, None) if ends else self._open.get(job_id)
            if name is None:
                return
            more = self._apply(event(name))
        if more:
            self._tell()

    def _handle(self, event: Event) -> None:
        with self._lock:
            more = self._apply(event)
        if more:
            self._tell()

    def _tell(self) -> None:
        for notify in self._notify:
            notify()

    def _apply(self, event: Event) -> bool:
        """Move on; whether there are jobs that were not there before."""
        ready = self._schedule.handle(event)
        if isinstance(event, Cancel):
            self._ready.clear()
        self._ready += ready
        for name, known in self._known.items():
            state = self._schedule.state(name)
            # a retried job goes from failed to pending in one step, which is a change all the same
            if state is not known or (isinstance(event, Ended) and event.job == name):
                self._known[name] = state
                self._observe(self._change(name, state))
        if self._schedule.idle:
            self._over.set()
        return bool(ready)

    def _change(self, name: str, state: State) -> Change:
        return Change(
            job=name,
            state=state,
            job_id=self._latest.get(name, 0),
            verdict=self._verdicts.get(name),
            forgiven=self._schedule.forgiven(name),
        )


def _moment(runner: RunnerIdentity) -> dict[str, str]:
    return {
        "CI_JOB_STARTED_AT": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "CI_RUNNER_ID": str(runner.id),
        "CI_RUNNER_DESCRIPTION": runner.description,
        "CI_RUNNER_TAGS": json.dumps(sorted(runner.tags)),
    }


def _accepts(runner: RunnerIdentity, job: Job, context: RunContext) -> bool:
    if not job.tags:
        return runner.run_untagged
    return runner.tags.issuperset(job_tags(job, context))
