"""The generated scripts: facts/job-lifecycle.md section 6 and the flags that change them. Names begin with the section.

What a user sees must not depend on how a script is wrapped and quoted: the rows run in each of `WAYS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from job_life.world import Result, World

WAYS: dict[str, dict[str, Any]] = {
    "bash": {},
    "legacy-eval": {"feature_flags": {"FF_USE_LEGACY_BASH_EVAL": True}},
    "posix-quotes": {"feature_flags": {"FF_POSIXLY_CORRECT_ESCAPES": True}},
    "exit-code-check": {"feature_flags": {"FF_ENABLE_BASH_EXIT_CODE_CHECK": True}},
    "sh": {"shell": "sh"},
}
EXACT = ("bash", "posix-quotes", "exit-code-check", "sh")
NASTY = 'it\'s "quoted" $HOME `id` \\ back\\\\slash ! # * ? ~ \t tab é λ 😀 \x01 \x7f %s -n {a,b} [x] <>|&;()'


@dataclass(frozen=True, kw_only=True)
class Script:
    """Commands and what they print, without the echo of the commands."""

    id: str
    script: list[str]
    prints: list[str] = field(default_factory=list)
    code: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    #: Only these `WAYS`.
    ways: tuple[str, ...] = tuple(WAYS)


BASH = ("bash", "legacy-eval", "posix-quotes", "exit-code-check")
SCRIPTS = [
    Script(id="6-stops-at-the-first-failure", script=["echo one", "(exit 7)", "echo two"], prints=["one"], code=7),
    Script(id="6-exit-code-of-exit", script=["exit 3", "echo no"], code=3),
    Script(id="6-exit-zero-ends-well", script=["exit 0", "false"]),
    Script(id="6-code-255", script=["exit 255"], code=255),
    Script(id="6-command-not-found", script=["no-such-program-here 2>/dev/null"], code=127),
    Script(id="6-function-fails", script=["f() { return 9; }", "f", "echo no"], code=9),
    Script(
        id="6-condition-does-not-fail",
        script=["if false; then echo no; fi", "false || true", "! true || :", "echo end"],
        prints=["end"],
    ),
    Script(id="6-and-list-that-is-false-goes-on", script=["false && true; :", "echo end"], prints=["end"]),
    Script(id="6-pipefail", script=["false | true", "echo no"], code=1, ways=BASH),
    Script(
        id="6-noclobber-is-off",
        script=["set -o | grep -q 'noclobber[[:space:]]*off'", "echo a > f; echo b > f; cat f"],
        prints=["b"],
    ),
    Script(id="6-errexit-is-on", script=["case $- in *e*) echo on;; esac"], prints=["on"]),
    Script(
        id="6-input-is-empty", script=["cat", "read x || echo empty", "echo still here"], prints=["empty", "still here"]
    ),
    Script(id="6-input-of-a-loop", script=["while read line; do echo $line; done", "echo end"], prints=["end"]),
    Script(
        id="6-shell-state-stays-within-a-stage",
        script=["cd /; X=1", "f() { echo f$X; }", 'echo "$PWD"; f'],
        prints=["/", "f1"],
    ),
    Script(id="6-exit-trap-of-the-user", script=["trap 'echo bye' EXIT", "echo body"], prints=["body", "bye"]),
    Script(
        id="6-exit-trap-on-failure",
        script=["trap 'echo bye $?' EXIT", "(exit 4)"],
        prints=["bye 4"],
        code=4,
        ways=EXACT,
    ),
    Script(id="6-background-jobs-do-not-hold", script=["(sleep 0.05; true) & wait", "echo end"], prints=["end"]),
    Script(id="6-here-document", script=["cat <<'X'\n$HOME 'as' \"is\"\nX"], prints=["$HOME 'as' \"is\""]),
    Script(id="6-comments-and-continuations", script=["echo a \\\n  b # comment"], prints=["a b"]),
    Script(id="6-windows-line-ends-are-trimmed", script=["  echo trimmed \r\n"], prints=["trimmed"]),
    Script(
        id="6-nasty-value",
        script=['printf "%s\\n" "$NASTY"'],
        variables={"NASTY": NASTY.replace("$", "$$")},
        prints=[NASTY],
    ),
    Script(
        id="6-value-with-newlines",
        script=['printf "<%s>\\n" "$V"'],
        variables={"V": "a\n\nb\n"},
        prints=["<a", "", "b", ">"],
    ),
    Script(id="6-empty-value", script=['echo "<${V-unset}>"'], variables={"V": ""}, prints=["<>"]),
    Script(id="6-value-like-an-option", script=['echo "$V" x'], variables={"V": "-z -n"}, prints=["-z -n x"]),
    Script(id="6-long-value", script=['echo "${#V}"'], variables={"V": "x" * 100_000}, prints=["100000"]),
    Script(
        id="6-nasty-command",
        script=["printf '%s\\n' '" + NASTY.replace("'", "") + "'"],
        prints=[NASTY.replace("'", "")],
    ),
    Script(id="6-self-kill", script=["kill -9 $$; sleep 5"], code=-1, ways=("bash", "sh")),
    Script(id="6-term-is-trapped", script=["kill -15 $$; sleep 0.01", "echo no"], code=1, ways=EXACT),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def run(world: World, *script: str, **fields: Any) -> Result:
    """A job without sources."""
    variables = {"GIT_STRATEGY": "empty", **fields.pop("variables", {})}
    return world.run(*script, variables=variables, **fields)


def printed(result: Result) -> list[str]:
    """What the script printed beside the echo of its commands."""
    return printed_in(result.raw)


def printed_in(raw: str) -> list[str]:
    """The same for a log without timestamps."""
    found = re.search(r"section_start:\d+:step_script\r(.*?)section_end:\d+:step_script\r", raw, re.DOTALL)
    assert found
    text = re.sub(r"\x1b\[32;1m\$ .*?\x1b\[0;m\n", "", found[1], flags=re.DOTALL)
    return text.split("\n")[1:-1]


@pytest.mark.parametrize("way", WAYS)
def test_scripts(world: World, way: str) -> None:
    """All rows of one way on one runner.

    The legacy form loses the code of a command that errexit stops at: bash makes a 1 of it, which is why there is a
    newer form.
    """
    wrong = []
    for case in SCRIPTS:
        if way not in case.ways:
            continue
        state = "success" if case.code == 0 else "failed"
        try:
            result = run(world, *case.script, state=state, variables=case.variables, runner=WAYS[way])
        except AssertionError as error:
            wrong.append(f"{case.id}: {error}")
            continue
        if printed(result) != case.prints:
            wrong.append(f"{case.id}: printed {printed(result)}, not {case.prints}")
        codes = {case.code, 1} if way == "legacy-eval" else {case.code}
        if case.code > 0 and not [code for code in codes if f"ERROR: Job failed: exit status {code}\n" in result.text]:
            wrong.append(f"{case.id}: {result.text[-100:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("way", WAYS)
def test_6_commands_before_a_syntax_error_run(world: World, way: str) -> None:
    result = run(world, "echo first", "if then", "echo last", runner=WAYS[way], state="failed")
    assert "\nfirst\n" in result.text
    assert "syntax error" in result.text.lower()
    assert "\nlast\n" not in result.text


def test_6_exit_codes_arrive(world: World) -> None:
    for code in (1, 42, 255):
        assert run(world, f"exit {code}", state="failed").job.updates[-1]["exit_code"] == code


# --- echo of commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_6_commands_are_echoed(world: World, way: str) -> None:
    result = run(world, " true ", "", "if true; then\n :\nfi", "\n\n", ": 'é$x`\\'", runner=WAYS[way])
    step = result.raw[result.raw.index("step_script") :]
    assert (
        "\x1b[32;1m$ true\x1b[0;m\n"
        "\n"
        "\x1b[32;1m$ if true; then # collapsed multi-line command\x1b[0;m\n"
        "\n"
        "\x1b[32;1m$ : 'é$x`\\'\x1b[0;m\n"
    ) in step


@pytest.mark.parametrize("way", ["bash", "sh"])
def test_5_3_script_sections(world: World, way: str) -> None:
    runner = {**WAYS[way], "feature_flags": {"FF_SCRIPT_SECTIONS": True}, "pre_build_script": "echo pre\n:"}
    script = ("echo single", "echo one\necho two")
    result = run(world, *script, after=["echo three\n:"], runner=runner)
    kinds = re.findall(r"section_(start|end):\d+:(section_[a-z_]+_\d+)(\[[^\]]*\])?\r\x1b\[0K", result.raw)
    options = "[hide_duration=true,collapsed=true]"
    expected = ["section_pre_build_script_0", "section_script_step_1", "section_after_script_step_0"]
    assert kinds == [pair for name in expected for pair in (("start", name, options), ("end", name, ""))]
    marked = r"section_end:\d+:section_script_step_1\r\x1b\[0K\none\ntwo\n"
    assert re.search(marked, result.raw), "the section ends before the command runs"
    assert "\x1b[32;1m$ echo one\necho two\x1b[0;m\n" in result.raw
    assert "\x1b[32;1m$ echo single\x1b[0;m\n" in result.raw


def test_5_3_script_sections_need_a_server_that_shows_sections(world: World) -> None:
    features = {"trace_sections": False}
    runner = {"feature_flags": {"FF_SCRIPT_SECTIONS": True}}
    result = run(world, "echo one\necho two", runner=runner, features=features)
    assert "section_" not in result.raw
    assert "$ echo one # collapsed multi-line command" in result.text


# --- flags ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_6_exit_code_check_holds_without_errexit(world: World, shell: str) -> None:
    script = ("set +e", "(exit 5)", "echo went on")
    assert "\nwent on\n" in run(world, *script, runner={"shell": shell}).text
    checked = run(world, *script, runner={"shell": shell, **WAYS["exit-code-check"]}, state="failed")
    assert "\nwent on\n" not in checked.text
    assert "exit status 5" in checked.text


@pytest.mark.parametrize("way", WAYS)
def test_6_debug_trace(world: World, way: str) -> None:
    result = run(world, "echo $((40 + 2))", variables={"CI_DEBUG_TRACE": "true"}, runner=WAYS[way])
    assert re.search(r"^\++ echo 42$", result.text, re.MULTILINE)


def test_6_debug_trace_can_be_forbidden(world: World) -> None:
    runner = {"debug_trace_disabled": True}
    result = run(world, "echo $((40 + 2))", variables={"CI_DEBUG_TRACE": "true"}, runner=runner)
    assert "WARNING: CI_DEBUG_TRACE: usage is disabled on this Runner" in result.text
    assert "+ echo 42" not in result.text


@pytest.mark.parametrize("way", WAYS)
def test_6_runner_scripts_surround_every_step_in_its_shell(world: World, way: str) -> None:
    runner = {**WAYS[way], "pre_build_script": "echo pre; X=1", "post_build_script": "echo post $X"}
    step = {"timeout": 60, "when": "on_success", "allow_failure": False}
    steps = [
        {"name": "script", "script": ["echo script $X", "X=2"], **step},
        {"name": "release", "script": ["echo release $VERSION"], **step},
        {"name": "after_script", "script": ["echo after ${X-unset}"], **step, "when": "always"},
    ]
    result = run(world, steps=steps, variables={"VERSION": "1.2"}, runner=runner)
    said = [
        line for line in result.text.splitlines() if line.startswith(("pre", "script", "release", "post", "after "))
    ]
    assert said == ["pre", "script 1", "post 2", "pre", "release 1.2", "post 1", "after unset"]
    assert "step_release" in result.sections


def test_6_prepare_says_where_the_job_runs(world: World) -> None:
    result = run(world, "hostname")
    host = result.section("step_script").splitlines()[-1]
    assert result.section("prepare_script").splitlines() == ["Preparing environment", f"Running on {host}..."]


@pytest.mark.parametrize("way", WAYS)
def test_4_4_gitlab_env_reaches_later_stages_only(world: World, way: str) -> None:
    script = ("echo 'A=b c \"d\" $HOME' >> $GITLAB_ENV", "printf 'B=last' >> $GITLAB_ENV", 'echo "<${A-unset}>"')
    result = run(world, *script, after=['echo "after <$A> <$B>"'], runner=WAYS[way])
    assert "\n<unset>\n" in result.text
    assert '\nafter <b c "d" $HOME> <last>\n' in result.text
    assert "after <> <>" in run(world, after=['echo "after <$A> <$B>"'], runner=WAYS[way]).text


@pytest.mark.parametrize("way", WAYS)
def test_4_3_file_variables(world: World, way: str) -> None:
    value = 'line one\nit\'s "$HOME" `id`\\\nno newline at the end'
    secret = {"key": "FILE_VAR", "value": value, "file": True, "public": False, "masked": False, "raw": True}
    script = ('[ "$FILE_VAR" = "$RUNNER_TEMP_PROJECT_DIR/FILE_VAR" ]', "cat $FILE_VAR; echo '|'")
    result = run(world, *script, extra_variables=[secret], runner=WAYS[way])
    assert f"{value}|" in result.text
