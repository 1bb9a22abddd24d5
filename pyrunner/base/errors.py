"""Every error that pyrunner raises on purpose.

::

    PyrunnerError            one line for the user, an exit code; never a traceback
    ├── UsageError           the command line or its environment is wrong
    ├── ConfigError          config.toml is wrong: says file, line, column, key
    ├── PipelineError        .gitlab-ci.yml is wrong: says file, line, keyword
    ├── MissingExtraError    an optional dependency is not installed: says what to install
    ├── ApiError             the server could not be asked, or refused
    └── JobError             a job ends badly: carries GitLab's failure reason
        ├── JobFailure       the user's script failed: carries its exit code
        ├── SystemFailure    our side failed (``runner_system_failure`` or a more exact reason)
        ├── JobTimeout       a deadline of the job passed
        ├── JobCanceled      the server canceled the job
        └── JobInterrupted   the runner process was told to stop
"""

from __future__ import annotations

#: All fatal errors of GitLab Runner end with exit code 1 (facts/commands.md 1), and scripts rely on it.
EXIT_FATAL = 1
#: An error that we did not foresee.
EXIT_CRASH = 2
#: Ended by Ctrl-C before there was anything to clean up, as shells count it.
EXIT_INTERRUPTED = 130


class PyrunnerError(Exception):
    """Base class: ``str()`` is the one line that the user sees.

    ``hint`` is an optional second line that shows what would be right.
    """

    exit_code = EXIT_FATAL

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(PyrunnerError):
    """The command line or an environment variable of it is wrong."""


class _LocatedError(PyrunnerError):
    """An error at a place in a file; ``str()`` starts with ``file:line:column: `` as far as these are known."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, column: int = 0, hint: str = "") -> None:
        place = ":".join([path or "", *(str(number) for number in (line, column) if number)]).strip(":")
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.message = message
        self.path = path
        self.line = line
        self.column = column


class ConfigError(_LocatedError):
    """config.toml (or a template of it) is wrong."""


class PipelineError(_LocatedError):
    """A pipeline file is wrong."""


class MissingExtraError(PyrunnerError):
    """A feature needs an optional dependency."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs an optional dependency; run: pip install "pyrunner[{extra}]"')


class ApiError(PyrunnerError):
    """The server could not be reached or refused; ``status`` is the HTTP status or 0."""

    def __init__(self, message: str, *, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class JobError(PyrunnerError):
    """A job ends badly. ``reason`` is a failure reason of facts/runner-api.md section 7, before mapping."""

    reason = "runner_system_failure"
    #: ``exit_code`` of the final update; 0 is not sent.
    job_exit_code = 0
    #: Whether trying the same preparation again can help (facts/executors.md 1.2).
    retriable = False

    def __init__(self, message: str, *, reason: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        if reason:
            self.reason = reason


class JobFailure(JobError):
    """The user's script failed; ``job_exit_code`` is its exit code as a signed 32-bit number."""

    reason = "script_failure"

    def __init__(self, message: str, *, job_exit_code: int) -> None:
        super().__init__(message)
        self.job_exit_code = job_exit_code


class SystemFailure(JobError):
    """The runner's side failed; worth another try unless a more exact reason says otherwise."""

    def __init__(self, message: str, *, reason: str = "", hint: str = "") -> None:
        super().__init__(message, reason=reason, hint=hint)
        self.retriable = not reason


class JobTimeout(JobError):
    """A deadline of the job passed."""

    reason = "job_execution_timeout"


class JobCanceled(JobError):
    """The server canceled the job; ``str()`` is ``canceled``."""

    reason = "job_canceled"

    def __init__(self, message: str = "canceled") -> None:
        super().__init__(message)


class JobInterrupted(JobError):
    """The runner process got a stop signal: ``aborted: terminated``."""

    reason = "runner_interrupted"
