"""What the server's answers mean, as types: one answer per call, never an exception (facts/runner-api.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from pyrunner.api.wire import JobResponse, RunnerCredentials

#: Internal statuses beside the HTTP ones (section 1.6).
CLIENT_ERROR = -100
NO_ANSWER = -1


class UpdateState(Enum):
    """Result of ``PUT jobs/:id`` (section 6.2)."""

    SUCCEEDED = auto()
    #: 202: the server is still verifying the trace.
    ACCEPTED = auto()
    #: 412: send the whole trace again.
    TRACE_VALIDATION_FAILED = auto()
    #: The job is over for the server; stop at once.
    ABORT = auto()
    #: 404: the server does not know the job; callers treat it like `ABORT`.
    NOT_FOUND = auto()
    #: No usable answer; try again later.
    FAILED = auto()

    @property
    def lost(self) -> bool:
        """Whether the job is no longer ours."""
        return self in (UpdateState.ABORT, UpdateState.NOT_FOUND)


class PatchState(Enum):
    """Result of ``PATCH jobs/:id/trace`` (section 6.4)."""

    SUCCEEDED = auto()
    ABORT = auto()
    #: 404: the job goes on, the final phase stops sending.
    NOT_FOUND = auto()
    #: 416: go on at `PatchAnswer.offset`.
    RANGE_MISMATCH = auto()
    #: No usable answer; the same bytes again next time.
    FAILED = auto()


class Verification(Enum):
    """Result of ``POST runners/verify`` (section 3.2)."""

    VALID = auto()
    #: 403, the only status that says that the runner is gone.
    REMOVED = auto()
    #: Anything else; the runner counts as verified because nothing says that it is not.
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """Result of ``POST jobs/request`` (section 4.2)."""

    #: None: no job now.
    job: JobResponse | None = field(default=None, repr=False)
    #: Feeds the health rule of section 9.4: only 403 and an unusable URL are unhealthy.
    healthy: bool = True
    #: HTTP status, or `CLIENT_ERROR` / `NO_ANSWER`.
    status: int = NO_ANSWER
    #: ``X-Request-Id`` of the answer, else the one that was sent.
    correlation_id: str = ""
    #: What ``CI_SERVER_TLS_CA_FILE`` holds (section 1.4), set with a job: the configured CA file's content, else
    #: PEM of the connection's chain, the server's certificate first; empty over plain http without a CA file.
    tls_chain: str = ""
    #: PEM of the configured client pair, both or none; set with a job.
    tls_certificate: str = ""
    tls_key: str = field(default="", repr=False)
    #: Whether any attempt met a retriable status (section 9.3).
    retried: bool = False
    #: What is wrong with the payload of a 201; `job` then carries id and token as far as they can be read, so that the
    #: job can be failed (``runner_system_failure``), or is None.
    invalid: str = ""
    #: Whether the request ended because its token was cancelled.
    cancelled: bool = False


@dataclass(frozen=True, kw_only=True)
class UpdateAnswer:
    """Result of a job update."""

    state: UpdateState
    #: ``Job-Status: canceling``: stop the script gracefully.
    cancel_requested: bool = False
    #: Seconds until the next update that the server asks for, None = not said.
    interval: float | None = None
    status: int = NO_ANSWER


@dataclass(frozen=True, kw_only=True)
class PatchAnswer:
    """Result of a trace patch."""

    state: PatchState
    #: Where the next patch starts: behind what was sent, what a 416 says, or the same start again.
    offset: int
    cancel_requested: bool = False
    interval: float | None = None
    status: int = NO_ANSWER


@dataclass(frozen=True, kw_only=True)
class CredentialsAnswer:
    """Result of register and token reset; `credentials` is None on failure."""

    credentials: RunnerCredentials | None = field(default=None, repr=False)
    status: int = NO_ANSWER
    #: One line that says why there are no credentials.
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class VerifyAnswer:
    """Result of verify; `credentials` is None when the server sent none (old servers, failures)."""

    verification: Verification
    credentials: RunnerCredentials | None = field(default=None, repr=False)
    status: int = NO_ANSWER
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class UnregisterAnswer:
    """Result of unregistering a runner or a runner manager."""

    done: bool
    status: int = NO_ANSWER
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """One finished API request, for metrics (section 12): called for every answer, attempts included."""

    endpoint: str
    method: str
    status: int
    seconds: float
    attempts: int = field(default=1)
