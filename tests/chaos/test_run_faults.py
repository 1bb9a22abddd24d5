"""Many jobs at once while the server stumbles: every log arrives whole and every verdict once."""

from __future__ import annotations

from pathlib import Path

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import cut, drop, slow, status
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerService

JOBS = 60


def test_every_log_is_whole_and_every_verdict_is_told_once(tmp_path: Path) -> None:
    with FakeGitLab(update_interval=1) as gitlab:
        for skip in range(0, JOBS, 10):
            gitlab.inject("PATCH", "/trace$", status(500), skip=skip)
            gitlab.inject("PATCH", "/trace$", drop(handled=True), skip=skip + 1)
            gitlab.inject("PATCH", "/trace$", status(416, {"Range": "0-0"}), skip=skip + 2)
            gitlab.inject("PUT", r"/jobs/\d+$", status(502), skip=skip + 3)
            gitlab.inject("PUT", r"/jobs/\d+$", cut(), skip=skip + 4)
            gitlab.inject("PUT", r"/jobs/\d+$", slow(0.2, handled=True), skip=skip + 5)
            gitlab.inject("POST", "/jobs/request$", status(503), skip=skip + 6)
        settings = {"request_concurrency": 5, "job_status_final_update_retry_limit": 10}
        with RunnerService(gitlab, tmp_path, settings, concurrent=12):
            ids = [
                gitlab.submit(job_payload([f"for i in {{1..50}}; do echo job {n} line $i; done"])) for n in range(JOBS)
            ]
            jobs = [gitlab.wait_for(job_id, ("success", "failed"), timeout=120) for job_id in ids]
        for number, job in enumerate(jobs):
            assert job.state == "success", job.trace.decode()
            assert job.trace_matches
            assert job.verdicts == 1
            for line in range(1, 51):
                assert f"job {number} line {line}\n".encode() in job.trace
