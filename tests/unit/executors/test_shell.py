"""The shell executor on this machine."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Cache, JobResponse
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobFailure, SystemFailure
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import ExecutorCommand, PrepareOptions
from pyrunner.executors.shell import directories
from pyrunner.executors.shell import executor as executor_module
from pyrunner.executors.shell.executor import ShellExecutor
from pyrunner.executors.shell.stage_record import StageDirectory
from pyrunner.shells.protocol import ShellCommandLine
from pyrunner.testing.executor_contract import RecordingTrace

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


def options(tmp_path: Path, **changes: object) -> PrepareOptions:
    fields: dict[str, object] = {
        "config": RunnerConfig(builds_dir=str(tmp_path / "builds"), cache_dir=str(tmp_path / "cache")),
        "job": JobResponse(id=1),
        "variables": Variables([]),
        "trace": RecordingTrace(),
        "token": CancelToken(),
    }
    return PrepareOptions(**{**fields, **changes})  # type: ignore[arg-type]


def command(script: str, trace: RecordingTrace, stage: str = "step_script") -> ExecutorCommand:
    return ExecutorCommand(script=script, stage=stage, predefined=False, token=CancelToken(), trace=trace)


@pytest.fixture
def executor() -> Iterator[ShellExecutor]:
    executor = ShellExecutor()
    yield executor
    executor.cleanup()


def test_prepare_says_which_shell_it_is(executor: ShellExecutor, tmp_path: Path) -> None:
    trace = RecordingTrace()
    environment = executor.prepare(options(tmp_path, trace=trace))
    assert trace.text == "Using Shell (bash) executor...\n"
    assert environment.shared_builds_dir
    assert environment.shared_environment
    assert not environment.custom_build_dir
    assert executor.shell().type == "login"


def test_default_directories_are_below_the_working_directory(
    executor: ShellExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        environment = executor.prepare(options(tmp_path, config=RunnerConfig()))
    assert environment.builds_dir == f"{tmp_path}/builds"
    assert environment.cache_dir == f"{tmp_path}/cache"


def test_builds_dir_below_a_file_is_one_clear_line(executor: ShellExecutor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = RunnerConfig(builds_dir=str(tmp_path / "file" / "builds"))
    with pytest.raises(SystemFailure, match=r'^builds_dir ".*/file/builds" cannot be created: Not a dir') as caught:
        executor.prepare(options(tmp_path, config=config))
    assert caught.value.reason == "runner_system_failure"
    assert not caught.value.retriable


def test_builds_dir_that_is_a_file_is_one_clear_line(executor: ShellExecutor, tmp_path: Path) -> None:
    (tmp_path / "builds").touch()
    with pytest.raises(SystemFailure, match=r'^builds_dir ".*/builds" is not a directory$'):
        executor.prepare(options(tmp_path))


def test_unwritable_builds_dir_is_one_clear_line(
    executor: ShellExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the question itself is answered instead.
    builds, real = str(tmp_path / "builds"), os.access
    monkeypatch.setattr(directories.os, "access", lambda path, mode: path != builds and real(path, mode))
    with pytest.raises(SystemFailure, match=r'^builds_dir ".*/builds" is not writable for user'):
        executor.prepare(options(tmp_path))


def test_cache_dir_matters_only_to_jobs_with_a_cache(executor: ShellExecutor, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    executor.prepare(options(tmp_path))
    with pytest.raises(SystemFailure, match='^cache_dir ".*" is not a directory'):
        executor.prepare(options(tmp_path, job=JobResponse(cache=[Cache(key="k")])))


def test_missing_bash_is_one_clear_line(
    executor: ShellExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFailure, match='^shell "bash" is not installed') as caught:
        executor.prepare(options(tmp_path))
    assert caught.value.reason == "runner_system_failure"


def test_unknown_user_is_one_clear_line(executor: ShellExecutor, tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match='^system user "nobody-of-that-name" does not exist$'):
        executor.prepare(options(tmp_path, user="nobody-of-that-name"))


@needs_root
def test_system_user_owns_new_directories_and_runs_the_script(executor: ShellExecutor, tmp_path: Path) -> None:
    trace = RecordingTrace()
    environment = executor.prepare(options(tmp_path, user="nobody"))
    executor.run(command("id -un; echo named >/dev/stderr\n", trace))
    assert "nobody\n" in trace.text
    assert "named\n" in trace.text
    assert os.stat(environment.builds_dir).st_uid != 0


def test_script_of_many_megabytes_does_not_block(executor: ShellExecutor, tmp_path: Path) -> None:
    trace = RecordingTrace()
    executor.prepare(options(tmp_path))
    executor.run(command(f"{'#' * 5_000_000}\necho end\n", trace))
    assert trace.text == "end\n"


def test_script_is_neither_in_arguments_nor_on_disk(executor: ShellExecutor, tmp_path: Path) -> None:
    trace = RecordingTrace()
    executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
    executor.run(command("cat /proc/$$/cmdline /proc/$PPID/cmdline | tr '\\0' ' '\n: s3cret\n", trace))
    assert "s3cret" not in trace.text
    stored = subprocess.run(["grep", "-r", "s3cret", str(tmp_path)], capture_output=True, check=False)
    assert stored.stdout == b""


def test_shell_that_needs_a_file_gets_a_private_one(
    executor: ShellExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_module.tempfile, "tempdir", str(tmp_path))
    trace = RecordingTrace()
    executor.prepare(options(tmp_path))
    executor._command_line = ShellCommandLine(arguments=["sh"], pass_file=True, extension="ps1")
    executor.run(command('stat -c "%a" "$0"; basename "$0"; dirname "$0"\n', trace))
    mode, name, directory = trace.text.split()
    assert (mode, name) == ("700", "script.ps1")
    assert Path(directory).name.startswith("build_script")
    assert not Path(directory).exists()


def test_full_memory_for_the_script_is_one_clear_line(
    executor: ShellExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    executor.prepare(options(tmp_path))
    monkeypatch.setattr(executor_module.os, "memfd_create", full)
    with pytest.raises(SystemFailure, match="^cannot store the stage's script: No space left on device$"):
        executor.run(command("true\n", RecordingTrace()))


def test_cancel_cause_that_is_an_os_error_is_not_mistaken_for_a_full_disk(
    executor: ShellExecutor, tmp_path: Path
) -> None:
    executor.prepare(options(tmp_path))
    token = CancelToken().child(0.05)
    with pytest.raises(TimeoutError, match="deadline exceeded"):
        executor.run(
            ExecutorCommand(script="sleep 60\n", stage="x", predefined=False, token=token, trace=RecordingTrace())
        )
    token.close()


class TestStateDirectory:
    def test_only_its_owner_can_read_the_log(self, executor: ShellExecutor, tmp_path: Path) -> None:
        executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
        executor.run(command("echo hi\n", RecordingTrace()))
        for path in (tmp_path / "state", tmp_path / "state" / "output.log", tmp_path / "state" / "stage.json"):
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077

    def test_truncating_stderr_by_name_loses_nothing(self, executor: ShellExecutor, tmp_path: Path) -> None:
        trace = RecordingTrace()
        executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
        executor.run(command("echo one; echo two >/dev/stderr; echo three | tee /dev/stderr\n", trace))
        assert trace.text == "one\ntwo\nthree\nthree\n"

    def test_marker_of_a_stages_end_is_not_shown(self, executor: ShellExecutor, tmp_path: Path) -> None:
        trace = RecordingTrace()
        executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
        for number in range(3):
            executor.run(command(f"printf {number}\n", trace))
        assert trace.text == "012"

    def test_exit_code_is_written_for_a_later_process(self, executor: ShellExecutor, tmp_path: Path) -> None:
        executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
        with pytest.raises(JobFailure):
            executor.run(command("exit 9\n", RecordingTrace()))
        assert StageDirectory(str(tmp_path / "state")).exit_code() == 9

    def test_unwritable_state_is_one_clear_line(self, executor: ShellExecutor, tmp_path: Path) -> None:
        (tmp_path / "state").touch()
        with pytest.raises(SystemFailure, match='^state directory ".*" cannot be created'):
            executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state" / "x")))

    @needs_root
    def test_full_disk_under_the_log_is_one_clear_line(self, executor: ShellExecutor, tmp_path: Path) -> None:
        state = tmp_path / "state"
        state.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", state], check=False)
        if mounted.returncode:
            pytest.skip("no file system can be mounted here")
        try:
            executor.prepare(options(tmp_path, state_dir=str(state)))
            with pytest.raises(SystemFailure, match="cannot be stored in .*output.log: no space left on device$"):
                executor.run(command("trap '' PIPE; head -c 200000 /dev/zero; true\n", RecordingTrace()))
        finally:
            executor.cleanup()
            subprocess.run(["umount", state], check=True)

    def test_lost_keeper_of_the_log_is_one_clear_line(self, executor: ShellExecutor, tmp_path: Path) -> None:
        executor.prepare(options(tmp_path, state_dir=str(tmp_path / "state")))
        script = 'for p in /proc/[0-9]*; do [ "$(readlink $p/fd/1)" = "$LOG" ] && kill -9 ${p#/proc/}; done\n'
        with pytest.raises(SystemFailure, match="^the job's output cannot be stored in .*/output.log$"):
            executor.run(command(f"LOG={tmp_path}/state/output.log\n{script}:\n", RecordingTrace()))

    def test_half_an_exit_code_counts_as_none(self, tmp_path: Path) -> None:
        directory = StageDirectory(str(tmp_path))
        (tmp_path / "exit-code").write_text("1")
        assert directory.exit_code() is None

    def test_broken_record_is_one_clear_line(self, tmp_path: Path) -> None:
        (tmp_path / "stage.json").write_text("{")
        with pytest.raises(SystemFailure, match="^broken stage record"):
            StageDirectory(str(tmp_path)).read()


MANAGER = """
import sys
from pathlib import Path
from tests.unit.executors.test_shell import ShellExecutor, RecordingTrace, command, options
state, script = sys.argv[1:]
executor = ShellExecutor()
executor.prepare(options(Path(state).parent, state_dir=state))
class Trace(RecordingTrace):
    def write(self, data):
        print(len(data), flush=True)
executor.run(command(script, Trace()))
"""


class TestResume:
    """Another process starts the stage, is killed, and this one goes on."""

    @pytest.fixture
    def state(self, tmp_path: Path) -> Path:
        return tmp_path / "state"

    def start_and_kill(self, state: Path, script: str) -> None:
        manager = subprocess.Popen(
            [sys.executable, "-c", MANAGER, str(state), script], stdout=subprocess.PIPE, start_new_session=True
        )
        assert manager.stdout is not None
        assert manager.stdout.readline(), "the manager saw no output"
        manager.send_signal(signal.SIGKILL)
        manager.wait()
        manager.stdout.close()

    def resume(self, state: Path, trace: RecordingTrace, offset: int = 0) -> None:
        executor = ShellExecutor()
        executor.prepare(options(state.parent, state_dir=str(state)))
        try:
            executor.resume(command("", trace), offset)
        finally:
            executor.cleanup()

    def test_running_stage_is_followed_to_its_end(self, state: Path) -> None:
        go = state.parent / "go"
        self.start_and_kill(state, f"echo before; while ! [ -e {go} ]; do sleep 0.02; done; echo after; exit 5\n")
        go.touch()
        trace = RecordingTrace()
        with pytest.raises(JobFailure, match="^exit status 5$"):
            self.resume(state, trace)
        assert trace.text == "before\nafter\n"

    def test_stage_that_ended_meanwhile_still_has_its_output_and_code(self, state: Path) -> None:
        done = state.parent / "done"
        self.start_and_kill(state, f"echo before; sleep 0.3; echo after; echo x >{done}\n")
        deadline = time.monotonic() + 20
        while not (state / "exit-code").exists() or not done.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        trace = RecordingTrace()
        self.resume(state, trace, offset=len("before\n"))
        assert trace.text == "after\n"

    def test_killed_stage_without_code_is_the_runners_fault(self, state: Path) -> None:
        self.start_and_kill(state, "echo before; sleep 60\n")
        record = json.loads((state / "stage.json").read_text())
        os.killpg(record["pid"], signal.SIGKILL)
        with pytest.raises(SystemFailure, match="without an exit code"):
            self.resume(state, RecordingTrace())

    def test_pid_of_another_process_is_not_followed(self, state: Path) -> None:
        self.start_and_kill(state, "echo before; sleep 60\n")
        record = json.loads((state / "stage.json").read_text())
        os.killpg(record["pid"], signal.SIGKILL)
        record["pid"] = os.getpid()
        (state / "stage.json").write_text(json.dumps(record))
        with pytest.raises(SystemFailure, match="without an exit code"):
            self.resume(state, RecordingTrace())

    def test_other_stage_is_refused(self, state: Path) -> None:
        with pytest.raises(SystemFailure, match='no stage "step_script" has been started'):
            self.resume(state, RecordingTrace())
