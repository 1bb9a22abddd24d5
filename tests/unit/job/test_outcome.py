from __future__ import annotations

import pytest

from pyrunner.base.errors import JobCanceled, JobFailure, JobInterrupted, JobTimeout, SystemFailure
from pyrunner.job.outcome import map_reason, outcome_of, signed_32


def test_success() -> None:
    outcome = outcome_of(None)
    assert (outcome.state, outcome.line, outcome.sent_reason) == ("success", "Job succeeded", "")


@pytest.mark.parametrize(
    ("error", "line", "reason", "code"),
    [
        (JobFailure("exit status 3", job_exit_code=3), "Job failed: exit status 3", "script_failure", 3),
        (SystemFailure("no disk"), "Job failed (system failure): no disk", "runner_system_failure", 0),
        (SystemFailure("bad", reason="runner_configuration_error"), "Job failed: bad", "script_failure", 0),
        (JobCanceled(), "Job failed: canceled", "unknown_failure", 0),
        (JobInterrupted("aborted: terminated"), "Job failed: aborted: terminated", "unknown_failure", 0),
        (JobTimeout("too long"), "Job failed: too long", "job_execution_timeout", 0),
        (ValueError("bug"), "Job failed (system failure): bug", "runner_system_failure", 0),
        (ValueError(), "Job failed (system failure): ValueError", "runner_system_failure", 0),
    ],
)
def test_failures(error: Exception, line: str, reason: str, code: int) -> None:
    outcome = outcome_of(error)
    assert (outcome.state, outcome.line, outcome.sent_reason, outcome.exit_code) == ("failed", line, reason, code)


@pytest.mark.parametrize(
    ("reason", "supported", "sent"),
    [
        ("", [], "script_failure"),
        ("image_pull_failure", [], "runner_system_failure"),
        ("image_pull_failure", ["image_pull_failure"], "image_pull_failure"),
        ("runner_external_dependency_failure", [], "runner_system_failure"),
        ("runner_interrupted", ["runner_interrupted"], "runner_interrupted"),
        ("made_up", [], "unknown_failure"),
    ],
)
def test_reasons_are_mapped_to_what_the_server_knows(reason: str, supported: list[str], sent: str) -> None:
    assert map_reason(reason, supported) == sent


@pytest.mark.parametrize(("code", "signed"), [(3, 3), (255, 255), (0xC0000005, -1073741819), (-1, -1), (2**32, 0)])
def test_exit_codes_are_signed_32_bit(code: int, signed: int) -> None:
    assert signed_32(code) == signed
