"""The manager around the jobs: limits, polling, health, reload, stop. In this process, over a real socket."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.manager.service import Service
from pyrunner.manager.shutdown import Process
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import status
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerService, shell_runner, write_config

JOB_REQUEST = ("POST", "/jobs/request$")


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


def held_job(directory: Path, name: str) -> dict[str, object]:
    """A job that says that it has begun, and runs until it is let go."""
    begun, gate = directory / f"{name}.begun", directory / f"{name}.gate"
    script = f"echo $CI_CONCURRENT_ID $CI_CONCURRENT_PROJECT_ID > {begun}.new; mv {begun}.new {begun}"
    return job_payload([script, f"while [ ! -e {gate} ]; do sleep 0.02; done"])


def until(gitlab: FakeGitLab, condition: object, timeout: float = 20) -> None:
    assert callable(condition)
    assert gitlab._wait(condition, timeout)  # noqa: SLF001


def begun(directory: Path) -> list[str]:
    return sorted(path.name.removesuffix(".begun") for path in directory.glob("*.begun"))


def test_concurrent_bounds_the_jobs_of_the_process(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, concurrent=2):
        ids = [gitlab.submit(held_job(tmp_path, name)) for name in "abc"]
        until(gitlab, lambda: begun(tmp_path) == ["a", "b"])
        numbers = sorted((tmp_path / f"{name}.begun").read_text().split() for name in "ab")
        assert numbers == [["0", "0"], ["1", "1"]]
        (tmp_path / "a.gate").touch()
        gitlab.wait_for(ids[0], "success")
        until(gitlab, lambda: begun(tmp_path) == ["a", "b", "c"])
        assert (tmp_path / "c.begun").read_text() == (tmp_path / "a.begun").read_text()
        for name in "bc":
            (tmp_path / f"{name}.gate").touch()
        for job_id in ids:
            gitlab.wait_for(job_id, "success")


def test_limit_bounds_the_jobs_of_a_runner(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, {"limit": 1}, concurrent=8) as runner:
        ids = [gitlab.submit(held_job(tmp_path, name)) for name in "ab"]
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        assert runner.service.builds == 1
        assert len(gitlab.requests_to(*JOB_REQUEST)) == 1
        (tmp_path / "a.gate").touch()
        (tmp_path / "b.gate").touch()
        for job_id in ids:
            gitlab.wait_for(job_id, "success")


def test_next_job_is_taken_at_once_even_when_all_workers_were_busy(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, concurrent=1, check_interval=60):
        ids = [gitlab.submit(job_payload(["true"])) for _ in range(5)]
        for job_id in ids:
            gitlab.wait_for(job_id, "success", timeout=20)


def test_strict_check_interval_waits(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, {"strict_check_interval": True}, check_interval=1):
        ids = [gitlab.submit(job_payload(["true"])) for _ in range(3)]
        for job_id in ids:
            gitlab.wait_for(job_id, "success")
        times = [seen.at for seen in gitlab.requests_to(*JOB_REQUEST)]
    assert all(later - earlier > 0.8 for earlier, later in zip(times, times[1:], strict=False))


def test_long_poll_is_held_and_answered_by_a_new_job(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, check_interval=60):
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        gitlab.wait_for_requests(*JOB_REQUEST, 2)
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success", timeout=10)


def test_last_update_is_sent_back(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path):
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        requests = gitlab.wait_for_requests(*JOB_REQUEST, 2)
        until(gitlab, lambda: bool(requests[1].body))
    assert "last_update" not in requests[0].json
    assert requests[1].json["last_update"]
    assert requests[0].json["info"]["features"]["two_phase_job_commit"] is True
    assert requests[0].json["info"]["executor"] == "shell"


def test_refused_runner_is_left_alone(gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gitlab.inject(*JOB_REQUEST, status(403), times=None)
    settings = {"unhealthy_requests_limit": 2, "unhealthy_interval": "1h"}
    with RunnerService(gitlab, tmp_path, settings, check_interval=1) as runner:
        until(gitlab, lambda: "is unhealthy and will be disabled" in caplog.text)
        until(gitlab, lambda: len(gitlab.requests_to(*JOB_REQUEST)) == 2)
        assert f'Runner "{gitlab.url}' in caplog.text
        assert "will be disabled for 1h0m0s seconds!" in caplog.text
        gitlab.clear_faults()
        runner.service.reload()
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")


def test_unreachable_server_does_not_make_a_runner_unhealthy(
    gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gitlab.inject(*JOB_REQUEST, status(404), times=2)
    with RunnerService(gitlab, tmp_path, {"unhealthy_requests_limit": 1}, check_interval=1):
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
    assert "unhealthy" not in caplog.text


def test_unknown_executor_is_unhealthy_and_others_go_on(
    gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner = RunnerService(gitlab, tmp_path)
    entries = [shell_runner(gitlab, tmp_path, executor="dokcer", name="bad"), runner.runner]
    write_config(runner.path, entries, concurrent=4, check_interval=1)
    with runner:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
    assert 'Executor "dokcer" is not known; marking Runner as unhealthy' in caplog.text
    assert "Traceback" not in caplog.text


def test_empty_token_is_skipped(gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = RunnerService(gitlab, tmp_path)
    entries = [{**runner.runner, "token": "", "name": "empty"}, runner.runner]
    write_config(runner.path, entries, concurrent=4, check_interval=1)
    with runner:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
    assert "empty token" in caplog.text


def test_reload_takes_the_new_settings(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path, concurrent=1) as runner:
        ids = [gitlab.submit(held_job(tmp_path, name)) for name in "ab"]
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        runner.write(concurrent=2, check_interval=1)
        runner.service.reload()
        until(gitlab, lambda: begun(tmp_path) == ["a", "b"])
        for name in "ab":
            (tmp_path / f"{name}.gate").touch()
        for job_id in ids:
            gitlab.wait_for(job_id, "success")


def test_broken_config_keeps_the_old_one(gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RunnerService(gitlab, tmp_path) as runner:
        gitlab.wait_for_requests(*JOB_REQUEST)
        runner.path.write_text("concurrent = \n[[")
        runner.service.reload()
        until(gitlab, lambda: "Failed to load config" in caplog.text)
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")


def test_graceful_stop_waits_for_jobs_and_takes_no_more(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path) as runner:
        job_id = gitlab.submit(held_job(tmp_path, "a"))
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        runner.service.stop_gracefully()
        late = gitlab.submit(job_payload(["true"]))
        assert runner.service.state is Process.GRACEFUL
        (tmp_path / "a.gate").touch()
        assert runner.join() == 0
        assert gitlab.job(job_id).state == "success"
        assert gitlab.job(late).state == "pending"


def test_forceful_stop_aborts_jobs_and_tells_the_server(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path) as runner:
        job_id = gitlab.submit(held_job(tmp_path, "a"))
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        runner.service.stop_forcefully("terminated")
        assert runner.join() == 0
    job = gitlab.job(job_id)
    assert job.state == "failed"
    assert b"ERROR: Job failed: aborted: terminated" in job.trace
    assert job.verdict is not None
    assert job.verdict.failure_reason == "unknown_failure"


def test_forceful_after_graceful(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path) as runner:
        job_id = gitlab.submit(held_job(tmp_path, "a"))
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        runner.service.stop_gracefully()
        runner.service.stop_forcefully("interrupt")
        assert runner.join() == 0
    assert b"aborted: interrupt" in gitlab.job(job_id).trace


def test_stop_requested_before_the_loop_starts_is_not_lost(gitlab: FakeGitLab, tmp_path: Path) -> None:
    runner = RunnerService(gitlab, tmp_path)
    runner.service.stop_gracefully()
    with runner:
        assert runner.join() == 0
    assert gitlab.requests_to(*JOB_REQUEST) == []


def test_stop_ends_a_held_poll_at_once(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with RunnerService(gitlab, tmp_path) as runner:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        gitlab.wait_for_requests(*JOB_REQUEST, 2)
        runner.service.stop_gracefully()
        assert runner.join(timeout=5) == 0


def test_job_that_will_not_die_does_not_hold_a_forceful_stop(gitlab: FakeGitLab, tmp_path: Path) -> None:
    stubborn = f"trap '' TERM; touch {tmp_path}/a.begun; while [ ! -e {tmp_path}/a.gate ]; do sleep 0.05; done"
    with RunnerService(gitlab, tmp_path, shutdown_timeout=1) as runner:
        gitlab.submit(job_payload([f"bash -c '{stubborn.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"]))
        until(gitlab, lambda: begun(tmp_path) == ["a"])
        runner.service.stop_forcefully()
        assert runner.join() == 1
        (tmp_path / "a.gate").touch()
        until(gitlab, lambda: runner.service.builds == 0)


def test_start_is_told(gitlab: FakeGitLab, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with RunnerService(gitlab, tmp_path, listen_address=":9252") as runner:
        gitlab.wait_for_requests(*JOB_REQUEST)
        runner.service.stop_gracefully()
        runner.join()
    text = re.sub(r"^\S+ +\S+ ", "", caplog.text, flags=re.MULTILINE)
    said = [line for line in text.splitlines() if "coordinator" not in line]
    order = [
        "Configuration loaded",
        "listen_address is ignored: metrics & debug endpoints come in a later version",
        "[session_server].listen_address not defined, session endpoints disabled",
        "Initializing executor providers",
        "[runWait] received stop signal",
        "Starting graceful shutdown, waiting for builds to finish",
        "All workers stopped.",
        "Shutting down executor providers",
        "All executor providers shut down.",
        "Can exit now!",
    ]
    positions = [next(i for i, line in enumerate(said) if expected in line) for expected in order]
    assert positions == sorted(positions)


def test_config_in_memory(gitlab: FakeGitLab, tmp_path: Path) -> None:
    from pyrunner.config.model import Config, RunnerConfig

    entry = shell_runner(gitlab, tmp_path)
    runner = RunnerService(gitlab, tmp_path)
    runner.service = Service(lambda: Config(concurrent=1, runners=[RunnerConfig(**entry)]))
    with runner:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
