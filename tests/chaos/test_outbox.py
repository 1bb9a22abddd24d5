"""Verdicts and logs outlive the process that decided them: killed at every named place, stopped, started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from log_jobs import LogJob, check_all, log_job, outbox_entries, wait_until_empty

from pyrunner.base.kill_point import KILL_POINTS, VARIABLE
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import drop, slow, status
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerProcess, shell_runner, write_config

PUT, PATCH = ("PUT", r"/jobs/\d+$"), ("PATCH", "/trace$")
RUNNING = "Initializing executor providers"
#: From here on a verdict exists outside the process.
KEPT = KILL_POINTS[KILL_POINTS.index("outbox.kept") :]


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


@pytest.fixture
def config(gitlab: FakeGitLab, tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    runner = shell_runner(gitlab, tmp_path, request_concurrency=4, job_status_final_update_retry_limit=1)
    write_config(path, [runner], concurrent=4, check_interval=1)
    return path


def process(config: Path, name: str, kill_point: str = "") -> RunnerProcess:
    environment = {VARIABLE: kill_point} if kill_point else {}
    return RunnerProcess(["run", "-c", str(config)], config.with_name(f"{name}.runner-log"), environment)


def submit(gitlab: FakeGitLab, directory: Path, sizes: tuple[int, ...] = (3000,), **more: Any) -> dict[int, LogJob]:
    jobs = {}
    for number, size in enumerate(sizes):
        job = log_job(directory, number, size=size, **more)
        jobs[gitlab.submit(job.payload)] = job
    return jobs


def finish(gitlab: FakeGitLab, config: Path, jobs: dict[int, LogJob]) -> RunnerProcess:
    """A later process brings everything to its end and takes new jobs meanwhile."""
    with process(config, "later") as later:
        check_all(gitlab, jobs)
        wait_until_empty(config.parent)
        new = gitlab.submit(job_payload(["true"]))
        gitlab.wait_for(new, "success")
        later.signal(signal.SIGQUIT)
        assert later.wait() == 0
    check_all(gitlab, jobs)
    assert "Traceback" not in later.log
    return later


def killed(process: RunnerProcess) -> bool:
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("point", [point for point in KEPT if point not in ("outbox.handed-over", "outbox.adopted")])
def test_killed_at(gitlab: FakeGitLab, config: Path, tmp_path: Path, point: str) -> None:
    jobs = submit(gitlab, tmp_path)
    with process(config, "first", point) as first:
        assert killed(first)
    finish(gitlab, config, jobs)


@pytest.mark.parametrize("point", KEPT)
def test_killed_at_each_place_while_the_server_is_down(
    gitlab: FakeGitLab, config: Path, tmp_path: Path, point: str
) -> None:
    """The first process only keeps, the second is killed on the way, the third finds everything."""
    sizes = (3000, 400_000, 1, 3000)
    jobs = submit(gitlab, tmp_path, sizes, gate=tmp_path / "gate")
    with process(config, "first") as first:
        for job_id in jobs:
            gitlab.wait_for(job_id, "running")
        gitlab.go_down()
        (tmp_path / "gate").touch()
        first.wait_for_log("Could not deliver the job's final state", count=len(sizes))
        first.signal(signal.SIGKILL)
        assert killed(first)
    assert len(outbox_entries(tmp_path)) == len(sizes)
    gitlab.come_back()
    if point in ("outbox.kept", "outbox.handed-over"):
        # the second process reaches these with jobs of its own only
        new = submit(gitlab, tmp_path)
        jobs |= new
        gitlab.inject("PUT", rf"/jobs/{next(iter(new))}$", status(409), times=None, skip=1)
    with process(config, "second", point) as second:
        assert killed(second)
    gitlab.clear_faults()
    finish(gitlab, config, jobs)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("point", KEPT[:4])
def test_killed_at_the_nth_of_many_jobs(
    gitlab: FakeGitLab, config: Path, tmp_path: Path, point: str, number: int
) -> None:
    jobs = submit(gitlab, tmp_path, (3000, 200_000, 10, 3000), gate=tmp_path / "gate")
    with process(config, "first", f"{point}:{number}") as first:
        for job_id in jobs:
            gitlab.wait_for(job_id, "running")
        (tmp_path / "gate").touch()
        assert killed(first)
    # jobs that were not decided yet have died with the process; GitLab ends them after an hour of silence
    with process(config, "second") as second:
        second.wait_for_log(RUNNING)
        wait_until_empty(tmp_path)
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
    decided = {job_id: job for job_id, job in jobs.items() if gitlab.job(job_id).verdicts}
    assert len(decided) >= number
    check_all(gitlab, decided)


@pytest.mark.parametrize("point", ["job.decided", "outbox.log-saved"])
def test_nothing_half_kept_is_told(gitlab: FakeGitLab, config: Path, tmp_path: Path, point: str) -> None:
    (job_id,) = submit(gitlab, tmp_path)
    with process(config, "first", point) as first:
        assert killed(first)
    with process(config, "second") as second:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        wait_until_empty(tmp_path)
        second.signal(signal.SIGQUIT)
        assert second.wait() == 0
    assert gitlab.job(job_id).verdicts == 0
    assert gitlab.job(job_id).state == "running"


@pytest.mark.parametrize("fault", ["request unseen", "answer lost", "patch lost"])
def test_killed_with_a_request_on_its_way(gitlab: FakeGitLab, config: Path, tmp_path: Path, fault: str) -> None:
    jobs = submit(gitlab, tmp_path)
    if fault == "patch lost":
        gitlab.inject(*PATCH, slow(30, handled=True))
    else:
        gitlab.inject(*PUT, slow(30, handled=fault == "answer lost"), skip=1)
    with process(config, "first") as first:
        gitlab.wait_for_requests(*(PATCH if fault == "patch lost" else PUT), 1 if fault == "patch lost" else 2)
        if fault == "answer lost":
            check_all(gitlab, jobs)
        first.signal(signal.SIGKILL)
        assert killed(first)
    finish(gitlab, config, jobs)


@pytest.mark.parametrize("seed", range(6))
def test_killed_at_any_moment(gitlab: FakeGitLab, config: Path, tmp_path: Path, seed: int) -> None:
    """Killed again and again: what was decided arrives, and nothing arrives twice."""
    jobs = submit(gitlab, tmp_path, (3000,) * 8)
    for attempt in range(3):
        if attempt == seed % 3:
            gitlab.inject(*PUT, drop(handled=bool(seed % 2)), times=3)
        with process(config, f"run{attempt}") as one:
            one.wait_for_log(RUNNING)
            time.sleep(0.02 + 0.05 * ((seed * 7 + attempt * 3) % 6))
            one.signal(signal.SIGKILL)
            assert killed(one)
    with process(config, "last") as last:
        wait_until_empty(tmp_path)
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        wait_until_empty(tmp_path)
        last.signal(signal.SIGQUIT)
        assert last.wait() == 0
    check_all(gitlab, {job_id: job for job_id, job in jobs.items() if gitlab.job(job_id).verdicts})


# stops


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_stopped_while_the_server_is_down(
    gitlab: FakeGitLab, config: Path, tmp_path: Path, number: signal.Signals
) -> None:
    jobs = submit(gitlab, tmp_path, (3000, 300_000), gate=tmp_path / "gate")
    with process(config, "first") as first:
        for job_id in jobs:
            gitlab.wait_for(job_id, "running")
        gitlab.go_down()
        (tmp_path / "gate").touch()
        first.wait_for_log("Could not deliver the job's final state", count=2)
        first.signal(number)
        assert first.wait(10) == 0
        assert "Final states of jobs wait in the outbox for the next start" in first.log
        assert "Traceback" not in first.log
    gitlab.come_back()
    later = finish(gitlab, config, jobs)
    assert "Resuming final states of jobs from the outbox" in later.log
    assert later.log.count("Delivered the final state of a job from the outbox") == 2


def test_forceful_stop_does_not_wait_for_a_server_that_is_down(gitlab: FakeGitLab, tmp_path: Path) -> None:
    """With tries left the job keeps its slot, but not the process."""
    config = tmp_path / "config.toml"
    write_config(config, [shell_runner(gitlab, tmp_path)], concurrent=2, check_interval=1)
    jobs = submit(gitlab, tmp_path, gate=tmp_path / "gate")
    with process(config, "first") as first:
        gitlab.wait_for(next(iter(jobs)), "running")
        gitlab.go_down()
        (tmp_path / "gate").touch()
        first.wait_for_log("Appending trace to coordinator... error")
        begin = time.monotonic()
        first.signal(signal.SIGTERM)
        assert first.wait(10) == 0
        assert time.monotonic() - begin < 5
    gitlab.come_back()
    finish(gitlab, config, jobs)


def test_run_single_leaves_and_resumes(gitlab: FakeGitLab, tmp_path: Path) -> None:
    runner = shell_runner(gitlab, tmp_path)
    arguments = ["run-single", "--url", gitlab.url, "--token", runner["token"], "--executor", "shell"]
    arguments += ["--builds-dir", runner["builds_dir"], "--max-builds", "1"]
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    jobs = submit(gitlab, tmp_path)
    with RunnerProcess(arguments, tmp_path / "one", {**environment, VARIABLE: "outbox.kept"}) as first:
        assert killed(first)
    other = gitlab.submit(job_payload(["sleep 1"]))
    with RunnerProcess(arguments, tmp_path / "two", environment) as second:
        check_all(gitlab, jobs)
        assert second.wait() == 0
    assert gitlab.job(other).state == "success"
    assert outbox_entries(tmp_path / "state" / "pyrunner") == []


# slots, neighbours, trouble


def test_slot_is_free_while_the_outbox_goes_on(gitlab: FakeGitLab, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    runner = shell_runner(gitlab, tmp_path, job_status_final_update_retry_limit=1)
    write_config(config, [runner], concurrent=1, check_interval=1)
    jobs = submit(gitlab, tmp_path)
    (stuck,) = jobs
    gitlab.inject("PUT", rf"/jobs/{stuck}$", status(409), times=None, skip=1)
    with process(config, "first") as first:
        first.wait_for_log("Could not deliver the job's final state")
        for _ in range(3):
            gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        assert gitlab.job(stuck).state == "running"
        gitlab.clear_faults()
        check_all(gitlab, jobs)
        wait_until_empty(tmp_path)
        first.signal(signal.SIGTERM)
        assert first.wait() == 0


def test_verdict_of_a_runner_that_is_not_configured_any_more(gitlab: FakeGitLab, config: Path, tmp_path: Path) -> None:
    jobs = submit(gitlab, tmp_path)
    with process(config, "first", "outbox.kept") as first:
        assert killed(first)
    write_config(config, [shell_runner(gitlab, tmp_path)], concurrent=2, check_interval=1)
    finish(gitlab, config, jobs)


def test_two_processes_on_one_config_deliver_their_own(gitlab: FakeGitLab, config: Path, tmp_path: Path) -> None:
    jobs = submit(gitlab, tmp_path, (3000,) * 6)
    with process(config, "one") as one, process(config, "two") as two:
        check_all(gitlab, jobs)
        wait_until_empty(tmp_path)
        for running in (one, two):
            running.signal(signal.SIGTERM)
            assert running.wait() == 0
            assert "Cannot" not in running.log


def test_job_that_the_server_ended_meanwhile_is_not_told_for_ever(
    gitlab: FakeGitLab, config: Path, tmp_path: Path
) -> None:
    (job_id,) = submit(gitlab, tmp_path)
    with process(config, "first", "outbox.kept") as first:
        assert killed(first)
    gitlab.cancel(job_id, force=True)
    gitlab.cancel(job_id, force=True)
    with process(config, "later") as later:
        later.wait_for_log("Delivered the final state of a job from the outbox")
        wait_until_empty(tmp_path)
    assert gitlab.job(job_id).state == "canceled"
    assert gitlab.job(job_id).verdicts == 1


@pytest.mark.parametrize("trouble", ["key gone", "letter damaged", "outbox is a file"])
def test_trouble_with_the_outbox_is_a_line_and_no_job_waits(
    gitlab: FakeGitLab, config: Path, tmp_path: Path, trouble: str
) -> None:
    submit(gitlab, tmp_path)
    with process(config, "first", "outbox.kept") as first:
        assert killed(first)
    (entry,) = outbox_entries(tmp_path)
    if trouble == "key gone":
        (tmp_path / ".pyrunner_key").unlink()
    elif trouble == "letter damaged":
        with (entry / "letter").open("r+b") as letter:
            letter.truncate(40)
    else:
        (tmp_path / ".pyrunner").rename(tmp_path / "moved")
        (tmp_path / ".pyrunner").touch()
    with process(config, "later") as later:
        gitlab.wait_for(gitlab.submit(job_payload(["echo fine"])), "success")
        later.signal(signal.SIGQUIT)
        assert later.wait() == 0
    assert "Traceback" not in later.log
    if trouble == "outbox is a file":
        assert later.log.count("The outbox cannot be used: verdicts do not survive this process") == 1
        assert later.log.count("Cannot keep the end of a job in the outbox") == 1
    else:
        assert later.log.count("Cannot read an entry of the outbox") == 1
        assert len(outbox_entries(tmp_path)) == 1


def test_config_directory_without_room_costs_a_warning(gitlab: FakeGitLab, config: Path, tmp_path: Path) -> None:
    """No file can be made there, but jobs go on as they did without an outbox."""
    jobs = submit(gitlab, tmp_path)
    # a directory where the key should be: works for root too, whom no mode stops
    os.mkdir(tmp_path / ".pyrunner_key")
    with process(config, "first") as first:
        check_all(gitlab, jobs)
        first.signal(signal.SIGTERM)
        assert first.wait() == 0
    assert first.log.count("Cannot keep the end of a job in the outbox") == 1
    assert outbox_entries(tmp_path) == []
