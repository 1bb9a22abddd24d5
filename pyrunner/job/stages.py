"""Which stage comes next: the life of a job as a pure state machine (facts/job-lifecycle.md section 3).

`StagePlan.start` and `StagePlan.handle` say what to do; a driver does it and reports each stage's end. No clock, no
I/O.

::

    prepare_script ─▶ get_sources ─▶ restore_cache ─▶ download_artifacts ─▶ step_* … ─▶ after_script
         │ failed        │ failed         │ failed           │ failed          │              │
         ▼               ▼                ▼                  ▼                 ▼              ▼
       finish      archive_cache[_on_failure] ─▶ upload_artifacts_on_… ─▶ cleanup_file_variables ─▶ finish
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from pyrunner.base.errors import JobCanceled, JobError, JobFailure, JobTimeout, SystemFailure
from pyrunner.job.settings import Attempts
from pyrunner.shells.protocol import STEP_PREFIX, Stage

CUT_TEXT = (
    "{stage} could not run to completion because the timeout was exceeded. For more control over job and script "
    "timeouts see: https://docs.gitlab.com/ci/runners/configure_runners/#set-script-and-after_script-timeouts"
)
_PROFILE_HINT = "Check https://docs.gitlab.com/runner/shells/#shell-profile-loading for more information"

TITLES = {
    Stage.PREPARE_SCRIPT: "Preparing environment",
    Stage.GET_SOURCES: "Getting source from Git repository",
    Stage.CLEAR_WORKTREE: "Deleting all tracked and untracked files due to source fetch failure",
    Stage.RESTORE_CACHE: "Restoring cache",
    Stage.DOWNLOAD_ARTIFACTS: "Downloading artifacts",
    Stage.AFTER_SCRIPT: "Running after_script",
    Stage.ARCHIVE_CACHE: "Saving cache for successful job",
    Stage.ARCHIVE_CACHE_ON_FAILURE: "Saving cache for failed job",
    Stage.UPLOAD_ARTIFACTS_ON_SUCCESS: "Uploading artifacts for successful job",
    Stage.UPLOAD_ARTIFACTS_ON_FAILURE: "Uploading artifacts for failed job",
    Stage.CLEANUP_FILE_VARIABLES: "Cleaning up project directory and file based variables",
}


def stage_title(stage: str) -> str:
    """The title that a stage's section starts with."""
    return TITLES.get(stage) or f'Executing "{stage}" stage of the job script'  # type: ignore[call-overload]


def is_predefined(stage: str) -> bool:
    """Whether a stage runs in the helper environment where there is one."""
    return not stage.startswith(STEP_PREFIX) and stage != Stage.AFTER_SCRIPT


class Scope(Enum):
    """Under which deadline a stage runs."""

    PREPARE = auto()
    SOURCES = auto()
    JOB = auto()
    SCRIPT = auto()
    AFTER_SCRIPT = auto()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Run a stage; then report to `StagePlan.handle`. Always the last action of a list."""

    stage: str
    scope: Scope


@dataclass(frozen=True, kw_only=True)
class Warn:
    """Print a warning into the log."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Wait before going on."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class SetStatus:
    """Overwrite ``CI_JOB_STATUS`` for the stages that follow."""

    status: str


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The job is decided. Always the last action of a list."""

    error: BaseException | None


Action = Run | Warn | Pause | SetStatus | Finish


@dataclass(frozen=True, kw_only=True)
class StageEnd:
    """How a stage ended."""

    stage: str
    #: None: it succeeded or had nothing to do.
    error: BaseException | None = None
    #: Why the whole job was stopped, if it was.
    job_over: BaseException | None = None


class StagePlan:
    """Decides the stages of one job.

    Args:
        steps: names of the user's steps in order, without ``after_script``.
        attempts: how often stages are tried.
        exponential_backoff: ``FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY``.
        after_script_ignore_errors: whether a failing ``after_script`` leaves the job as it is.
    """

    def __init__(
        self,
        steps: Sequence[str],
        *,
        attempts: Attempts | None = None,
        exponential_backoff: bool = True,
        after_script_ignore_errors: bool = True,
    ) -> None:
        attempts = attempts or Attempts()
        self._sources = deque((Stage.GET_SOURCES, Stage.RESTORE_CACHE, Stage.DOWNLOAD_ARTIFACTS))
        self._limits: dict[str, int] = {
            Stage.GET_SOURCES: attempts.get_sources,
            Stage.RESTORE_CACHE: attempts.restore_cache,
            Stage.DOWNLOAD_ARTIFACTS: attempts.download_artifacts,
        }
        self._tried: dict[str, int] = {}
        self._steps = deque(f"{STEP_PREFIX}{name.lower()}" for name in steps if name != Stage.AFTER_SCRIPT)
        self._uploads: deque[Stage] = deque()
        self._exponential = exponential_backoff
        self._ignore_after_script = after_script_ignore_errors
        self._error: BaseException | None = None
        self._upload_error: BaseException | None = None

    def start(self) -> list[Action]:
        """What to do first."""
        return [Run(stage=Stage.PREPARE_SCRIPT, scope=Scope.PREPARE)]

    def handle(self, end: StageEnd) -> list[Action]:
        """What to do after a stage ended."""
        warnings: list[Action] = []
        if isinstance(end.error, JobTimeout):
            warnings.append(Warn(text=CUT_TEXT.format(stage=end.stage)))
        if end.job_over is not None:
            return [*warnings, Finish(error=end.job_over)]
        return [*warnings, *self._after(end.stage, end.error)]

    def _after(self, stage: str, error: BaseException | None) -> list[Action]:
        if stage == Stage.PREPARE_SCRIPT:
            return self._next_source() if error is None else [Finish(error=_prepare_error(error))]
        if stage == Stage.CLEAR_WORKTREE:
            # the fetch that follows says what is wrong better than the clean-up before it
            return [self._try(Stage.GET_SOURCES)]
        if stage in self._limits:
            return self._after_source(Stage(stage), error)
        if stage == Stage.AFTER_SCRIPT:
            return self._after_after_script(error)
        if stage.startswith(STEP_PREFIX):
            return self._after_step(error)
        return self._after_upload(stage, error)

    def _after_source(self, stage: Stage, error: BaseException | None) -> list[Action]:
        if error is None:
            return self._next_source()
        if stage == Stage.GET_SOURCES and isinstance(error, JobTimeout):
            return [Finish(error=error)]
        tried = self._tried[stage]
        if tried < self._limits[stage]:
            pause = retry_pause(tried, exponential=self._exponential)
            clear = stage == Stage.GET_SOURCES and tried == 1
            again = Run(stage=Stage.CLEAR_WORKTREE, scope=Scope.SOURCES) if clear else self._try(stage)
            return [Warn(text="Retrying..."), Pause(seconds=pause), again]
        self._error = error
        return self._start_uploads()

    def _try(self, stage: Stage) -> Run:
        self._tried[stage] = self._tried.get(stage, 0) + 1
        return Run(stage=stage, scope=Scope.SOURCES if stage == Stage.GET_SOURCES else Scope.JOB)

    def _next_source(self) -> list[Action]:
        if self._sources:
            return [self._try(self._sources.popleft())]
        return self._next_step()

    def _next_step(self) -> list[Action]:
        if self._steps:
            return [Run(stage=self._steps.popleft(), scope=Scope.SCRIPT)]
        return [
            SetStatus(status=job_status(self._error)),
            Run(stage=Stage.AFTER_SCRIPT, scope=Scope.AFTER_SCRIPT),
        ]

    def _after_step(self, error: BaseException | None) -> list[Action]:
        if error is None:
            return self._next_step()
        self._error = error
        self._steps.clear()
        canceled = isinstance(error, JobCanceled)
        warning: list[Action] = [Warn(text="script canceled externally (UI, API)")] if canceled else []
        return [*warning, *self._next_step()]

    def _after_after_script(self, error: BaseException | None) -> list[Action]:
        if error is None:
            return self._start_uploads()
        if self._ignore_after_script:
            text = f"after_script failed, but job will continue unaffected: {error}"
            return [Warn(text=text), *self._start_uploads()]
        self._error = self._error or error
        return self._start_uploads()

    def _start_uploads(self) -> list[Action]:
        failed = self._error is not None
        self._uploads.extend(
            (Stage.ARCHIVE_CACHE_ON_FAILURE, Stage.UPLOAD_ARTIFACTS_ON_FAILURE)
            if failed
            else (Stage.ARCHIVE_CACHE, Stage.UPLOAD_ARTIFACTS_ON_SUCCESS)
        )
        self._uploads.append(Stage.CLEANUP_FILE_VARIABLES)
        return self._next_upload()

    def _next_upload(self) -> list[Action]:
        if self._uploads:
            return [Run(stage=self._uploads.popleft(), scope=Scope.JOB)]
        return [Finish(error=self._error or self._upload_error)]

    def _after_upload(self, stage: str, error: BaseException | None) -> list[Action]:
        # cache before artifacts: the first one that failed is the one that is reported
        if error is not None and stage != Stage.CLEANUP_FILE_VARIABLES:
            self._upload_error = self._upload_error or error
        return self._next_upload()


def retry_pause(failed: int, *, exponential: bool) -> float:
    """Seconds to wait after the `failed`-th failing try of a stage (section 3.1)."""
    first, highest = (5.0, 300.0) if exponential else (1.0, 5.0)
    return min(highest, first * 2.0 ** min(failed - 1, 30))


def job_status(error: BaseException | None) -> str:
    """``CI_JOB_STATUS`` for what the steps ended with."""
    if error is None:
        return "success"
    if isinstance(error, JobCanceled):
        return "canceled"
    return "timedout" if isinstance(error, JobTimeout) else "failed"


def _prepare_error(error: BaseException) -> BaseException:
    if isinstance(error, (JobTimeout, JobCanceled)):
        return error
    text = f"prepare environment: {error}. {_PROFILE_HINT}"
    if isinstance(error, JobFailure):
        return JobFailure(text, job_exit_code=error.job_exit_code)
    return SystemFailure(text, reason=error.reason if isinstance(error, JobError) else "")
