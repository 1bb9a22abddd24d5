"""facts/job-lifecycle.md section 3: what a login profile that fails does to a job of the shell executor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_checks import plain_log, sections_of
from pyrunner.testing.job_life import job
from pyrunner.testing.runner_service import RunnerService


@pytest.mark.parametrize("profile", ["exit 7", "trap 'exit 7' EXIT"])
def test_3_failing_profile_ends_the_job_before_its_first_script(profile: str, tmp_path: Path) -> None:
    (Path(os.environ["HOME"]) / ".bash_profile").write_text(f"{profile}\n")
    with FakeGitLab(update_interval=1, long_poll=1) as gitlab, RunnerService(gitlab, tmp_path):
        ended = gitlab.wait_for(gitlab.submit(job("echo script", after=("echo after",))), "failed")
    assert sections_of(ended.trace) == ["prepare_executor", "prepare_script"]
    assert plain_log(ended.trace).endswith(
        "ERROR: Job failed: prepare environment: exit status 7. Check "
        "https://docs.gitlab.com/runner/shells/#shell-profile-loading for more information\n"
    )
    assert ended.updates[-1]["failure_reason"] == "script_failure"
    assert ended.updates[-1]["exit_code"] == 7
