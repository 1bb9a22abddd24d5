"""Logs of whole jobs, byte for byte, as the server stores them: a manager, real bash, a fake GitLab."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import SYSTEM_ID, RunnerService

_SECOND = re.compile(rb"(section_(?:start|end)):\d{10}:")
_STAMP = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ", re.MULTILINE)
HOST = platform.node()

PLAIN = f"""\
^[[0KRunning with gitlab-runner 19.4.0 (pyrunner)^[[0;m
^[[0K  on tester @SHORT@, system ID: {SYSTEM_ID}^[[0;m
^[[0K  feature flags: FF_TIMESTAMPS:false^[[0;m
section_start:S:prepare_executor^M^[[0K^[[0K^[[36;1mPreparing the "shell" executor^[[0;m^[[0;m
^[[0KUsing Shell (bash) executor...^[[0;m
section_end:S:prepare_executor^M^[[0K\
section_start:S:prepare_script^M^[[0K^[[0K^[[36;1mPreparing environment^[[0;m^[[0;m
Running on {HOST}...
section_end:S:prepare_script^M^[[0K\
section_start:S:get_sources^M^[[0K^[[0K^[[36;1mGetting source from Git repository^[[0;m^[[0;m
^[[32;1mSkipping Git repository setup^[[0;m
^[[32;1mSkipping Git checkout^[[0;m
^[[32;1mSkipping Git submodules setup^[[0;m
section_end:S:get_sources^M^[[0K^[[32;1mJob triggered by policy "scan".^[[0;m
^[[32;1mVariables of the policy take precedence over variables of the same name set elsewhere.^[[0;m
section_start:S:step_script^M^[[0K^[[0K^[[36;1mExecuting "step_script" stage of the job script^[[0;m^[[0;m
^[[32;1m$ echo "secret is $MASKED_A"^[[0;m
secret is [MASKED]
^[[32;1m$ if true; then # collapsed multi-line command^[[0;m
multi
^[[32;1m$ printf 'no newline'^[[0;m
no newline\
section_end:S:step_script^M^[[0K\
section_start:S:cleanup_file_variables^M^[[0K\
^[[0K^[[36;1mCleaning up project directory and file based variables^[[0;m^[[0;m
section_end:S:cleanup_file_variables^M^[[0K^[[32;1mJob succeeded^[[0;m
"""

STAMPED = f"""\
00O ^[[0KRunning with gitlab-runner 19.4.0 (pyrunner)^[[0;m
00O ^[[0K  on tester @SHORT@, system ID: {SYSTEM_ID}^[[0;m
00O ^[[0K  feature flags: FF_SCRIPT_SECTIONS:true^[[0;m
00O section_start:S:prepare_executor^M^[[0K
00O+^[[0K^[[36;1mPreparing the "shell" executor^[[0;m^[[0;m
00O ^[[0KUsing Shell (bash) executor...^[[0;m
00O section_end:S:prepare_executor^M^[[0K
00O+section_start:S:prepare_script^M^[[0K
00O+^[[0K^[[36;1mPreparing environment^[[0;m^[[0;m
01O Running on {HOST}...
00O section_end:S:prepare_script^M^[[0K
00O+section_start:S:get_sources^M^[[0K
00O+^[[0K^[[36;1mGetting source from Git repository^[[0;m^[[0;m
01O ^[[32;1mSkipping Git repository setup^[[0;m
01O ^[[32;1mSkipping Git checkout^[[0;m
01O ^[[32;1mSkipping Git submodules setup^[[0;m
00O section_end:S:get_sources^M^[[0K
00O+^[[32;1mJob triggered by policy "scan".^[[0;m
00O ^[[32;1mVariables of the policy take precedence over variables of the same name set elsewhere.^[[0;m
00O section_start:S:step_script^M^[[0K
00O+^[[0K^[[36;1mExecuting "step_script" stage of the job script^[[0;m^[[0;m
01O ^[[32;1m$ echo "secret is $MASKED_A"^[[0;m
01O secret is [MASKED]
01O section_start:S:section_script_step_1[hide_duration=true,collapsed=true]^M^[[0K^[[32;1m$ if true; then
01O  echo multi
01O fi^[[0;m
01O section_end:S:section_script_step_1^M^[[0K
01O multi
01O ^[[32;1m$ printf 'no newline'^[[0;m
01O no newline
00O section_end:S:step_script^M^[[0K
00O+section_start:S:cleanup_file_variables^M^[[0K
00O+^[[0K^[[36;1mCleaning up project directory and file based variables^[[0;m^[[0;m
00O section_end:S:cleanup_file_variables^M^[[0K
00O+^[[32;1mJob succeeded^[[0;m
"""


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


@pytest.fixture
def runner(gitlab: FakeGitLab, tmp_path: Path) -> Iterator[RunnerService]:
    with RunnerService(gitlab, tmp_path) as service:
        yield service


def run(gitlab: FakeGitLab, *script: str, variables: dict[str, str] | None = None, **fields: Any) -> FakeJob:
    """A finished job without sources; variables whose name begins with ``MASKED`` are masked."""
    given = {"GIT_STRATEGY": "none", **(variables or {})}
    steps = [{"name": "script", "script": list(script), "timeout": 3600, "when": "on_success"}]
    items = [{"key": key, "value": value, "masked": key.startswith("MASKED")} for key, value in given.items()]
    features = {"trace_sections": True, "token_mask_prefixes": ["acme-"]}
    job = {**job_payload(), "steps": steps, "features": features, "variables": items, **fields}
    done = gitlab.wait_for(gitlab.submit(job), ("success", "failed", "canceled"))
    assert done.trace_matches
    return done


def shown(job: FakeJob) -> str:
    """The log with ``^[`` and ``^M``, without times."""
    trace = _STAMP.sub(b"", _SECOND.sub(rb"\1:S:", job.trace))
    text = trace.decode().replace("\x1b", "^[").replace("\r", "^M")
    # where the script's output was cut depends on when it was read
    text = text.replace("\n01O+", "")
    return re.sub(r"(?<=on tester )\S+(?=,)", "@SHORT@", text)


@pytest.mark.parametrize(
    ("flag", "value", "log"), [("FF_TIMESTAMPS", "false", PLAIN), ("FF_SCRIPT_SECTIONS", "true", STAMPED)]
)
def test_whole_log(gitlab: FakeGitLab, runner: RunnerService, flag: str, value: str, log: str) -> None:
    job = run(
        gitlab,
        'echo "secret is $MASKED_A"',
        "if true; then\n echo multi\nfi",
        "printf 'no newline'",
        variables={flag: value, "MASKED_A": "s3cr3t/value"},
        policy_options={"execution_policy_job": True, "policy_name": "scan"},
    )
    assert shown(job) == log


def test_secrets_in_the_shapes_that_tools_give_them(gitlab: FakeGitLab, runner: RunnerService) -> None:
    key = "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSk+/x==\n-----END KEY-----"
    job = run(
        gitlab,
        'printf \'user:%s\' "$MASKED_A" | base64; printf %s "$MASKED_A" | base64 | tr +/ -_',
        'printf "%q\\n" "$MASKED_A"; (set -x; : "$MASKED_A") 2>&1; export -p | grep " MASKED"',
        'while read -r line; do printf "  | %s\\r\\n" "$line"; done <<<"$MASKED_KEY"; base64 <<<"$MASKED_KEY"',
        variables={"MASKED_A": 'p@ss/w0rd "it\'s"', "MASKED_KEY": key},
    )
    assert job.state == "success"
    log = shown(job)
    assert "p@ss" not in log
    assert "MIIEvg" not in log
    assert "TUlJRXZn" not in log
    assert "cEBzcy93MHJk" not in log
    assert log.count("  | [MASKED]^M\n") == 3


def test_job_adds_a_mask(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = run(
        gitlab,
        "TOKEN=$(printf %s fetched-; printf %s value)",
        'echo "before $TOKEN"; echo "::add-mask::$TOKEN"; echo "after $TOKEN"; printf %s "$TOKEN" | base64',
    )
    log = shown(job)
    assert "01O before fetched-value\n01O ::add-mask::[MASKED]\n01O after [MASKED]\n01O [MASKED]\n" in log
    assert 'echo "::add-mask::$TOKEN"' in log


@pytest.mark.parametrize(("flag", "masked"), [("true", True), ("false", False)])
def test_known_token_prefixes(gitlab: FakeGitLab, runner: RunnerService, flag: str, masked: bool) -> None:
    job = run(
        gitlab, "echo glpat-abc glrt-abc acme-abc", variables={"FF_MASK_ALL_DEFAULT_TOKENS": flag, "FF_TIMESTAMPS": "0"}
    )
    other = "[MASKED]" if masked else "abc"
    assert f"\nglpat-[MASKED] glrt-{other} acme-[MASKED]\n" in shown(job)


def test_without_sections(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = run(gitlab, "if true; then\n echo multi\nfi", variables={"FF_SCRIPT_SECTIONS": "true"}, features={})
    log = shown(job)
    assert "section_" not in log
    assert "$ if true; then # collapsed multi-line command" in log
