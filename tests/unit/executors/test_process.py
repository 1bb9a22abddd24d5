"""Process groups: ends, signals, leftovers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled, JobFailure, JobTimeout, SystemFailure
from pyrunner.executors.exit_code import check_exit_code, failure
from pyrunner.executors.pipe import PipeOutput
from pyrunner.executors.process import GracePeriods, ProcessGroup
from pyrunner.testing.executor_contract import RecordingTrace

GRACE = GracePeriods(terminate=0.2, kill=5.0)


class Runner:
    """Runs shell text with one pipe for all, as the shell executor does."""

    def __init__(self) -> None:
        self.trace = RecordingTrace()
        self.token = CancelToken()
        self.output = PipeOutput()
        self.output.direct(self.trace)
        self.pid = 0

    def run(self, script: str, grace: GracePeriods = GRACE) -> None:
        with open(os.devnull, "rb") as empty:
            group = ProcessGroup.start(
                ["sh", "-c", script], stdin=empty.fileno(), output=self.output.writer, environment=os.environb
            )
        self.pid = group.pid
        group.wait(self.output, self.token, grace)

    def run_and_cancel(self, script: str, at: str, grace: GracePeriods = GRACE) -> None:
        """Cancel once `at` has been printed."""

        def cancel() -> None:
            self.trace.wait_for(at)
            self.token.cancel(JobCanceled())

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            self.run(script, grace)
        finally:
            thread.join()


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.output.close()


def _gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while not _gone(pid):
        assert time.monotonic() < deadline, f"{pid} still runs"
        time.sleep(0.01)


@pytest.mark.parametrize("code", [1, 3, 127, 255])
def test_exit_status_is_told_like_gitlab_runner(runner: Runner, code: int) -> None:
    with pytest.raises(JobFailure, match=f"^exit status {code}$") as caught:
        runner.run(f"exit {code}")
    assert caught.value.job_exit_code == code


@pytest.mark.parametrize(
    ("number", "text"),
    [(signal.SIGKILL, "killed"), (signal.SIGTERM, "terminated"), (signal.SIGSEGV, "segmentation fault")],
)
def test_signal_is_told_by_its_name(runner: Runner, number: signal.Signals, text: str) -> None:
    with pytest.raises(JobFailure, match=f"^signal: {text}$"):
        runner.run(f"ulimit -c 0; kill -{int(number)} $$")


def test_unnamed_real_time_signal_has_a_text() -> None:
    assert str(failure(-40)) == "signal: signal 40"


def test_unknown_end_is_the_runners_fault() -> None:
    with pytest.raises(SystemFailure, match="without an exit code"):
        check_exit_code(None)


def test_missing_program_is_one_clear_line(runner: Runner) -> None:
    with pytest.raises(SystemFailure, match=r'^cannot start "/nowhere/shell": No such file or directory$'):
        ProcessGroup.start(["/nowhere/shell"], stdin=0, output=runner.output.writer, environment=os.environb)


def test_ignored_sigpipe_of_python_is_not_inherited(runner: Runner) -> None:
    # Otherwise `yes | head -1` in a script would report a write error instead of ending quietly.
    runner.run("yes 2>&1 | head -1; grep SigIgn /proc/self/status")
    ignored = int(runner.trace.text.split("SigIgn:")[1].split()[0], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def test_stderr_opened_by_name_does_not_cut_the_output(runner: Runner) -> None:
    runner.run("echo one; echo two >/dev/stderr; echo three | tee /dev/stderr")
    assert runner.trace.text == "one\ntwo\nthree\nthree\n"


def test_background_process_does_not_hold_the_stage(runner: Runner) -> None:
    started = time.monotonic()
    runner.run("sleep 60 & echo pid=$!")
    assert time.monotonic() - started < 30
    os.kill(int(runner.trace.text.split("pid=")[1]), signal.SIGKILL)


def test_background_process_survives_the_stage_and_is_heard_in_the_next(runner: Runner, tmp_path: Path) -> None:
    go = tmp_path / "go"
    runner.run(f"(while ! [ -e {go} ]; do sleep 0.01; done; echo late; echo done >{go}.done) & echo early")
    assert runner.trace.text == "early\n"
    go.touch()
    runner.run(f"while ! [ -s {go}.done ]; do sleep 0.01; done; echo next")
    assert runner.trace.text == "early\nlate\nnext\n"


def test_cancel_lets_the_script_clean_up(runner: Runner) -> None:
    script = "trap 'echo cleaned; exit 1' TERM; echo ready; while :; do sleep 0.02; done"
    with pytest.raises(JobCanceled):
        runner.run_and_cancel(script, "ready", GracePeriods(terminate=20))
    assert runner.trace.text.endswith("cleaned\n")


def test_stopped_script_is_let_go_on_to_end(runner: Runner) -> None:
    def cancel_when_stopped() -> None:
        runner.trace.wait_for("stopping")
        pid = int(runner.trace.text.split()[1])
        deadline = time.monotonic() + 60
        while b") T " not in Path(f"/proc/{pid}/stat").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        runner.token.cancel(JobCanceled())

    thread = threading.Thread(target=cancel_when_stopped)
    thread.start()
    begin = time.monotonic()
    script = "trap 'echo cleaned; exit' TERM; echo stopping $$; kill -STOP $$; sleep 1"
    with pytest.raises(JobCanceled):
        runner.run(script, GracePeriods(terminate=600))
    thread.join()
    assert "cleaned" in runner.trace.text
    assert time.monotonic() - begin < 60


def test_script_that_ignores_sigterm_is_killed(runner: Runner) -> None:
    with pytest.raises(JobCanceled):
        runner.run_and_cancel("trap '' TERM; echo ready; while :; do sleep 0.05; done", "ready")
    _wait_until_gone(runner.pid)


def test_script_that_ignores_sigterm_is_killed_at_once_when_time_has_run_out(runner: Runner) -> None:
    def hurry() -> None:
        runner.trace.wait_for("trapped")
        runner.token.cancel(JobCanceled())
        runner.token.urgency.cancel(JobCanceled())

    thread = threading.Thread(target=hurry)
    thread.start()
    begin = time.monotonic()
    with pytest.raises(JobCanceled):
        runner.run("trap '' TERM; echo trapped; while :; do sleep 0.05; done", GracePeriods(terminate=600))
    thread.join()
    assert time.monotonic() - begin < 60
    _wait_until_gone(runner.pid)


def test_cancel_takes_the_whole_group_down(runner: Runner) -> None:
    script = "(trap '' TERM; while :; do sleep 0.05; done) & echo pid=$!; wait"
    with pytest.raises(JobCanceled):
        runner.run_and_cancel(script, "pid=")
    assert _gone(int(runner.trace.text.split("pid=")[1].split()[0]))


def test_deadline_gives_its_own_cause(runner: Runner) -> None:
    runner.token = runner.token.child(0.1, JobTimeout("execution took longer than 0.1s seconds"))
    with pytest.raises(JobTimeout, match="execution took longer"):
        runner.run("sleep 60")
    runner.token.close()


def test_end_and_cancel_at_the_same_time_give_one_of_both(runner: Runner) -> None:
    for _ in range(20):
        token = CancelToken()
        runner.token = token
        thread = threading.Thread(target=token.cancel, args=(JobCanceled(),))
        thread.start()
        try:
            runner.run("true")
        except JobCanceled:
            pass
        finally:
            thread.join()


def test_output_that_fails_does_not_leave_processes(runner: Runner) -> None:
    class Broken(RecordingTrace):
        def write(self, data: bytes) -> None:
            raise OSError(28, "No space left on device")

    runner.output.direct(Broken())
    with pytest.raises(OSError, match="No space"):
        runner.run("echo x; sleep 60")
    _wait_until_gone(runner.pid)


def test_waiting_costs_no_processor_time(runner: Runner) -> None:
    before = time.thread_time()
    runner.run("exec >/dev/null 2>&1; sleep 0.5")
    assert time.thread_time() - before < 0.05


def test_no_descriptor_is_left(runner: Runner) -> None:
    runner.run("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        runner.run("true")
    assert len(os.listdir("/proc/self/fd")) == before
