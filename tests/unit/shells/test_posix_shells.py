"""bash and sh beyond the contract: syntax, command lines, debug traces, odd variables."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_powershell import STAGES, everything

from pyrunner.api.wire import JobVariable
from pyrunner.base.errors import SystemFailure
from pyrunner.shells import quoting
from pyrunner.shells.loader import SHELL_NAMES, shell
from pyrunner.shells.protocol import ScriptContext, ShellType
from pyrunner.testing.shell_contract import run_script, script_context


def parses(shell_name: str, script: str) -> bool:
    """Whether the script and the body inside of it are right; the body is printed instead of evaluated."""
    assert subprocess.run([shell_name, "-n"], input=script, text=True, check=False).returncode == 0
    shown = script.replace("\neval ", "\nprintf %s ").replace(" </dev/null; exit $?", "")
    body = subprocess.run([shell_name], input=shown, text=True, stdout=subprocess.PIPE, check=True).stdout
    return subprocess.run([shell_name, "-n"], input=body, text=True, check=False).returncode == 0


@pytest.mark.parametrize("shell_name", ["bash", "sh"])
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_right_to_the_parser(shell_name: str, stage: str) -> None:
    context = everything()
    context.job.steps[0].script = ["echo hello", "if true; then\n echo multi\nfi", ""]
    for changes in ({}, {"git_strategy": "clone"}, {"project_dir": "builds/p", "temp_dir": "builds/p.tmp"}):
        flags = {
            name: True for name in ("FF_GIT_URLS_WITHOUT_TOKENS", "FF_USE_GIT_NATIVE_CLONE", "FF_ENABLE_JOB_CLEANUP")
        }
        for flag_set in ({}, flags):
            script = shell(shell_name).script(stage, replace(context, flags=flag_set, **changes))
            assert script is not None
            assert parses(shell_name, script)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_ansi_c_quoting_is_plain_ascii_on_one_line(value: bytes) -> None:
    quoted = quoting.ansi_c(value.decode("utf-8", "surrogateescape"))
    assert quoted.isascii()
    assert quoted.isprintable()


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("", "''"), ("a/b-c_d.e,@1", "a/b-c_d.e,@1"), ("a b", "$'a b'"), ("\x1bé'", r"$'\x1b\xc3\xa9\''")],
)
def test_ansi_c_forms(text: str, quoted: str) -> None:
    assert quoting.ansi_c(text) == quoted


def test_lone_surrogates_and_nul_do_not_break_a_script() -> None:
    assert quoting.ansi_c("a\ud800\0b") == "$'a?b'"


@pytest.mark.parametrize(
    ("kind", "user", "arguments"),
    [
        (ShellType.NORMAL, "", ["bash"]),
        (ShellType.LOGIN, "", ["bash", "-l"]),
        (ShellType.LOGIN, "ci", ["su", "-s", "/bin/bash", "ci", "-c", "bash -l"]),
    ],
)
def test_command_lines(kind: ShellType, user: str, arguments: list[str]) -> None:
    assert list(shell("bash").command_line(kind, user).arguments) == arguments


def test_a_container_command_finds_a_shell() -> None:
    command = list(shell("bash").command_line(ShellType.NORMAL).container_command)
    done = subprocess.run(command, input="echo found $BASH_VERSION", text=True, stdout=subprocess.PIPE, check=True)
    assert done.stdout.startswith("found 5")


def test_the_debug_trace_shows_commands(tmp_path: Path) -> None:
    context = script_context(tmp_path, debug_trace=True)
    Path(context.project_dir).mkdir(parents=True)
    script = shell("bash").script("step_script", context)
    assert script is not None
    assert b"+ echo hello\n" in run_script(["bash"], script, tmp_path).stdout


@pytest.mark.parametrize("shell_name", ["bash", "sh"])
def test_names_that_no_shell_can_hold_are_told_once_and_skipped(shell_name: str, tmp_path: Path) -> None:
    odd = [JobVariable(key=key, value="x") for key in ("1ST", "A-B", "$(touch pwned)")]
    context = script_context(tmp_path, variables=[*odd, JobVariable(key="GOOD", value="yes")])
    Path(context.project_dir).mkdir(parents=True)
    told = _run(shell_name, "prepare_script", context, tmp_path)
    assert told.count(b"is not exported") == 3
    assert b"hello" in _run(shell_name, "step_script", context, tmp_path)
    assert not list(tmp_path.rglob("pwned"))


def _run(shell_name: str, stage: str, context: ScriptContext, directory: Path) -> bytes:
    script = shell(shell_name).script(stage, context)
    assert script is not None
    result = run_script([shell_name], script, directory)
    assert result.returncode == 0
    return result.stdout


def test_the_last_of_several_definitions_wins(tmp_path: Path) -> None:
    values = [JobVariable(key="A", value="1", file=True), JobVariable(key="A", value="2")]
    script = shell("bash").script("step_script", script_context(tmp_path, variables=values))
    assert script is not None
    assert script.count("export A=") == 1
    assert "export A=2" in script


def test_an_unknown_shell_is_a_configuration_error() -> None:
    with pytest.raises(SystemFailure, match=r'shell "fish" is not known, expected one of: bash, sh') as caught:
        shell("fish")
    assert caught.value.reason == "runner_configuration_error"
    assert [shell(name).name for name in SHELL_NAMES] == list(SHELL_NAMES)


def test_an_unknown_stage_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='unknown stage "nothing"'):
        shell("bash").script("nothing", script_context(tmp_path))
