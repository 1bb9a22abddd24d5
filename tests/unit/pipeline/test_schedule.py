from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.pipeline.graph import choose, whole
from pyrunner.pipeline.job import Pipeline
from pyrunner.pipeline.load import load_pipeline
from pyrunner.pipeline.schedule import Begin, Cancel, Ended, Returned, Schedule, Started, State

Load = Callable[[str], Pipeline]


def play(schedule: Schedule, failing: dict[str, int] | None = None) -> list[str]:
    """Run everything; `failing` maps jobs to the exit code they always fail with. The jobs in order of their tries."""
    ready, order = schedule.handle(Begin()), []
    while ready:
        name = ready.pop(0)
        order.append(name)
        schedule.handle(Started(job=name))
        code = (failing or {}).get(name, 0)
        state = State.FAILED if code else State.SUCCESS
        ready += schedule.handle(Ended(job=name, state=state, reason="script_failure", exit_code=code))
    assert schedule.idle
    return order


def states(schedule: Schedule, pipeline: Pipeline) -> dict[str, str]:
    return {name: schedule.state(name).value for name in pipeline.jobs}


def test_stages_wait_for_each_other(load: Load) -> None:
    pipeline = load("""
        last: {stage: .post, script: x}
        ship: {stage: deploy, script: x}
        one: {stage: test, script: x}
        two: {stage: test, script: x}
        first: {stage: .pre, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert schedule.handle(Begin()) == ["first"]
    assert schedule.handle(Ended(job="first", state=State.SUCCESS)) == ["one", "two"]
    assert schedule.handle(Ended(job="two", state=State.SUCCESS)) == []
    assert schedule.handle(Ended(job="one", state=State.SUCCESS)) == ["ship"]
    assert schedule.handle(Ended(job="ship", state=State.SUCCESS)) == ["last"]
    assert not schedule.idle


def test_needs_do_not_wait_for_stages(load: Load) -> None:
    pipeline = load("""
        slow: {stage: build, script: x}
        build: {stage: build, script: x}
        free: {stage: deploy, script: x, needs: []}
        unit: {stage: test, script: x, needs: [build]}
        all: {stage: test, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert schedule.handle(Begin()) == ["slow", "build", "free"]
    assert schedule.handle(Ended(job="build", state=State.SUCCESS)) == ["unit"]
    assert schedule.handle(Ended(job="slow", state=State.SUCCESS)) == ["all"]


def test_a_failure_skips_what_follows_and_starts_what_waits_for_one(load: Load) -> None:
    pipeline = load("""
        build: {stage: build, script: x}
        unit: {stage: test, script: x}
        dag: {stage: test, script: x, needs: [build]}
        rescue: {stage: test, script: x, when: on_failure}
        tidy: {stage: deploy, script: x, when: always}
        ship: {stage: deploy, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert play(schedule, {"build": 1}) == ["build", "rescue", "tidy"]
    assert states(schedule, pipeline) == {
        "build": "failed",
        "unit": "skipped",
        "dag": "skipped",
        "rescue": "success",
        "tidy": "success",
        "ship": "skipped",
    }
    assert schedule.outcome is State.FAILED


def test_on_failure_is_skipped_after_success_and_does_not_stop_later_stages(load: Load) -> None:
    pipeline = load("""
        build: {stage: build, script: x}
        rescue: {stage: test, script: x, when: on_failure}
        ship: {stage: deploy, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert play(schedule) == ["build", "ship"]
    assert schedule.outcome is State.SUCCESS


def test_an_allowed_failure_is_no_failure_for_what_follows(load: Load) -> None:
    pipeline = load("""
        a: {stage: build, script: x, allow_failure: true}
        b: {stage: build, script: x, allow_failure: {exit_codes: 42}}
        rescue: {stage: test, script: x, when: on_failure}
        dag: {stage: test, script: x, needs: [a, b]}
        ship: {stage: deploy, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert play(schedule, {"a": 1, "b": 42}) == ["a", "b", "dag", "ship"]
    assert (schedule.forgiven("a"), schedule.forgiven("b"), schedule.outcome) == (True, True, State.SUCCESS)
    strict = Schedule(whole(pipeline))
    assert play(strict, {"b": 41}) == ["a", "b", "rescue"]
    assert strict.outcome is State.FAILED


def test_retries_run_again_and_stop_at_their_number(load: Load) -> None:
    pipeline = load("""
        a: {script: x, retry: 2}
        b: {script: x, retry: {max: 1, when: runner_system_failure}}
        c: {script: x, retry: {max: 2, exit_codes: [7]}}
        ship: {stage: deploy, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert sorted(play(schedule, {"a": 1, "b": 1, "c": 7})) == ["a", "a", "a", "b", "c", "c", "c"]
    assert schedule.failures("a") == 3


def test_a_retry_that_passes_is_a_success(load: Load) -> None:
    schedule = Schedule(whole(load("a: {script: x, retry: 1}\nb: {stage: deploy, script: x}")))
    schedule.handle(Begin())
    assert schedule.handle(Ended(job="a", state=State.FAILED, exit_code=1)) == ["a"]
    assert schedule.handle(Ended(job="a", state=State.SUCCESS)) == ["b"]
    assert schedule.outcome is State.SUCCESS


def test_a_manual_job_waits_for_its_name(load: Load) -> None:
    text = """
        build: {stage: build, script: x}
        ask: {stage: test, script: x, when: manual}
        after: {stage: test, script: x, needs: [ask]}
        ship: {stage: deploy, script: x}
    """
    pipeline = load(text)
    schedule = Schedule(whole(pipeline))
    assert play(schedule) == ["build", "ship"]
    assert states(schedule, pipeline) == {"build": "success", "ask": "manual", "after": "skipped", "ship": "success"}
    assert play(Schedule(choose(pipeline, ["ask", "after"]))) == ["ask", "after"]


def test_a_blocking_manual_job_holds_later_stages(load: Load) -> None:
    pipeline = load("""
        ask: {stage: test, script: x, when: manual, allow_failure: false}
        ship: {stage: deploy, script: x}
    """)
    schedule = Schedule(whole(pipeline))
    assert play(schedule) == []
    assert states(schedule, pipeline) == {"ask": "manual", "ship": "created"}
    assert schedule.outcome is State.SUCCESS


def test_cancel_starts_nothing_more_and_takes_failures_for_cancels(load: Load) -> None:
    pipeline = load("a: {script: x}\nb: {script: x, retry: 2}\nc: {stage: deploy, script: x, when: always}")
    schedule = Schedule(whole(pipeline))
    schedule.handle(Begin())
    schedule.handle(Started(job="b"))
    assert schedule.handle(Cancel()) == []
    assert not schedule.idle
    assert schedule.handle(Ended(job="b", state=State.FAILED, reason="runner_interrupted")) == []
    assert states(schedule, pipeline) == {"a": "canceled", "b": "canceled", "c": "canceled"}
    assert (schedule.idle, schedule.outcome) == (True, State.CANCELED)


def test_a_returned_job_is_ready_again(load: Load) -> None:
    schedule = Schedule(whole(load("a: {script: x}")))
    assert schedule.handle(Begin()) == ["a"]
    assert schedule.handle(Returned(job="a")) == ["a"]


WHENS = ("on_success", "on_failure", "always", "manual", "never")


@st.composite
def pipelines(draw: st.DrawFn) -> str:
    count = draw(st.integers(1, 8))
    lines = []
    for number in range(count):
        stage = draw(st.sampled_from((".pre", "build", "test", "deploy", ".post")))
        parts = [f"stage: {stage}", "script: x", f"when: {draw(st.sampled_from(WHENS))}"]
        if draw(st.booleans()):
            parts.append(f"allow_failure: {draw(st.sampled_from(('true', 'false')))}")
        if draw(st.booleans()):
            parts.append(f"retry: {draw(st.integers(0, 2))}")
        if number and draw(st.booleans()):
            needed = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3))
            parts.append(f"needs: [{', '.join(f'{{job: j{other}, optional: true}}' for other in needed)}]")
        lines.append(f"j{number}: {{{', '.join(parts)}}}")
    return "\n".join(lines)


@given(text=pipelines(), data=st.data())
def test_every_run_ends_and_no_job_starts_before_what_it_waits_for(text: str, data: st.DataObject) -> None:
    from pyrunner.base.errors import PipelineError

    try:
        pipeline = load_pipeline(text.encode(), "ci.yml")
    except PipelineError:
        return
    graph = whole(pipeline)
    schedule = Schedule(graph)
    ready = schedule.handle(Begin())
    tries = 0
    while ready:
        name = ready.pop(data.draw(st.integers(0, len(ready) - 1)))
        job = graph.jobs[name]
        needed = graph.needed(job)
        before = needed if needed is not None else [
            other.name for other in graph.jobs.values() if graph.rank(other) < graph.rank(job)
        ]  # fmt: skip
        done = {State.SUCCESS, State.FAILED, State.SKIPPED, State.MANUAL}
        assert all(schedule.state(other) in done for other in before)
        schedule.handle(Started(job=name))
        code = data.draw(st.sampled_from((0, 0, 1)))
        ended = Ended(job=name, state=State.FAILED if code else State.SUCCESS, reason="script_failure", exit_code=code)
        ready += schedule.handle(ended)
        tries += 1
        assert tries <= 3 * len(graph.jobs)
    assert schedule.idle
    blocked = any(schedule.state(name) is State.MANUAL for name in graph.jobs)
    assert blocked or State.CREATED not in {schedule.state(name) for name in graph.jobs}


@pytest.mark.parametrize("jobs", [2000])
def test_many_jobs_are_scheduled_in_linear_time(load: Load, jobs: int) -> None:
    text = "".join(f"j{n}: {{script: x, stage: {'build' if n % 2 else 'test'}}}\n" for n in range(jobs))
    schedule = Schedule(whole(load(text)))
    assert len(schedule.handle(Begin())) == jobs // 2
