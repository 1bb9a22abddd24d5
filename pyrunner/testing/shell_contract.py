"""What every shell must do with the stages: run this suite against a new `Shell`.

Subclass `ShellContract` with `shell_name`, and `program` if another program than the shell's own is to read the
scripts. Scripts run for real, from a file on standard input, the way the shell executor runs them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobResponse, JobVariable, Step
from pyrunner.base.errors import JobError
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ScriptContext

#: Any bytes that a shell variable can hold, with quotes, backslashes and control characters more often than by chance.
any_bytes = st.one_of(
    st.binary(max_size=40),
    st.text("'\"\\$`!\n\r\t\x1b\x7f\x01 #~*?[](){}<>|&;=%^éλ\U0001f600aZ0-", max_size=40).map(str.encode),
).map(lambda value: value.replace(b"\0", b""))

#: Where the project directory of `script_context` is below its base.
_PROJECT = "builds/abcdefghi/0/group/proj"

slow_is_fine = settings(deadline=None, max_examples=60)


def script_context(
    base: Path,
    *,
    variables: Iterable[JobVariable] = (),
    flags: dict[str, bool] | None = None,
    **changes: Any,
) -> ScriptContext:
    """The context of a small job whose directories are below `base`; `changes` replace fields."""
    project = f"{base}/{_PROJECT}"
    fields: dict[str, Any] = {
        "job": JobResponse(id=7, token="glcbt-job", steps=[Step(name="script", script=["echo hello"])]),
        "config": RunnerConfig(url="http://gitlab.example.com"),
        "executor": "shell",
        "builds_dir": f"{base}/builds",
        "cache_dir": f"{base}/cache",
        "project_dir": project,
        "temp_dir": f"{project}.tmp",
        "project_cache_dir": f"{base}/cache/group/proj",
        "runner_command": "gitlab-runner",
        "shared_environment": True,
        "git_strategy": "none",
    }
    fields.update(changes)
    temp = fields["temp_dir"]
    listed = Variables(variables, lambda key: f"{temp}/{key}")
    return ScriptContext(variables=listed, flags=flags or {}, **fields)


def job_with(*commands: str, after: Sequence[str] = (), **changes: Any) -> JobResponse:
    """A job of these commands."""
    steps = [Step(name="script", script=list(commands)), Step(name="after_script", script=list(after))]
    return JobResponse(id=7, token="glcbt-job", steps=steps, **changes)


def run_script(
    program: Sequence[str], script: str, directory: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `script` as the shell executor does; standard error goes where standard output goes."""
    with tempfile.TemporaryFile() as file:
        file.write(script.encode("utf-8", "surrogateescape"))
        file.seek(0)
        return subprocess.run(  # noqa: S603
            list(program),
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**os.environ, **(env or {})},
            timeout=60,
            check=False,
        )


class ShellContract:
    """The suite. Commands of the user are POSIX shell text here."""

    shell_name: ClassVar[str]
    program: ClassVar[Sequence[str]] = ()
    flags: ClassVar[dict[str, bool]] = {}

    def context(self, base: Path, **changes: Any) -> ScriptContext:
        """A context with the suite's feature flags."""
        return script_context(base, flags={**self.flags, **changes.pop("flags", {})}, **changes)

    def run(self, stage: str, context: ScriptContext, directory: Path) -> subprocess.CompletedProcess[bytes]:
        """Run one stage that has something to do."""
        script = shell(self.shell_name).script(stage, context)
        assert script is not None
        return run_script(self.program or [self.shell_name], script, directory)

    def run_step(self, base: Path, *commands: str, **changes: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a job of these commands in an existing project directory."""
        context = self.context(base, job=job_with(*commands), **changes)
        Path(context.project_dir).mkdir(parents=True, exist_ok=True)
        return self.run("step_script", context, base)

    def test_an_exported_value_survives_unchanged(self, tmp_path: Path) -> None:
        @slow_is_fine
        @given(value=any_bytes)
        def check(value: bytes) -> None:
            variable = JobVariable(key="VALUE", value=value.decode("utf-8", "surrogateescape"))
            result = self.run_step(tmp_path, "printenv VALUE >value", variables=[variable])
            assert result.returncode == 0, result.stdout
            assert (tmp_path / _PROJECT / "value").read_bytes() == value + b"\n"

        check()

    def test_a_file_variable_survives_unchanged(self, tmp_path: Path) -> None:
        @slow_is_fine
        @given(value=any_bytes)
        def check(value: bytes) -> None:
            variable = JobVariable(key="VALUE", value=value.decode("utf-8", "surrogateescape"), file=True)
            result = self.run_step(tmp_path, 'cat "$VALUE" >value', variables=[variable])
            assert result.returncode == 0, result.stdout
            assert (tmp_path / _PROJECT / "value").read_bytes() == value

        check()

    def test_a_command_is_echoed_and_run_as_written(self, tmp_path: Path) -> None:
        @slow_is_fine
        @given(value=any_bytes)
        def check(value: bytes) -> None:
            text = value.decode("utf-8", "surrogateescape").replace("'", "").replace("\n", "")
            result = self.run_step(tmp_path, f"printf %s '{text}' >value")
            line = f"\x1b[32;1m$ printf %s '{text}' >value\x1b[0;m\n"
            assert (result.returncode, result.stdout) == (0, line.encode("utf-8", "surrogateescape"))
            assert (tmp_path / _PROJECT / "value").read_bytes() == text.encode("utf-8", "surrogateescape")

        check()

    def test_commands_stop_at_the_first_failure_with_its_code(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "echo one", "(exit 7)", "echo two")
        assert result.returncode == 7
        assert result.stdout.endswith(b"$ (exit 7)\x1b[0;m\n")

    @pytest.mark.parametrize("last", ["set +e\nfalse", "false && true", "exit 1"])
    def test_the_status_of_the_last_command_counts(self, last: str, tmp_path: Path) -> None:
        assert self.run_step(tmp_path, last).returncode == 1

    def test_exit_zero_ends_a_job_well(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "exit 0", "false")
        assert result.returncode == 0

    def test_commands_before_a_syntax_error_run(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "echo first", "if then")
        assert result.returncode != 0
        assert b"\nfirst\n" in result.stdout

    def test_a_command_cannot_eat_the_script(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "cat", "echo still here")
        assert (result.returncode, result.stdout.splitlines()[-1]) == (0, b"still here")

    def test_an_exit_trap_of_the_user_runs_once(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "trap 'echo bye' EXIT", "echo body")
        assert (result.returncode, result.stdout.count(b"bye\n")) == (0, 1)

    def test_a_pipeline_fails_with_its_first_part_where_the_shell_can(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "if (set -o pipefail) 2>/dev/null; then false | true; fi; true")
        assert result.returncode in (0, 1)

    def test_multi_line_commands_are_collapsed(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, "if true; then\n echo multi\nfi")
        assert result.stdout == (b"\x1b[32;1m$ if true; then # collapsed multi-line command\x1b[0;m\nmulti\n")

    def test_an_empty_command_is_an_empty_line(self, tmp_path: Path) -> None:
        assert self.run_step(tmp_path, "  ", "true").stdout == b"\n\x1b[32;1m$ true\x1b[0;m\n"

    def test_script_sections_fold_multi_line_commands(self, tmp_path: Path) -> None:
        job = job_with("echo one\necho two")
        job.features.trace_sections = True
        context = self.context(tmp_path, job=job, flags={"FF_SCRIPT_SECTIONS": True})
        Path(context.project_dir).mkdir(parents=True)
        lines = self.run("step_script", context, tmp_path).stdout.split(b"\n")
        assert lines[0].startswith(b"section_start:1")
        assert b":section_script_step_0[hide_duration=true,collapsed=true]\r\x1b[0K\x1b[32;1m$ echo one" in lines[0]
        assert lines[1] == b"echo two\x1b[0;m"
        assert lines[2].endswith(b":section_script_step_0\r\x1b[0K")
        assert lines[3:5] == [b"one", b"two"]

    def test_gitlab_env_carries_variables_to_the_next_stage(self, tmp_path: Path) -> None:
        self.run_step(tmp_path, 'echo \'NEXT=a b $HOME "c"\' >>"$GITLAB_ENV"', "printf 'LAST=x' >>$GITLAB_ENV")
        result = self.run_step(tmp_path, 'echo "got $NEXT" "$LAST"')
        assert result.stdout.splitlines()[-1] == b'got a b $HOME "c" x'

    def test_prepare_tells_the_host_and_forgets_gitlab_env(self, tmp_path: Path) -> None:
        self.run_step(tmp_path, 'echo NEXT=1 >>"$GITLAB_ENV"')
        context = self.context(tmp_path)
        result = self.run("prepare_script", context, tmp_path)
        assert result.returncode == 0
        assert result.stdout.startswith(b"Running on ")
        assert result.stdout.endswith(b"...\n")
        assert not Path(context.temp_dir, "gitlab_runner_env").exists()

    def test_the_host_behind_is_told_too(self, tmp_path: Path) -> None:
        result = self.run("prepare_script", self.context(tmp_path, via_host="my host"), tmp_path)
        assert result.stdout.endswith(b" via my host...\n")

    def test_no_sources_still_gives_a_directory(self, tmp_path: Path) -> None:
        context = self.context(tmp_path)
        result = self.run("get_sources", context, tmp_path)
        assert result.stdout.decode() == (
            "\x1b[32;1mSkipping Git repository setup\x1b[0;m\n"
            "\x1b[32;1mSkipping Git checkout\x1b[0;m\n"
            "\x1b[32;1mSkipping Git submodules setup\x1b[0;m\n"
        )
        assert Path(context.project_dir).is_dir()

    def test_empty_sources_remove_what_was_there(self, tmp_path: Path) -> None:
        context = self.context(tmp_path, git_strategy="empty")
        Path(context.project_dir, "old").mkdir(parents=True)
        result = self.run("get_sources", context, tmp_path)
        assert b"creating an empty build directory" in result.stdout
        assert list(Path(context.project_dir).iterdir()) == []

    def test_cleanup_removes_file_variables(self, tmp_path: Path) -> None:
        secret = JobVariable(key="KUBECONFIG", value="secret", file=True)
        self.run_step(tmp_path, "echo A=b >>$GITLAB_ENV", variables=[secret])
        context = self.context(tmp_path, variables=[secret])
        assert Path(context.temp_dir, "KUBECONFIG").exists()
        result = self.run("cleanup_file_variables", context, tmp_path)
        assert (result.returncode, result.stdout) == (0, b"")
        assert list(Path(context.temp_dir).iterdir()) == []

    def test_relative_directories_stay_right_after_cd(self, tmp_path: Path) -> None:
        project = "builds/group/proj"
        (tmp_path / project).mkdir(parents=True)
        changes = {"builds_dir": "builds", "project_dir": project, "temp_dir": f"{project}.tmp"}
        variable = JobVariable(key="F", value="content", file=True)
        job = job_with('cat "$F"', "pwd", "echo A=b >>$GITLAB_ENV")
        context = self.context(tmp_path, job=job, variables=[variable], **changes)
        result = self.run("step_script", context, tmp_path)
        assert result.returncode == 0, result.stdout
        assert result.stdout.splitlines()[1].startswith(b"content")
        assert f"{tmp_path}/{project}\n".encode() in result.stdout

    def test_runner_scripts_surround_the_users(self, tmp_path: Path) -> None:
        config = RunnerConfig(pre_build_script="echo pre; X=1", post_build_script="echo post $X")
        result = self.run_step(tmp_path, "echo mid $X", config=config)
        assert [line for line in result.stdout.splitlines() if b"$" not in line] == [b"pre", b"mid 1", b"post 1"]

    def test_after_script_announces_itself(self, tmp_path: Path) -> None:
        context = self.context(tmp_path, job=job_with("true", after=["echo after"]))
        Path(context.project_dir).mkdir(parents=True)
        result = self.run("after_script", context, tmp_path)
        assert result.stdout.splitlines()[0] == b"\x1b[32;1mRunning after script...\x1b[0;m"

    def test_a_term_signal_ends_the_script(self, tmp_path: Path) -> None:
        result = self.run_step(tmp_path, f"kill -{signal.SIGTERM.value} $$; sleep 0.01", "echo not reached")
        assert result.returncode == 1
        assert b"\nnot reached" not in result.stdout

    @pytest.mark.parametrize(
        "stage",
        [
            *("restore_cache", "download_artifacts", "after_script", "archive_cache", "archive_cache_on_failure"),
            *("upload_artifacts_on_success", "upload_artifacts_on_failure", "step_release"),
        ],
    )
    def test_a_stage_with_nothing_to_do_has_no_script(self, stage: str, tmp_path: Path) -> None:
        assert shell(self.shell_name).script(stage, self.context(tmp_path)) is None

    def test_an_unknown_submodule_strategy_fails_the_job(self, tmp_path: Path) -> None:
        variables = [JobVariable(key="GIT_SUBMODULE_STRATEGY", value="all")]
        context = self.context(tmp_path, variables=variables, git_strategy="fetch")
        with pytest.raises(JobError, match="unknown GIT_SUBMODULE_STRATEGY"):
            shell(self.shell_name).script("get_sources", context)
