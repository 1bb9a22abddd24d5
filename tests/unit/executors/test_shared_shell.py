"""Stages that share a shell: nothing of one is seen by another, and nobody sees that they share."""

from __future__ import annotations

import difflib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled, JobFailure, SystemFailure
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.process import GracePeriods
from pyrunner.executors.protocol import ExecutorCommand
from pyrunner.executors.shell import shared
from pyrunner.executors.shell.executor import ShellExecutor
from pyrunner.shells.bash import BashWriter
from pyrunner.shells.protocol import Sharing, Stage
from pyrunner.testing.executor_contract import RecordingTrace
from tests.unit.executors.test_shell import options


def bash(body: str) -> str:
    """`body` in a script as the shell writes it."""
    writer = BashWriter()
    writer.line(body)
    return writer.finish("bash")


class Job:
    """Runs stages one after the other and keeps what they print."""

    def __init__(self, executor: ShellExecutor) -> None:
        self.executor = executor
        self.trace = RecordingTrace()
        self.token = CancelToken()

    def run(self, body: str, sharing: Sharing, stage: str = "get_sources", script: str = "") -> str:
        """Output of one stage."""
        before = len(self.trace.data)
        self.executor.run(
            ExecutorCommand(
                script=script or bash(body),
                stage=stage,
                predefined=True,
                token=self.token,
                trace=self.trace,
                sharing=sharing,
            )
        )
        return self.trace.data[before:].decode()

    def inert(self, body: str) -> str:
        """Output of a stage that changes nothing."""
        return self.run(body, Sharing.INERT)

    def files(self, body: str) -> str:
        """Output of a stage that changes files."""
        return self.run(body, Sharing.FILES)

    def user(self, body: str) -> str:
        """Output of a user's script."""
        return self.run(body, Sharing.NONE, "step_script")


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


def started_job(tmp_path: Path) -> Iterator[Job]:
    executor = ShellExecutor(GracePeriods(terminate=0.5, kill=5.0))
    executor.prepare(options(tmp_path))
    job = Job(executor)
    yield job
    executor.cleanup()
    job.token.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    yield from started_job(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Job]:
    yield from started_job(tmp_path)


class TestWhatIsShared:
    def test_inert_stages_and_the_script_behind_them(self, job: Job) -> None:
        first, second, script = job.inert("echo $$"), job.inert("echo $$"), job.user("echo $$")
        assert first == second == script

    def test_script_behind_stages_that_bring_files_has_its_own(self, job: Job) -> None:
        assert job.files("echo $$") == job.files("echo $$") != job.user("echo $$")

    def test_clean_up_ends_a_shell(self, job: Job) -> None:
        first = job.files("echo $$")
        assert job.run("echo $$", Sharing.FILES, Stage.CLEANUP_FILE_VARIABLES) == first
        assert job.files("echo $$") != first

    def test_two_scripts_never(self, job: Job) -> None:
        job.inert(":")
        assert job.user("echo $$") != job.user("echo $$")

    def test_nothing_of_a_script_reaches_the_stages_behind_it(self, job: Job) -> None:
        script = job.user("echo $$; export A=1; alias x=y; f() { :; }; cd /")
        assert job.files("echo $$") != script
        assert job.files('echo "${A-}"; type f 2>/dev/null || pwd') == f"\n{Path.cwd()}\n"

    def test_long_script_has_its_own(self, job: Job) -> None:
        first = job.inert("echo $$")
        assert job.inert(f": {'x' * shared.LONGEST_SCRIPT}\necho $$") != first

    def test_sh_shares_nothing(self, tmp_path: Path) -> None:
        executor = ShellExecutor()
        config = RunnerConfig(builds_dir=str(tmp_path / "builds"))
        config.shell = "sh"
        executor.prepare(options(tmp_path, config=config))
        trace = RecordingTrace()
        command = ExecutorCommand(
            script="echo $$\n", stage="x", predefined=True, token=CancelToken(), trace=trace, sharing=Sharing.INERT
        )
        try:
            executor.run(command)
            executor.run(command)
        finally:
            executor.cleanup()
        assert len(set(trace.text.split())) == 2


LEAKS = {
    "variable": ("LEAK=1; export LEAK2=1", 'echo "${LEAK-}${LEAK2-}"'),
    "directory": ("cd /", "pwd"),
    "option": ("set -o noglob; set +o errexit; shopt -s extglob", "echo $-; shopt extglob || :"),
    "trap": ("trap 'echo trapped' EXIT USR1 TERM DEBUG", "trap -p"),
    "function": ("leak() { :; }; echo() { builtin echo changed; }; unset -f echo", "declare -F || :"),
    "umask": ("umask 0", "umask"),
    "limit": ("ulimit -S -n 50", "ulimit -S -n"),
    "descriptor": ("exec 7>/dev/null", "ls /proc/self/fd | wc -l"),
    "closed output": ("exec >/dev/null 2>&1", "echo still here"),
    "job": ("sleep 0.01 & :", 'jobs; echo "${!-}"'),
    "positional": ("set -- a b", "echo $#"),
    "hash": ("hash -p /bin/true ls", "hash -t ls 2>&1 || :"),
    "alias": ("shopt -s expand_aliases; alias ls=false", "alias"),
    "readonly": ("readonly GLR_SCRIPT=1 GLR_SECONDS=2", "echo ok"),
    "exit": ("exit 0; echo not here", "echo next"),
    "exec": ("exec true", "echo next"),
    "field separator": ("IFS=x", 'printf %q "$IFS"'),
    "input": ("cat; read -r line || :", "cat; echo end"),
    "signal": ("trap '' TERM INT HUP", "grep SigIgn /proc/self/status"),
    "nice": ("renice -n 5 $BASHPID >/dev/null", "ps -o ni= -p $BASHPID"),
    "session": ("set -m; (sleep 0.01); :", "echo $-"),
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("follower", ["inert", "user"])
def test_stage_leaves_nothing_to_the_next(job: Job, other: Job, name: str, follower: str) -> None:
    spoil, look = LEAKS[name]
    if follower == "inert":
        other.inert(":")
        expected = other.inert(look)
    else:
        expected = other.user(look)
    shell = job.inert("echo $$")
    job.inert(spoil)
    assert getattr(job, follower)(look) == expected
    assert shell in job.trace.text


#: All that differs between any two shells, and how `declare` shows a clock that has been read or set before.
_ALWAYS_DIFFERENT = re.compile(r"^declare \S+ (BASHPID|PPID|RANDOM|SRANDOM|EPOCH\w+|_|SECONDS)\b.*\n", re.MULTILINE)

PROBE = """\
cd "$HOME"
declare -p
set -o; shopt || :
trap -p
alias; declare -F || :
jobs; times | wc -l
echo "$SHLVL $LINENO $# $0 $((BASHPID - $$)) $BASH_SUBSHELL"
ls -l /proc/$$/fd >fds; sed 's/.* [0-9][0-9]:[0-9][0-9] //; s/pipe:.*/pipe/' fds | grep -v /tmp; rm fds
umask; ulimit -a; ps -o pgid= -p $$ | tr -d ' ' | sed "s/^$$\\$/leader/"
no-such-program || :
: >/no/such/file || :
f() {
  caller; no-such-program-either
}
f || :
(exit 3) || echo $?
"""


def normal(text: str, pid: str) -> str:
    return _ALWAYS_DIFFERENT.sub("", text).replace(pid.strip(), "PID")


def test_script_cannot_tell_that_others_were_there_before(job: Job, other: Job) -> None:
    job.inert("nothing=1")
    job.inert("echo other")
    ours, theirs = job.user(f"echo $$\n{PROBE}"), other.user(f"echo $$\n{PROBE}")
    found, expected = (normal(text, text.partition("\n")[0]).splitlines() for text in (ours, theirs))
    assert list(difflib.unified_diff(found, expected, n=0)) == []
    assert "GLR_" not in ours


def test_errors_of_a_shared_stage_read_as_if_it_were_alone(job: Job, other: Job) -> None:
    body = "no-such-program || :\n: >/no/such/file || :\necho $LINENO\nf() {\n no-such-other; }\nf || :"
    job.inert(":")
    assert job.inert(body) == other.user(body)


def test_seconds_count_from_the_scripts_start(job: Job) -> None:
    job.inert("while [ $SECONDS -lt 2 ]; do sleep 0.05; done")
    assert int(job.user("echo $SECONDS")) < 2


def test_exit_code_is_that_of_the_stage_and_the_next_one_runs(job: Job) -> None:
    for code in (1, 7, 255):
        with pytest.raises(JobFailure, match=f"^exit status {code}$"):
            job.inert(f"exit {code}")
    with pytest.raises(JobFailure, match="^exit status 1$"):
        job.inert("false; echo not here")
    assert job.user("echo on") == "on\n"
    with pytest.raises(JobFailure, match="^exit status 9$"):
        job.user("exit 9")


def test_output_of_a_stage_is_complete_before_the_next(job: Job) -> None:
    for number in range(5):
        size = 200_000
        assert len(job.inert(f"head -c {size} /dev/zero; printf {number}")) == size + 1


def test_stage_that_kills_its_subshell_says_nothing_of_it(job: Job) -> None:
    with pytest.raises(JobFailure, match="137"):
        job.inert("kill -9 $BASHPID")
    assert job.trace.text == ""
    assert job.user("echo on") == "on\n"


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV"])
def test_stage_that_kills_the_shared_shell_fails_alone(job: Job, name: str) -> None:
    with pytest.raises(JobFailure):
        job.inert(f"ulimit -c 0; kill -{name} $$; sleep 5")
    assert job.inert("echo next") == "next\n"
    assert job.user("echo on") == "on\n"


def test_shell_killed_between_two_stages_fails_the_next(job: Job) -> None:
    pid = int(job.inert("echo $$"))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(JobFailure, match="^signal: killed$"):
        job.inert("echo not here")
    assert job.inert("echo next") == "next\n"


class TestProfile:
    """What a profile does shows in each stage's log as if none shared."""

    def stages(self, job: Job) -> list[str]:
        return [job.inert("echo a"), job.inert("echo b"), job.user("echo c"), job.files("echo d")]

    def test_output(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("echo hello\n")
        assert self.stages(job) == ["hello\na\n", "hello\nb\n", "hello\nc\n", "hello\nd\n"]

    def test_trap_on_exit(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("trap 'echo bye' EXIT\n")
        assert self.stages(job) == ["a\nbye\n", "b\nbye\n", "c\nbye\n", "d\nbye\n"]

    def test_logout_file(self, job: Job, home: Path) -> None:
        (home / ".bash_logout").write_text("echo bye\n")
        assert self.stages(job) == ["a\nbye\n", "b\nbye\n", "c\nbye\n", "d\nbye\n"]

    def test_errexit(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("set -eu\n")
        assert self.stages(job) == ["a\n", "b\n", "c\n", "d\n"]
        with pytest.raises(JobFailure, match="^exit status 4$"):
            job.inert("exit 4")

    def test_xtrace_shows_the_script_and_nothing_of_ours(self, job: Job, other: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("set -x\n")
        assert job.inert("echo a") == other.user("echo a")

    def test_exit(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("echo no; exit 6\n")
        for _ in range(2):
            with pytest.raises(JobFailure, match="^exit status 6$"):
                job.inert("echo a")
        assert job.trace.text == "no\nno\n"

    def test_exit_with_success(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("exit 0\n")
        assert self.stages(job) == [""] * 4

    def test_failing_errexit(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("set -e; false\n")
        with pytest.raises(JobFailure, match="^exit status 1$"):
            job.inert("echo a")

    def test_another_shell_in_its_place(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("exec sh\n")
        with pytest.raises(JobFailure, match="^exit status 127$"):
            job.inert("echo a")
        for sharing in Sharing:
            assert job.run("echo a", sharing, script="echo a\n") == "a\n"

    def test_variables_and_functions_are_there_for_all(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("export P=1; greet() { echo hi $P; }\n")
        assert [job.inert("greet"), job.inert("greet"), job.user("greet"), job.files("greet")] == ["hi 1\n"] * 4

    def test_low_descriptors_are_the_profiles(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("exec 3>/dev/null 9>/dev/null\n")
        assert self.stages(job) == ["a\n", "b\n", "c\n", "d\n"]

    def test_change_by_a_stage_is_seen_by_the_script(self, job: Job, home: Path) -> None:
        job.files(f"echo 'export NEW=1' >{home}/.bash_profile")
        assert job.user('echo "$NEW"') == "1\n"

    def test_change_by_a_script_is_seen_by_what_follows(self, job: Job, home: Path) -> None:
        job.inert(":")
        job.user(f"echo 'echo new' >{home}/.bash_profile")
        assert job.files("echo a") == "new\na\n"


class TestCancel:
    def cancel_at(self, job: Job, text: str) -> threading.Thread:
        def cancel() -> None:
            job.trace.wait_for(text)
            job.token.cancel(JobCanceled())

        thread = threading.Thread(target=cancel)
        thread.start()
        return thread

    def gone(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    @pytest.mark.parametrize("body", ["sleep 1000", "trap '' TERM; sleep 1000; sleep 1000", "exec sleep 1000"])
    @pytest.mark.parametrize("sharing", list(Sharing))
    def test_ends_the_stage_and_all_it_started(self, job: Job, body: str, sharing: Sharing) -> None:
        job.inert(":")
        thread = self.cancel_at(job, "started")
        with pytest.raises(JobCanceled):
            job.run(f"echo $BASHPID $$ started; {body}", sharing)
        thread.join()
        for pid in job.trace.text.split()[:2]:
            deadline = time.monotonic() + 10
            while not self.gone(int(pid)):
                assert time.monotonic() < deadline, f"{pid} still runs"
                time.sleep(0.01)

    def test_the_stages_after_it_run(self, job: Job) -> None:
        thread = self.cancel_at(job, "started")
        with pytest.raises(JobCanceled):
            job.inert("echo started; sleep 1000")
        thread.join()
        job.token = CancelToken()
        assert job.files("echo next") == "next\n"

    def test_during_the_profile(self, job: Job, home: Path) -> None:
        (home / ".bash_profile").write_text("echo started; sleep 1000; sleep 1000\n")
        thread = self.cancel_at(job, "started")
        with pytest.raises(JobCanceled):
            job.inert("echo not here")
        thread.join()
        assert job.trace.text == "started\n"

    def test_script_can_still_trap_it(self, job: Job) -> None:
        job.inert(":")
        thread = self.cancel_at(job, "started")
        with pytest.raises(JobCanceled):
            job.user("trap 'echo tidy; exit 1' TERM; echo started; sleep 1000 & wait")
        thread.join()
        assert job.trace.text == "started\ntidy\n"


def test_background_job_of_a_stage_lives_on(job: Job) -> None:
    job.inert("(sleep 0.3; echo late) & :")
    job.user(":")
    deadline = time.monotonic() + 10
    while "late" not in job.trace.text:
        assert time.monotonic() < deadline
        job.files("sleep 0.05")


def test_cleanup_ends_a_shell_that_waits(tmp_path: Path) -> None:
    executor = ShellExecutor()
    executor.prepare(options(tmp_path))
    pid = int(Job(executor).files("echo $$"))
    executor.cleanup()
    assert not Path(f"/proc/{pid}").exists()
    executor.cleanup()


def test_full_memory_for_a_later_script_is_one_clear_line(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    job.inert(":")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(SystemFailure, match="^cannot store the stage's script: No space left on device$"):
            job.inert(":")
        with pytest.raises(SystemFailure, match="^cannot store the stage's script: No space left on device$"):
            job.inert(":")
    assert job.inert("echo on") == "on\n"
