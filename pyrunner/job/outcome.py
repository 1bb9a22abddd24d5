"""How a job ended: state, failure reason, exit code and the last line (facts/job-lifecycle.md 3.4, runner-api.md 7)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyrunner.base.errors import JobError

_ALWAYS_KNOWN = frozenset(("script_failure", "runner_system_failure", "job_execution_timeout"))
#: What an older server gets instead of a reason that it does not know.
_COMPATIBLE = {
    "image_pull_failure": "runner_system_failure",
    "runner_configuration_error": "script_failure",
    "runner_external_dependency_failure": "runner_system_failure",
}
_SYSTEM = "runner_system_failure"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The verdict on a job."""

    #: ``success`` or ``failed``: what the server is told.
    state: str
    #: Before mapping; empty on success.
    reason: str = ""
    #: After mapping to what the server supports.
    sent_reason: str = ""
    exit_code: int = 0
    #: Text of the last line of the log, without its colour and ``ERROR: ``.
    line: str = "Job succeeded"
    error: BaseException | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the job succeeded."""
        return self.state == "success"


def outcome_of(error: BaseException | None, supported: Collection[str] = ()) -> Outcome:
    """The verdict for the error that a job ended with; `supported` is ``features.failure_reasons`` of the server."""
    if error is None:
        return Outcome(state="success")
    if not isinstance(error, JobError):
        text = str(error) or type(error).__name__
        return Outcome(
            state="failed",
            reason=_SYSTEM,
            sent_reason=_SYSTEM,
            line=f"Job failed (system failure): {text}",
            error=error,
        )
    mark = " (system failure)" if error.reason == _SYSTEM else ""
    return Outcome(
        state="failed",
        reason=error.reason,
        sent_reason=map_reason(error.reason, supported),
        exit_code=signed_32(error.job_exit_code),
        line=f"Job failed{mark}: {error}",
        error=error,
    )


def map_reason(reason: str, supported: Collection[str]) -> str:
    """The reason that is sent to a server which knows `supported`."""
    if not reason:
        return "script_failure"
    while reason not in _ALWAYS_KNOWN and reason not in supported:
        if reason not in _COMPATIBLE:
            return "unknown_failure"
        reason = _COMPATIBLE[reason]
    return reason


def signed_32(code: int) -> int:
    """An exit code as GitLab shows it: the low 32 bits, signed (Windows codes are large)."""
    low = code & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low
