"""Whole jobs: a manager in this process, real bash, a fake GitLab on a real socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.faults import drop, status
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import SYSTEM_ID, RunnerService

FAILURE_REASONS = ["script_failure", "runner_interrupted", "runner_configuration_error", "job_canceled"]
PLAIN = re.compile(r"\x1b\[[0-9;]*[mK]|^\S+Z 0[01][OE][ +]", re.MULTILINE)


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1) as server:
        yield server


@pytest.fixture
def runner(gitlab: FakeGitLab, tmp_path: Path) -> Iterator[RunnerService]:
    with RunnerService(gitlab, tmp_path) as service:
        yield service


def step(name: str, *script: str) -> dict[str, Any]:
    return {"name": name, "script": list(script), "timeout": 3600, "when": "on_success", "allow_failure": False}


def payload(*script: str, after: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    steps = [step("script", *script)] + ([step("after_script", *after)] if after else [])
    features = {"trace_sections": True, "failure_reasons": FAILURE_REASONS}
    return {**job_payload(), "steps": steps, "features": features, **fields}


def finished(gitlab: FakeGitLab, job: dict[str, Any]) -> FakeJob:
    return gitlab.wait_for(gitlab.submit(job), ("success", "failed", "canceled"))


def text(job: FakeJob) -> str:
    return PLAIN.sub("", job.trace.decode())


def wait_for_file(path: Path, gitlab: FakeGitLab) -> None:
    assert gitlab._wait(path.exists, 20), f"{path} does not appear"  # noqa: SLF001


def check_delivery(job: FakeJob) -> None:
    """The server has the whole trace, and was told the verdict once."""
    assert job.trace_matches
    assert job.verdicts == 1
    assert job.final_updates == 1


def test_success(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = finished(gitlab, payload("echo one", "echo two", after=("echo after $CI_JOB_STATUS",)))
    assert job.state == "success"
    check_delivery(job)
    lines = text(job)
    assert lines.startswith("Running with gitlab-runner 19.4.0 (pyrunner)\n  on tester ")
    assert f"system ID: {SYSTEM_ID}\n" in lines
    for line in ("$ echo one", "one", "$ echo two", "two", "after success"):
        assert f"\n{line}\n" in lines
    assert lines.endswith("Job succeeded\n")
    assert [update["state"] for update in job.updates] == ["running", "success"]
    assert job.updates[0]["output"] == {}
    assert job.system_id == SYSTEM_ID


def test_sections_come_in_order_and_empty_stages_leave_no_mark(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = finished(gitlab, payload("true"))
    sections = re.findall(rb"section_(start|end):\d+:(\w+)", job.trace)
    stages = [b"prepare_executor", b"prepare_script", b"get_sources", b"step_script", b"cleanup_file_variables"]
    assert sections == [(kind, stage) for stage in stages for kind in (b"start", b"end")]


def test_script_failure_carries_its_exit_code(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = finished(gitlab, payload("exit 42", "echo unreachable", after=("echo after $CI_JOB_STATUS",)))
    assert job.state == "failed"
    assert job.verdict is not None
    assert (job.verdict.failure_reason, job.verdict.exit_code) == ("script_failure", 42)
    assert "\nafter failed\n" in text(job)
    assert "\nunreachable\n" not in text(job)
    assert text(job).endswith("ERROR: Job failed: exit status 42\n")
    check_delivery(job)


def test_all_steps_run_and_a_failing_one_stops_the_rest(gitlab: FakeGitLab, runner: RunnerService) -> None:
    steps = [step("script", "echo first"), step("Release", "exit 1"), step("more", "echo third")]
    job = finished(gitlab, payload(steps=steps))
    assert b"step_release" in job.trace
    assert b"step_more" not in job.trace
    assert job.state == "failed"


def test_variables_reach_the_script(gitlab: FakeGitLab, runner: RunnerService) -> None:
    variables = [
        {"key": "GIT_STRATEGY", "value": "none"},
        {"key": "NAME", "value": "a '$OTHER' \"quoted\" \\ value"},
        {"key": "OTHER", "value": "other"},
        {"key": "RAW", "value": "$OTHER", "raw": True},
        {"key": "FILE", "value": "content of a file", "file": True},
        {"key": "HIDDEN", "value": "s3cr3t-value", "masked": True},
    ]
    script = ('echo "<$NAME>"', 'echo "<$RAW>"', 'cat "$FILE"; echo', 'echo "$HIDDEN"', 'echo "$CI_PROJECT_DIR"')
    job = finished(gitlab, payload(*script, variables=variables))
    lines = text(job)
    assert "<a 'other' \"quoted\" \\ value>" in lines
    assert "<$OTHER>" in lines
    assert "content of a file" in lines
    assert "[MASKED]" in lines
    assert b"s3cr3t-value" not in job.trace
    assert re.search(r"/builds/\w{1,9}/0/group/project\n", lines)


def test_job_timeout_skips_after_script(gitlab: FakeGitLab, runner: RunnerService) -> None:
    job = finished(gitlab, payload("echo begin; sleep 60", after=("echo after",), runner_info={"timeout": 1}))
    assert job.verdict is not None
    assert job.verdict.failure_reason == "job_execution_timeout"
    assert text(job).endswith("ERROR: Job failed: execution took longer than 1s seconds\n")
    assert "step_script could not run to completion because the timeout was exceeded." in text(job)
    assert b"after_script" not in job.trace.replace(b"script-and-after_script-timeouts", b"")
    check_delivery(job)


def test_script_timeout_runs_after_script(gitlab: FakeGitLab, runner: RunnerService) -> None:
    variables = [{"key": "GIT_STRATEGY", "value": "none"}, {"key": "RUNNER_SCRIPT_TIMEOUT", "value": "500ms"}]
    job = finished(gitlab, payload("sleep 60", after=("echo after $CI_JOB_STATUS",), variables=variables))
    assert job.verdict is not None
    assert job.verdict.failure_reason == "job_execution_timeout"
    assert "\nafter timedout\n" in text(job)
    assert text(job).endswith("ERROR: Job failed: script timeout: context deadline exceeded\n")


def test_after_script_timeout_does_not_fail_the_job(gitlab: FakeGitLab, runner: RunnerService) -> None:
    variables = [{"key": "GIT_STRATEGY", "value": "none"}, {"key": "RUNNER_AFTER_SCRIPT_TIMEOUT", "value": "500ms"}]
    job = finished(gitlab, payload("true", after=("sleep 60",), variables=variables))
    assert job.state == "success"
    assert "WARNING: after_script failed, but job will continue unaffected: context deadline exceeded" in text(job)


def test_graceful_cancel_runs_after_script(gitlab: FakeGitLab, runner: RunnerService, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    job_id = gitlab.submit(payload(f"touch {mark}; sleep 60", after=("echo after $CI_JOB_STATUS",)))
    wait_for_file(mark, gitlab)
    gitlab.cancel(job_id)
    job = gitlab.wait_for(job_id, ("canceled", "failed"))
    assert "WARNING: script canceled externally (UI, API)" in text(job)
    assert "\nafter canceled\n" in text(job)
    assert text(job).endswith("ERROR: Job failed: canceled\n")
    assert job.updates[-1]["failure_reason"] == "job_canceled"
    check_delivery(job)


def test_forced_cancel_stops_everything(gitlab: FakeGitLab, runner: RunnerService, tmp_path: Path) -> None:
    mark, after = tmp_path / "started", tmp_path / "after"
    job_id = gitlab.submit(payload(f"touch {mark}; sleep 60", after=(f"touch {after}",)))
    wait_for_file(mark, gitlab)
    gitlab.cancel(job_id, force=True)
    assert gitlab._wait(lambda: runner.service.builds == 0, 20)  # noqa: SLF001
    assert not after.exists()


def test_403_in_mid_job_aborts_it(gitlab: FakeGitLab, runner: RunnerService, tmp_path: Path) -> None:
    mark, after = tmp_path / "started", tmp_path / "after"
    job_id = gitlab.submit(payload(f"touch {mark}; sleep 60", after=(f"touch {after}",)))
    wait_for_file(mark, gitlab)
    gitlab.inject("*", rf"/jobs/{job_id}(/trace)?$", status(403), times=None)
    assert gitlab._wait(lambda: runner.service.builds == 0, 20)  # noqa: SLF001
    assert not after.exists()


@pytest.mark.parametrize("code", [500, 502, 503, 429])
def test_failing_requests_lose_nothing(gitlab: FakeGitLab, runner: RunnerService, code: int) -> None:
    gitlab.inject("PATCH", "/trace$", status(code), times=2)
    gitlab.inject("PUT", r"/jobs/\d+$", status(code), times=2, skip=1)
    job = finished(gitlab, payload("echo output"))
    assert job.state == "success"
    assert job.trace_matches
    assert "\noutput\n" in text(job)


def test_dropped_answers_lose_nothing(gitlab: FakeGitLab, runner: RunnerService) -> None:
    gitlab.inject("PATCH", "/trace$", drop(handled=True))
    gitlab.inject("PUT", r"/jobs/\d+$", drop(handled=True), skip=1)
    job = finished(gitlab, payload("echo output"))
    assert job.state == "success"
    assert job.trace_matches
    assert job.verdicts == 1


def test_202_to_the_verdict_is_asked_again(gitlab: FakeGitLab, runner: RunnerService) -> None:
    gitlab.inject("PUT", r"/jobs/\d+$", status(202, {"X-GitLab-Trace-Update-Interval": "1"}), skip=1)
    job = finished(gitlab, payload("true"))
    assert job.state == "success"
    assert job.final_updates == 2


def test_416_goes_on_where_the_server_is(gitlab: FakeGitLab, runner: RunnerService) -> None:
    gitlab.inject("PATCH", "/trace$", status(416, {"Range": "0-0"}))
    job = finished(gitlab, payload("echo output"))
    assert job.state == "success"
    assert job.trace_matches


@pytest.mark.parametrize("fault", [status(409), status(500), drop()])
def test_commit_without_a_usable_answer_runs_the_job(
    gitlab: FakeGitLab, runner: RunnerService, fault: Any, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    gitlab.inject("PUT", r"/jobs/\d+$", fault, times=5 if fault.status == 500 else 1)
    gitlab.submit(payload(f"touch {mark}"))
    wait_for_file(mark, gitlab)


@pytest.mark.parametrize("code", [403, 404])
def test_job_that_is_lost_at_the_commit_is_dropped_silently(
    gitlab: FakeGitLab, runner: RunnerService, code: int, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    gitlab.inject("PUT", r"/jobs/\d+$", status(code))
    lost = gitlab.submit(payload(f"touch {mark}"))
    gitlab.wait_for_requests("PUT", rf"/jobs/{lost}$")
    assert finished(gitlab, payload("true")).state == "success"
    assert not mark.exists()
    assert gitlab.requests_to("PATCH", f"/jobs/{lost}/") == []
    assert len(gitlab.requests_to("PUT", rf"/jobs/{lost}$")) == 1


def test_job_that_is_canceling_at_the_commit_never_starts(
    gitlab: FakeGitLab, runner: RunnerService, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    gitlab.inject("PUT", r"/jobs/\d+$", status(200, {"Job-Status": "canceling"}))
    job_id = gitlab.submit(payload(f"touch {mark}"))
    updates = gitlab.wait_for_requests("PUT", rf"/jobs/{job_id}$", 2)
    assert gitlab._wait(lambda: bool(updates[1].body), 5)  # noqa: SLF001
    assert updates[1].json["failure_reason"] == "job_canceled"
    assert not mark.exists()


REFUSED = [
    ({"secrets": {"PASSWORD": {"vault": {}}}}, "runner_configuration_error", 0, 'resolving secrets: "PASSWORD"'),
    (
        {
            "inputs": [{"key": "x", "value": {"type": "string", "content": "y"}}],
            "steps": [step("script", "echo ${{ job.inputs.y }}")],
        },
        "runner_configuration_error",
        0,
        'there is no job input "y"',
    ),
    ({"run": "[]", "steps": []}, "runner_configuration_error", 0, "cannot run CI steps"),
    ({"run": "[]"}, "runner_system_failure", 3, "both `run` and scripts"),
    (
        {"image": {"name": "x", "executor_opts": {"docker": {"colour": "red"}}}},
        "runner_system_failure",
        3,
        'Unsupported "image" options [colour] for "docker executor"; supported options are [platform user]',
    ),
]


@pytest.mark.parametrize(("fields", "reason", "code", "line"), REFUSED)
def test_what_cannot_be_done_is_refused_with_one_line(
    gitlab: FakeGitLab, runner: RunnerService, fields: dict[str, Any], reason: str, code: int, line: str
) -> None:
    job = finished(gitlab, payload("echo hello", **fields))
    assert job.verdict is not None
    assert (job.verdict.failure_reason, job.verdict.exit_code) == (reason, code)
    assert line in text(job).splitlines()[-1]
    assert b"step_script" not in job.trace


def test_inputs_are_put_into_the_script(gitlab: FakeGitLab, runner: RunnerService) -> None:
    inputs = [{"key": "x", "value": {"type": "string", "content": "from an input"}}]
    job = finished(gitlab, payload('echo "<${{ job.inputs.x }}>"', inputs=inputs))
    assert job.state == "success"
    assert "\n<from an input>\n" in text(job)


def test_malformed_payload_fails_its_job_and_not_the_runner(gitlab: FakeGitLab, runner: RunnerService) -> None:
    broken = {"id": 4711, "token": "t", "git_info": {"depth": "deep"}, "variables": "none"}
    gitlab.submit_raw(json.dumps(broken).encode(), job_id=4711, token="t")
    job = gitlab.wait_for(4711, "failed")
    assert job.verdict is not None
    assert job.verdict.failure_reason == "runner_system_failure"
    assert "the job payload cannot be read" in text(job)
    assert finished(gitlab, payload("true")).state == "success"


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"id":"x"}', b'{"id":' + b"[" * 5000])
def test_unreadable_payload_does_not_hurt(gitlab: FakeGitLab, runner: RunnerService, body: bytes) -> None:
    gitlab.submit_raw(body, job_id=99)
    assert finished(gitlab, payload("true")).state == "success"


def test_builds_dir_that_cannot_be_made(gitlab: FakeGitLab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with RunnerService(gitlab, tmp_path, {"builds_dir": str(tmp_path / "file" / "builds")}):
        job = finished(gitlab, payload("true"))
    assert job.verdict is not None
    assert job.verdict.failure_reason == "runner_system_failure"
    assert "ERROR: Job failed (system failure): " in text(job).splitlines()[-1]
    assert "Traceback" not in text(job)


def test_wrong_settings_are_warned_of_once(gitlab: FakeGitLab, runner: RunnerService) -> None:
    variables = [
        {"key": "GIT_STRATEGY", "value": "none"},
        {"key": "GIT_CHECKOUT", "value": "perhaps"},
        {"key": "GET_SOURCES_ATTEMPTS", "value": "99"},
        {"key": "FF_TIMESTAMPS", "value": "sometimes"},
    ]
    lines = text(finished(gitlab, payload("true", variables=variables)))
    assert "WARNING: GET_SOURCES_ATTEMPTS: number of attempts out of the range [1, 10], clamping to: 10\n" in lines
    assert 'GIT_CHECKOUT: expected bool got "perhaps", using default value: true\n' in lines
    assert "FF_TIMESTAMPS: could not parse feature flag, expected bool, got sometimes" in lines
    assert lines.count("WARNING: ") == 1
