"""facts/job-lifecycle.md 3.2: a job that was stopped and does not come to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_checks import plain_log
from pyrunner.testing.job_life import job
from pyrunner.testing.runner_service import RunnerService, service_options

STUBBORN = "trap '' TERM; touch {0}/begun; while [ ! -e {0}/gate ]; do echo still here; sleep 0.05; done"


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1, long_poll=1) as server:
        yield server


def test_verdict_does_not_wait_for_processes_that_ignore_their_end(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, {"limit": 1}, options=service_options(patience=0.5)) as runner:
        job_id = gitlab.submit(job(STUBBORN.format(tmp_path), after=("echo after",), runner_info={"timeout": 3}))
        try:
            stopped = gitlab.wait_for(job_id, "failed")
            log = plain_log(stopped.trace)
            assert log.endswith(
                "WARNING: Timed out waiting for the build to finish\n"
                "ERROR: Job failed: execution took longer than 3s seconds\n"
            )
            assert stopped.trace_matches
            assert stopped.updates[-1]["failure_reason"] == "job_execution_timeout"
            # its processes live, so its place is not given to another job
            assert runner.service.builds == 1
            waiting = gitlab.submit(job())
            assert gitlab.job(waiting).state == "pending"
        finally:
            (tmp_path / "gate").touch()
        gitlab.wait_for(waiting, "success")
        after = gitlab.job(job_id)
    assert (after.verdicts, after.final_updates) == (1, 1)
    assert after.trace == stopped.trace


def test_job_that_ends_in_time_says_nothing(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, options=service_options(patience=20)):
        begin = time.monotonic()
        stopped = gitlab.wait_for(gitlab.submit(job("sleep 60", runner_info={"timeout": 1})), "failed")
        assert time.monotonic() - begin < 10
    assert "Timed out waiting" not in plain_log(stopped.trace)
