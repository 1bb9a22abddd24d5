from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrunner.api.wire import Info, JobResponse
from pyrunner.pipeline.graph import whole
from pyrunner.pipeline.job import Pipeline
from pyrunner.pipeline.schedule import State
from pyrunner.pipeline.variables import RunContext
from pyrunner.server.pipeline_source import Change, PipelineSource
from pyrunner.server.source import RunnerIdentity, Verdict

Load = Callable[[str], Pipeline]

CONTEXT = RunContext(server_url="http://127.0.0.1:1", sha="a" * 40, overrides={"KIND": "big"})


def runner(*tags: str, untagged: bool = True) -> RunnerIdentity:
    return RunnerIdentity(
        id=1, description="r", system_id="s", tags=frozenset(tags), run_untagged=untagged, info=Info()
    )


class Run:
    """A source with everything that it reports."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.changes: list[Change] = []
        self.notified = 0
        self.source = PipelineSource(whole(pipeline), observe=self.changes.append)
        self.source.subscribe(self._notify)

    def _notify(self) -> None:
        self.notified += 1

    def begin(self) -> None:
        self.source.begin(CONTEXT)

    def take(self, name: str = "", by: RunnerIdentity | None = None) -> JobResponse:
        job = self.source.take(by or runner())
        assert job is not None
        assert name in ("", job.job_info.name)
        return job

    def end(self, job: JobResponse, state: str = "success", code: int = 0) -> None:
        self.source.started(job.id)
        reason = "script_failure" if state == "failed" else ""
        self.source.finished(job.id, Verdict(state=state, failure_reason=reason, exit_code=code))


@pytest.fixture
def run(load: Load) -> Callable[[str], Run]:
    def begun(text: str) -> Run:
        made = Run(load(text))
        made.begin()
        return made

    return begun


def test_nothing_is_given_before_the_run_begins(load: Load) -> None:
    made = Run(load("job: {script: x}"))
    assert made.source.take(runner()) is None
    made.begin()
    assert made.notified == 1
    assert made.take("job").variables


def test_a_job_is_given_once_and_its_end_brings_the_next(run: Callable[[str], Run]) -> None:
    made = run("a: {stage: build, script: x, artifacts: {paths: [o]}}\nb: {script: y}")
    first = made.take("a")
    assert made.source.take(runner()) is None
    made.end(first)
    assert made.notified == 2
    second = made.take("b")
    assert [(item.id, item.name) for item in second.dependencies] == [(first.id, "a")]
    assert first.token != second.token
    made.end(second)
    assert (made.source.over, made.source.outcome) == (True, State.SUCCESS)
    assert [(change.job, change.state.value) for change in made.changes] == [
        ("a", "pending"),
        ("a", "running"),
        ("a", "success"),
        ("b", "pending"),
        ("b", "running"),
        ("b", "success"),
    ]


def test_a_retry_and_a_returned_job_are_new_tries_with_new_ids(run: Callable[[str], Run]) -> None:
    made = run("a: {script: x, retry: 1}")
    first = made.take()
    made.source.returned(first.id)
    second = made.take()
    made.end(second, "failed", 1)
    third = made.take()
    assert len({first.id, second.id, third.id}) == 3
    assert len({first.token, second.token, third.token}) == 3
    made.end(third)
    assert made.source.outcome is State.SUCCESS


def test_late_reports_about_an_old_try_change_nothing(run: Callable[[str], Run]) -> None:
    made = run("a: {script: x, retry: 1}")
    first = made.take()
    made.end(first, "failed", 1)
    made.source.finished(first.id, Verdict(state="success"))
    made.source.started(first.id)
    assert made.changes[-1].state is State.PENDING
    assert not made.source.over


def test_tags_decide_which_runner_gets_a_job(run: Callable[[str], Run]) -> None:
    made = run("a: {script: x, tags: [linux, $KIND]}\nb: {script: x}")
    assert made.source.take(runner("linux", untagged=False)) is None
    assert made.take("a", runner("linux", "big", "more", untagged=False)).job_info.name == "a"
    assert made.source.take(runner("linux", untagged=False)) is None
    made.take("b", runner("linux"))


def test_cancel_takes_back_what_nobody_has_and_waits_for_the_rest(run: Callable[[str], Run]) -> None:
    made = run("a: {script: x}\nb: {script: x}\nc: {stage: deploy, script: x}")
    taken = made.take("a")
    made.source.started(taken.id)
    assert made.source.cancel() == [taken.id]
    assert made.source.take(runner()) is None
    assert not made.source.over
    made.source.finished(taken.id, Verdict(state="failed", failure_reason="runner_interrupted"))
    assert (made.source.over, made.source.outcome) == (True, State.CANCELED)


def test_a_forgiven_failure_is_told_as_such(run: Callable[[str], Run]) -> None:
    made = run("a: {script: x, allow_failure: true}")
    made.end(made.take(), "failed", 3)
    last = made.changes[-1]
    assert (last.state, last.forgiven, last.verdict) == (
        State.FAILED,
        True,
        Verdict(state="failed", failure_reason="script_failure", exit_code=3),
    )
    assert made.source.outcome is State.SUCCESS


def test_a_run_without_jobs_is_over_at_once(load: Load) -> None:
    made = Run(load("a: {script: x, when: manual}"))
    made.begin()
    assert (made.source.over, made.source.outcome) == (True, State.SUCCESS)
