"""Which job may run now: a pure state machine over a `Graph`, with GitLab's rules.

A job goes by stages (after all jobs of earlier stages) or by its ``needs``. What the jobs before it came to together
decides: ``on_success`` runs after success, ``on_failure`` after a failure that was not allowed, ``always`` in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from pyrunner.pipeline.graph import Graph
from pyrunner.pipeline.job import Job, When


class State(StrEnum):
    """State of a job, in GitLab's words."""

    CREATED = "created"
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"
    MANUAL = "manual"


ENDED = frozenset({State.SUCCESS, State.FAILED, State.CANCELED, State.SKIPPED})


class _Before(StrEnum):
    """What the jobs before a job came to together."""

    SUCCESS = "success"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"
    OPEN = "open"


class Begin(Struct, frozen=True, kw_only=True):
    """The pipeline starts."""


class Started(Struct, frozen=True, kw_only=True):
    """A job that was pending runs."""

    job: str


class Returned(Struct, frozen=True, kw_only=True):
    """A job was given to a runner that never started it."""

    job: str


class Ended(Struct, frozen=True, kw_only=True):
    """A job ended with `state` ``success``, ``failed`` or ``canceled``."""

    job: str
    state: State
    reason: str = ""
    exit_code: int = 0


class Cancel(Struct, frozen=True, kw_only=True):
    """Nothing more shall start."""


Event = Begin | Started | Returned | Ended | Cancel


class Schedule:
    """The states of all jobs of a run. Not thread-safe."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._states = dict.fromkeys(graph.jobs, State.CREATED)
        self._failures = dict.fromkeys(graph.jobs, 0)
        self._forgiven: set[str] = set()
        self._canceled = False
        self._stages = [[job.name for job in jobs] for jobs in graph.by_stage().values()]

    def handle(self, event: Event) -> list[str]:
        """Take note of `event`; returns the jobs that became pending by it, in order."""
        match event:
            case Begin():
                return self._advance()
            case Started(job=name):
                self._states[name] = State.RUNNING
                return []
            case Returned(job=name):
                return self._given_back(name)
            case Ended():
                return self._end(event)
            case Cancel():
                self._canceled = True
                for name, state in self._states.items():
                    if state in (State.CREATED, State.PENDING, State.MANUAL):
                        self._states[name] = State.CANCELED
                return []

    def state(self, name: str) -> State:
        """The state of a job."""
        return self._states[name]

    def failures(self, name: str) -> int:
        """How often the job has failed so far."""
        return self._failures[name]

    def forgiven(self, name: str) -> bool:
        """Whether the job failed and was allowed to."""
        return name in self._forgiven

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing can: the run is over (jobs behind a blocking manual job stay created)."""
        return not any(state in (State.PENDING, State.RUNNING) for state in self._states.values())

    @property
    def outcome(self) -> State:
        """What the whole run came to so far: failed before canceled before success."""
        bad = [
            state for name, state in self._states.items()
            if state in (State.FAILED, State.CANCELED) and name not in self._forgiven
        ]  # fmt: skip
        if State.FAILED in bad:
            return State.FAILED
        return State.CANCELED if bad or self._canceled else State.SUCCESS

    def _given_back(self, name: str) -> list[str]:
        if self._canceled:
            self._states[name] = State.CANCELED
            return []
        self._states[name] = State.PENDING
        return [name]

    def _end(self, event: Ended) -> list[str]:
        name, job = event.job, self._graph.jobs[event.job]
        state = State.CANCELED if self._canceled and event.state is State.FAILED else event.state
        self._states[name] = state
        if state is State.FAILED:
            self._failures[name] += 1
            if job.retry.applies(self._failures[name], event.reason, event.exit_code):
                self._states[name] = State.PENDING
                return [name]
            if job.allow_failure.allows(event.exit_code):
                self._forgiven.add(name)
        return self._advance()

    def _advance(self) -> list[str]:
        """Decide about every job whose predecessors are through, until nothing changes any more."""
        ready: list[str] = []
        if self._canceled:
            return ready
        changed = True
        while changed:
            changed = False
            before = _Before.SUCCESS
            seen: list[str] = []
            for names in self._stages:
                for name in names:
                    if self._states[name] is State.CREATED and self._decide(name, before):
                        changed = True
                        if self._states[name] is State.PENDING:
                            ready.append(name)
                seen += names
                before = self._together(seen)
        return ready

    def _decide(self, name: str, before: _Before) -> bool:
        """Move `name` out of `created` if its time has come; `before` is what earlier stages came to."""
        job = self._graph.jobs[name]
        needed = self._graph.needed(job)
        if needed is not None:
            before = self._needed_together(needed)
        if before is _Before.OPEN:
            return False
        self._states[name] = self._next(job, before, by_needs=needed is not None)
        return True

    def _next(self, job: Job, before: _Before, *, by_needs: bool) -> State:
        good = {_Before.SUCCESS} if by_needs else {_Before.SUCCESS, _Before.SKIPPED}
        if job.when is When.ALWAYS:
            runs = before is not _Before.CANCELED
        elif job.when is When.ON_FAILURE:
            runs = before is _Before.FAILED
        else:
            runs = before in good
        if not runs:
            return State.SKIPPED
        if job.when is When.MANUAL and job.name not in self._graph.played:
            return State.MANUAL
        return State.PENDING

    def _together(self, names: Iterable[str]) -> _Before:
        states = {name: self._states[name] for name in names}
        if any(not self._through(name) for name in states):
            return _Before.OPEN
        counted = {state for name, state in states.items() if name not in self._forgiven and state is not State.MANUAL}
        if State.FAILED in counted:
            return _Before.FAILED
        if State.CANCELED in counted:
            return _Before.CANCELED
        return _Before.SKIPPED if counted == {State.SKIPPED} else _Before.SUCCESS

    def _needed_together(self, names: Iterable[str]) -> _Before:
        """As `_together`, but one needed job that did not run is enough to count as skipped."""
        together = self._together(names)
        if together is _Before.SUCCESS and any(self._states[name] in (State.SKIPPED, State.MANUAL) for name in names):
            return _Before.SKIPPED
        return together

    def _through(self, name: str) -> bool:
        state = self._states[name]
        if state is State.MANUAL:
            return self._graph.jobs[name].allow_failure.always
        return state in ENDED
