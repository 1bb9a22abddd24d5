"""``pyrunner run`` and ``run-single`` as real processes with real signals."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import status
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerProcess, shell_runner, write_config

RUNNING = "Initializing executor providers"


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


def wait_for_file(path: Path, timeout: float = 20) -> None:
    deadline = time.monotonic() + timeout
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.01)


def sleeping(directory: Path) -> dict[str, Any]:
    return job_payload([f"echo $BASHPID > {directory}/begun.new; mv {directory}/begun.new {directory}/begun; sleep 60"])


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def process(gitlab: FakeGitLab, tmp_path: Path) -> Iterator[RunnerProcess]:
    path = tmp_path / "config.toml"
    write_config(path, [shell_runner(gitlab, tmp_path)], concurrent=2, check_interval=1)
    with RunnerProcess(["run", "--config", str(path)], tmp_path / "log") as running:
        running.wait_for_log(RUNNING)
        yield running


def test_log_lines_of_a_start_and_a_graceful_end(process: RunnerProcess, tmp_path: Path) -> None:
    process.signal(signal.SIGQUIT)
    assert process.wait() == 0
    order = [
        "Runtime platform",
        f"Starting multi-runner from {tmp_path}/config.toml...",
        "Running in ",
        "Configuration loaded",
        "listen_address not defined, metrics & debug endpoints disabled",
        "[session_server].listen_address not defined, session endpoints disabled",
        RUNNING,
        "WARNING: [runWait] received stop signal",
        "WARNING: Starting graceful shutdown, waiting for builds to finish",
        "All workers stopped.",
        "Shutting down executor providers",
        "All executor providers shut down.",
        "Can exit now!",
    ]
    positions = [process.log.index(line) for line in order]
    assert positions == sorted(positions)
    assert "stop-signal=quit" in process.log
    assert "StopSignal=quit" in process.log


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupt")])
def test_forceful_stop(
    gitlab: FakeGitLab, process: RunnerProcess, tmp_path: Path, number: signal.Signals, word: str
) -> None:
    job_id = gitlab.submit(sleeping(tmp_path))
    wait_for_file(tmp_path / "begun")
    process.signal(number)
    assert process.wait() == 0
    assert f"error=received stop signal: {word}" in process.log
    assert "WARNING: Starting forceful shutdown" in process.log
    assert "shutdown-timeout=30s" in process.log
    job = gitlab.job(job_id)
    assert job.state == "failed"
    assert f"ERROR: Job failed: aborted: {word}".encode() in job.trace
    assert gone(int((tmp_path / "begun").read_text()))


def test_quit_waits_and_term_then_aborts(gitlab: FakeGitLab, process: RunnerProcess, tmp_path: Path) -> None:
    job_id = gitlab.submit(sleeping(tmp_path))
    wait_for_file(tmp_path / "begun")
    process.signal(signal.SIGQUIT)
    process.wait_for_log("Starting graceful shutdown")
    process.signal(signal.SIGQUIT)
    process.wait_for_log("received stop signal", count=2)
    assert process.process.poll() is None
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert b"aborted: terminated" in gitlab.job(job_id).trace


def test_second_signal_of_a_forceful_stop_leaves_at_once_and_nothing_running(
    gitlab: FakeGitLab, process: RunnerProcess, tmp_path: Path
) -> None:
    script = f"trap '' TERM; echo $BASHPID > {tmp_path}/begun; while [ ! -e {tmp_path}/gate ]; do sleep 0.02; done"
    job_id = gitlab.submit(job_payload([script]))
    wait_for_file(tmp_path / "begun")
    try:
        process.signal(signal.SIGTERM)
        process.wait_for_log("Starting forceful shutdown")
        begin = time.monotonic()
        process.signal(signal.SIGTERM)
        assert process.wait() == 1
        assert time.monotonic() - begin < 5
        assert gone(int((tmp_path / "begun").read_text()))
    finally:
        (tmp_path / "gate").touch()
    assert b"ERROR: Job failed: aborted: terminated" in gitlab.job(job_id).trace
    assert "WARNING: Forceful shutdown not finished properly" in process.log
    assert "FATAL: Service run failed" in process.log


def test_hup_and_a_changed_file_reload(gitlab: FakeGitLab, process: RunnerProcess, tmp_path: Path) -> None:
    process.signal(signal.SIGHUP)
    process.wait_for_log("Configuration loaded", count=2)
    write_config(tmp_path / "config.toml", [shell_runner(gitlab, tmp_path)], concurrent=7, check_interval=1)
    process.wait_for_log("max_builds=7")
    (tmp_path / "config.toml").write_text("concurrent = nonsense")
    process.wait_for_log("ERROR: Failed to load config")
    gitlab.wait_for(gitlab.submit(job_payload(["true"])), "success")
    assert "Traceback" not in process.log


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("concurrent = 0", "concurrent is 0, it must be at least 1"),
        ("concurrent = ", "config.toml:1:"),
        ("[[", "config.toml:1:"),
    ],
)
def test_unusable_config_is_fatal_with_one_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with RunnerProcess(["run", "--config", str(path)], tmp_path / "log") as process:
        assert process.wait() == 1
        assert "FATAL: Service run failed" in process.log
        assert expected in process.log
        assert "Traceback" not in process.log


def test_missing_config_idles(tmp_path: Path) -> None:
    with RunnerProcess(["run", "--config", str(tmp_path / "none.toml")], tmp_path / "log") as process:
        process.wait_for_log(RUNNING)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0


def test_level_and_format_of_the_config_count_unless_flags_are_given(gitlab: FakeGitLab, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_config(path, [shell_runner(gitlab, tmp_path)], log_format="json", log_level="debug")
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        process.wait_for_log('"msg": "Configuration loaded"')
    with RunnerProcess(["--log-format", "text", "run", "-c", str(path)], tmp_path / "log2") as process:
        process.wait_for_log('msg="Configuration loaded"')


def test_working_directory_is_where_builds_go(gitlab: FakeGitLab, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    runner = shell_runner(gitlab, tmp_path, builds_dir="builds", cache_dir="")
    write_config(tmp_path / "config.toml", [runner], concurrent=1)
    arguments = ["run", "-c", str(tmp_path / "config.toml"), "--working-directory", str(tmp_path / "work")]
    with RunnerProcess(arguments, tmp_path / "log") as process:
        job = gitlab.wait_for(gitlab.submit(job_payload(["pwd"])), "success")
        process.signal(signal.SIGQUIT)
        assert process.wait() == 0
    assert f"{tmp_path}/work/builds/".encode() in job.trace


def test_syslog_without_a_logger_is_one_line(tmp_path: Path) -> None:
    if Path("/dev/log").exists():
        assert Path("/dev/log").is_socket()
        return
    with RunnerProcess(["run", "--syslog", "-c", str(tmp_path / "c.toml")], tmp_path / "log") as process:
        assert process.wait() == 1
        assert "--syslog: cannot reach the system logger at /dev/log" in process.log


# run-single


def single(gitlab: FakeGitLab, directory: Path, *more: str) -> list[str]:
    runner = shell_runner(gitlab, directory)
    flags = ["--url", runner["url"], "--executor", "shell", "--builds-dir", runner["builds_dir"], *more]
    return ["run-single", *flags, "--token", runner["token"]]


def test_single_ends_after_its_builds(gitlab: FakeGitLab, tmp_path: Path) -> None:
    ids = [gitlab.submit(job_payload(["true"])), gitlab.submit(job_payload(["false"]))]
    with RunnerProcess(single(gitlab, tmp_path, "--max-builds", "2"), tmp_path / "log") as process:
        assert process.wait() == 0
        assert f"Starting runner for {gitlab.url} with token " in process.log
        assert "This runner has processed its build limit, so now exiting" in process.log
    assert [gitlab.job(job_id).state for job_id in ids] == ["success", "failed"]


def test_single_ends_when_nothing_comes(tmp_path: Path) -> None:
    with FakeGitLab(long_poll=0) as gitlab:
        arguments = single(gitlab, tmp_path, "--wait-timeout", "1")
        process = RunnerProcess(arguments, tmp_path / "log")
        with process:
            assert process.wait() == 0
    assert "This runner has not received a job in 1 seconds, so now exiting" in process.log


def test_single_aborts_on_term(gitlab: FakeGitLab, tmp_path: Path) -> None:
    job_id = gitlab.submit(sleeping(tmp_path))
    with RunnerProcess(single(gitlab, tmp_path), tmp_path / "log") as process:
        wait_for_file(tmp_path / "begun")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        assert "Requested exit: terminated" in process.log
    assert b"aborted: terminated" in gitlab.job(job_id).trace


def test_single_finishes_its_job_on_quit(gitlab: FakeGitLab, tmp_path: Path) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    job_id = gitlab.submit(job_payload([f"touch {begun}; while [ ! -e {gate} ]; do sleep 0.02; done"]))
    with RunnerProcess(single(gitlab, tmp_path), tmp_path / "log") as process:
        wait_for_file(begun)
        process.signal(signal.SIGQUIT)
        process.wait_for_log("Requested exit: quit")
        gate.touch()
        assert process.wait() == 0
    assert gitlab.job(job_id).state == "success"


def test_single_pauses_when_refused(gitlab: FakeGitLab, tmp_path: Path) -> None:
    gitlab.inject("POST", "/jobs/request$", status(403), times=None)
    with RunnerProcess(single(gitlab, tmp_path), tmp_path / "log") as process:
        process.wait_for_log("Runner is not healthy!")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0


def test_single_takes_an_entry_of_the_config(gitlab: FakeGitLab, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_config(path, [shell_runner(gitlab, tmp_path, name="other"), shell_runner(gitlab, tmp_path, name="mine")])
    before = path.read_bytes()
    gitlab.submit(job_payload(["true"]))
    arguments = ["run-single", "-c", str(path), "--runner", "mine", "--max-builds", "1"]
    with RunnerProcess(arguments, tmp_path / "log") as process:
        assert process.wait() == 0
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".runner")] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--runner", "x", "-c", "/nonexistent/c.toml"], "could not find a runner with the name 'x'"),
        ([], "Missing URL"),
        (["--url", "http://x"], "Missing Token"),
        (["--url", "http://x", "--token", "t"], "Missing Executor"),
        (["--url", "http://x", "--token", "t", "--executor", "dokcer"], "Unknown executor: dokcer"),
    ],
)
def test_single_refuses_what_it_cannot_run(tmp_path: Path, arguments: list[str], text: str) -> None:
    with RunnerProcess(["run-single", *arguments], tmp_path / "log") as process:
        assert process.wait() == 1
        assert f"FATAL: {text}" in process.log or text in process.log
        assert "Traceback" not in process.log


def test_nothing_listens_yet(gitlab: FakeGitLab, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    write_config(tmp_path / "config.toml", [shell_runner(gitlab, tmp_path)])
    environment = {"LISTEN_ADDRESS": address, "PATH": os.environ["PATH"]}
    with RunnerProcess(["run", "-c", str(tmp_path / "config.toml")], tmp_path / "log", environment) as process:
        process.wait_for_log("listen_address is ignored: metrics & debug endpoints come in a later version")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
