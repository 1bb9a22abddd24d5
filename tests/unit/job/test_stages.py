"""The stage plan as plain calls: no executor, no clock."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.errors import JobCanceled, JobFailure, JobTimeout, SystemFailure
from pyrunner.job.settings import Attempts
from pyrunner.job.stages import (
    Action,
    Finish,
    Pause,
    Run,
    SetStatus,
    StageEnd,
    StagePlan,
    Warn,
    is_predefined,
    retry_pause,
    stage_title,
)

FAILED = JobFailure("exit status 1", job_exit_code=1)
ALL_GOOD = [
    "prepare_script",
    "get_sources",
    "restore_cache",
    "download_artifacts",
    "step_script",
    "step_release",
    "after_script",
    "archive_cache",
    "upload_artifacts_on_success",
    "cleanup_file_variables",
]
Ends = Mapping[str, BaseException | list[BaseException | None]]


def play(
    plan: StagePlan, ends: Ends | None = None, over_at: str = "", over: BaseException | None = None
) -> tuple[list[str], list[Action]]:
    """Stages in the order in which they ran, and all other actions."""
    queues = {stage: list(end) if isinstance(end, list) else [end] * 20 for stage, end in (ends or {}).items()}
    ran: list[str] = []
    said: list[Action] = []
    actions = plan.start()
    while True:
        assert actions
        assert all(not isinstance(action, (Run, Finish)) for action in actions[:-1])
        said += [action for action in actions if not isinstance(action, Run)]
        last = actions[-1]
        if isinstance(last, Finish):
            return ran, said
        assert isinstance(last, Run)
        ran.append(last.stage)
        assert len(ran) < 100
        queue = queues.get(last.stage)
        error = queue.pop(0) if queue else None
        job_over = over if last.stage == over_at else None
        actions = plan.handle(StageEnd(stage=last.stage, error=error or job_over, job_over=job_over))


def verdict(said: list[Action]) -> BaseException | None:
    assert isinstance(said[-1], Finish)
    return said[-1].error


def plan(**options: object) -> StagePlan:
    return StagePlan(["script", "after_script", "Release"], **options)  # type: ignore[arg-type]


def test_success_runs_every_stage_in_order() -> None:
    ran, said = play(plan())
    assert ran == ALL_GOOD
    assert said == [SetStatus(status="success"), Finish(error=None)]


def test_failing_prepare_script_ends_the_job_at_once() -> None:
    ran, said = play(plan(), {"prepare_script": FAILED})
    assert ran == ["prepare_script"]
    error = verdict(said)
    assert isinstance(error, JobFailure)
    assert error.job_exit_code == 1
    assert str(error) == (
        "prepare environment: exit status 1. "
        "Check https://docs.gitlab.com/runner/shells/#shell-profile-loading for more information"
    )


@pytest.mark.parametrize("stage", ["get_sources", "restore_cache", "download_artifacts"])
def test_failing_sources_skip_scripts_but_not_uploads(stage: str) -> None:
    ran, said = play(plan(), {stage: FAILED})
    assert ran[ran.index(stage) + 1 :] == [
        "archive_cache_on_failure",
        "upload_artifacts_on_failure",
        "cleanup_file_variables",
    ]
    assert verdict(said) is FAILED
    assert not any(isinstance(action, SetStatus) for action in said)


def test_get_sources_timeout_ends_the_job_without_uploads() -> None:
    error = JobTimeout("get sources timeout: exceeded timeout of 1s")
    ran, said = play(plan(attempts=Attempts(get_sources=5)), {"get_sources": error})
    assert ran == ["prepare_script", "get_sources"]
    assert verdict(said) is error


def test_worktree_is_cleared_before_the_second_try_only() -> None:
    ran, said = play(plan(attempts=Attempts(get_sources=4)), {"get_sources": [FAILED, FAILED, FAILED, None]})
    assert ran[1:6] == ["get_sources", "clear_worktree", "get_sources", "get_sources", "get_sources"]
    assert [action.seconds for action in said if isinstance(action, Pause)] == [5, 10, 20]
    assert [action.text for action in said if isinstance(action, Warn)] == ["Retrying..."] * 3
    assert verdict(said) is None


def test_tries_run_out() -> None:
    ran, said = play(plan(attempts=Attempts(restore_cache=2)), {"restore_cache": FAILED})
    assert ran.count("restore_cache") == 2
    assert verdict(said) is FAILED


def test_failing_step_stops_the_next_but_not_after_script() -> None:
    ran, said = play(plan(), {"step_script": FAILED})
    assert ran[4:] == [
        "step_script",
        "after_script",
        "archive_cache_on_failure",
        "upload_artifacts_on_failure",
        "cleanup_file_variables",
    ]
    assert SetStatus(status="failed") in said
    assert verdict(said) is FAILED


def test_cancel_runs_after_script_as_canceled() -> None:
    error = JobCanceled()
    ran, said = play(plan(), {"step_script": error})
    assert "after_script" in ran
    assert said[:2] == [Warn(text="script canceled externally (UI, API)"), SetStatus(status="canceled")]
    assert verdict(said) is error


def test_script_timeout_runs_after_script_as_timedout() -> None:
    error = JobTimeout("script timeout: context deadline exceeded")
    ran, said = play(plan(), {"step_script": error})
    assert "after_script" in ran
    assert SetStatus(status="timedout") in said
    assert isinstance(said[0], Warn)
    assert said[0].text.startswith("step_script could not run to completion because the timeout was exceeded.")
    assert verdict(said) is error


@pytest.mark.parametrize("stage", ["get_sources", "step_script", "after_script", "archive_cache"])
def test_job_over_ends_everything_at_once(stage: str) -> None:
    cause = JobCanceled()
    ran, said = play(plan(), over_at=stage, over=cause)
    assert ran[-1] == stage
    assert verdict(said) is cause


def test_job_over_beats_the_script_error() -> None:
    cause = JobTimeout("execution took longer than 1s seconds")
    _, said = play(plan(), {"step_script": FAILED}, over_at="after_script", over=cause)
    assert verdict(said) is cause


def test_failing_after_script_is_only_told() -> None:
    ran, said = play(plan(), {"after_script": FAILED})
    assert "archive_cache" in ran
    assert Warn(text="after_script failed, but job will continue unaffected: exit status 1") in said
    assert verdict(said) is None


def test_after_script_may_fail_the_job() -> None:
    ran, said = play(plan(after_script_ignore_errors=False), {"after_script": FAILED})
    assert "archive_cache_on_failure" in ran
    assert verdict(said) is FAILED


def test_script_error_beats_after_script_error() -> None:
    first, second = FAILED, JobFailure("exit status 2", job_exit_code=2)
    _, said = play(plan(after_script_ignore_errors=False), {"step_script": first, "after_script": second})
    assert verdict(said) is first


def test_cache_error_beats_artifact_error_and_cleanup_errors_do_not_count() -> None:
    cache, artifact, cleanup = SystemFailure("c"), SystemFailure("a"), SystemFailure("x")
    ends = {"archive_cache": cache, "upload_artifacts_on_success": artifact, "cleanup_file_variables": cleanup}
    ran, said = play(plan(), ends)
    assert ran == ALL_GOOD
    assert verdict(said) is cache
    assert verdict(play(plan(), {"cleanup_file_variables": cleanup})[1]) is None


def test_retry_pauses() -> None:
    assert [retry_pause(n, exponential=True) for n in (1, 2, 6, 7, 9)] == [5, 10, 160, 300, 300]
    assert [retry_pause(n, exponential=False) for n in (1, 2, 3, 4, 9)] == [1, 2, 4, 5, 5]


def test_titles_and_environment() -> None:
    assert stage_title("step_script") == 'Executing "step_script" stage of the job script'
    assert stage_title("restore_cache") == "Restoring cache"
    assert [name for name in (*ALL_GOOD, "clear_worktree") if not is_predefined(name)] == [
        "step_script",
        "step_release",
        "after_script",
    ]


_STAGES = [*ALL_GOOD, "clear_worktree", "archive_cache_on_failure", "upload_artifacts_on_failure"]
_ERRORS = st.sampled_from([None, FAILED, JobCanceled(), JobTimeout("t"), SystemFailure("s"), OSError("disk")])


@given(
    st.dictionaries(st.sampled_from(_STAGES), st.lists(_ERRORS, max_size=12)),
    st.integers(1, 10),
    st.booleans(),
    st.booleans(),
)
def test_every_job_ends_and_clean_up_runs_once(
    ends: dict[str, list[BaseException | None]], attempts: int, backoff: bool, ignore: bool
) -> None:
    tries = Attempts(get_sources=attempts, restore_cache=attempts, download_artifacts=attempts)
    ran, said = play(
        plan(attempts=tries, exponential_backoff=backoff, after_script_ignore_errors=ignore),
        {stage: list(errors) for stage, errors in ends.items()},
    )
    early = ran[-1] in ("prepare_script", "get_sources")
    assert ran.count("cleanup_file_variables") == (0 if early else 1)
    assert ran.count("clear_worktree") <= 1
    assert not {"archive_cache", "archive_cache_on_failure"} <= set(ran)
    if verdict(said) is None:
        assert "upload_artifacts_on_success" in ran
