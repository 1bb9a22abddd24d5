"""Signals at bad moments: nothing is half written, nothing is told twice, nothing hangs."""

from __future__ import annotations

import random
import signal
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.config.load import load_config
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerProcess, shell_runner, write_config

RUNNING = "Initializing executor providers"


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


def expiring_config(gitlab: FakeGitLab, directory: Path, token: str) -> Path:
    """A config with comments whose token is long due for rotation."""
    path = directory / "config.toml"
    write_config(path, [shell_runner(gitlab, directory, token=token)], concurrent=2, check_interval=1)
    dates = "  token_obtained_at = 2020-01-01T00:00:00Z\n  token_expires_at = 2020-01-02T00:00:00Z # soon\n"
    path.write_text("# kept\n" + path.read_text() + dates)
    return path


def test_token_is_rotated_and_the_new_one_used(gitlab: FakeGitLab, tmp_path: Path) -> None:
    token = gitlab.add_runner("expiring")
    path = expiring_config(gitlab, tmp_path, token)
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        process.wait_for_log("Resetting runner authentication token... succeeded")
        process.wait_for_log("Configuration loaded", count=2)
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert "# kept" in path.read_text()
    assert load_config(str(path)).runners[0].token not in ("", token)


def test_kill_while_the_token_is_saved_leaves_a_whole_config(gitlab: FakeGitLab, tmp_path: Path) -> None:
    choose = random.Random(7)  # noqa: S311 - a repeatable spread of moments
    token = gitlab.add_runner("expiring")
    for attempt in range(8):
        path = expiring_config(gitlab, tmp_path, token)
        before = path.read_text()
        with RunnerProcess(["run", "-c", str(path)], tmp_path / f"log{attempt}") as process:
            gitlab.wait_for_requests("POST", "/reset_authentication_token$", attempt + 1)
            time.sleep(choose.uniform(0, 0.02))
            process.signal(signal.SIGKILL)
            process.wait()
        text = path.read_text()
        tomllib.loads(text)
        assert "# kept" in text
        saved = load_config(str(path)).runners[0].token
        assert saved == token or text != before
        assert path.stat().st_size > 0
        token = gitlab.runners()[0].token


def test_kill_in_mid_job_leaves_the_config_alone(gitlab: FakeGitLab, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_config(path, [shell_runner(gitlab, tmp_path)], concurrent=2)
    before = path.read_bytes()
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        gitlab.submit(job_payload([f"touch {tmp_path}/begun; sleep 0.2"]))
        deadline = time.monotonic() + 20
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.signal(signal.SIGKILL)
        process.wait()
    assert path.read_bytes() == before
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log2") as process:
        gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
        process.signal(signal.SIGQUIT)
        assert process.wait() == 0


@pytest.mark.parametrize("seed", range(4))
def test_signals_in_any_order_end_in_order(gitlab: FakeGitLab, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311
    path = tmp_path / "config.toml"
    write_config(path, [shell_runner(gitlab, tmp_path, request_concurrency=4)], concurrent=4, check_interval=1)
    ids = [gitlab.submit(job_payload([f"sleep {choose.uniform(0, 0.5):.2f}"])) for _ in range(12)]
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        process.wait_for_log(RUNNING)
        for _ in range(choose.randrange(2, 12)):
            process.signal(choose.choice([signal.SIGHUP, signal.SIGUSR1]))
            time.sleep(choose.uniform(0, 0.1))
        for number in choose.choice([[signal.SIGQUIT], [signal.SIGTERM], [signal.SIGQUIT, signal.SIGINT]]):
            process.signal(number)
        assert process.wait() == 0
        assert "Traceback" not in process.log
        assert "Can exit now!" in process.log
    for job_id in ids:
        job = gitlab.job(job_id)
        assert job.state in ("pending", "success", "failed", "reserved")
        assert job.verdicts <= 1
        if job.verdicts:
            assert job.trace_matches
