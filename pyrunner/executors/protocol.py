"""The two interfaces between the life of a job and where it runs (seeds/executor-interface.txt)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pyrunner.api.variables import Variables
from pyrunner.api.wire import ConfigInfo, Features, JobResponse, JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.protocol import Sharing, ShellType


class ExecutorStage(StrEnum):
    """Where an executor stands; a label of metrics (facts/observability.md)."""

    CREATED = "created"
    PREPARE = "prepare"
    RUN = "run"
    FINISH = "finish"
    CLEANUP = "cleanup"


class TraceWriter(Protocol):
    """Where output goes: one stream of the job's trace. Safe from any thread."""

    def write(self, data: bytes) -> None:
        """Append raw output, in pieces of any size; blocks only for the spool's disk."""
        ...

    def plain(self, text: str) -> None:
        """Print a line of the runner (facts/job-lifecycle.md 5.2)."""
        ...

    def info(self, text: str) -> None:
        """Print a line of the runner in bold green."""
        ...

    def warning(self, text: str) -> None:
        """Print ``WARNING: text`` in yellow."""
        ...

    def error(self, text: str) -> None:
        """Print ``ERROR: text`` in bold red."""
        ...


@dataclass(frozen=True, kw_only=True)
class ShellScriptInfo:
    """What an executor says of the shell that its scripts are for."""

    shell: str
    type: ShellType
    #: Runner command inside the environment; empty = none there.
    runner_command: str
    user: str = ""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Result of `Executor.prepare`: where the job lives (facts/executors.md 1.1)."""

    #: Absolute or executor-relative roots, ``/``-separated.
    builds_dir: str
    cache_dir: str
    #: Several jobs may share builds_dir: the project dir then holds short token and concurrent id.
    shared_builds_dir: bool
    #: Whether GIT_CLONE_PATH is allowed unless the config says otherwise.
    custom_build_dir: bool = False
    safe_directory: bool = False
    #: ``CI_SHARED_ENVIRONMENT`` instead of ``CI_DISPOSABLE_ENVIRONMENT``.
    shared_environment: bool = False
    #: For ``Running on … via …``; empty = not told.
    via_host: str = ""
    #: Variables of the executor for all scripts of the job, behind the job's own.
    variables: tuple[JobVariable, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JobPlace:
    """What follows from an `Environment` for one job: for executors whose containers need it before any script runs."""

    #: The working copy, and the directory of file variables.
    project_dir: str
    temp_dir: str
    #: ``fetch``, ``clone``, ``none``, ``empty``
    git_strategy: str
    #: All variables of the job, those that name directories included.
    variables: Variables


@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """What an executor gets to prepare a job."""

    config: RunnerConfig
    job: JobResponse
    #: Expanded job variables known before the build directory is (no CI_PROJECT_DIR yet).
    variables: Variables
    trace: TraceWriter
    token: CancelToken
    #: Smallest free number among the running jobs of this runner (and of this project).
    concurrent_id: int = 0
    concurrent_project_id: int = 0
    #: OS user of shell jobs (``run --user``).
    user: str = ""
    #: What `ExecutorProvider.acquire` returned.
    data: object = None
    #: Directory that survives the manager for logs and exit codes of stages; empty = a temporary one per job.
    state_dir: str = ""
    #: Id of this installation, for names and labels of what outlives it.
    system_id: str = ""
    #: Opens a stream of the trace for the output of a service; None = there is none.
    service_trace: Callable[[], TraceWriter] | None = None
    #: Tells the job's place, once `prepare` knows its environment. Raises `SystemFailure` for a place that is not
    #: allowed. None = there is no job around (contract tests).
    locate: Callable[[Environment], JobPlace] | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutorCommand:
    """One stage to run."""

    script: str
    stage: str
    #: Runs in the helper environment where there is one.
    predefined: bool
    token: CancelToken
    #: Stream for the script's output.
    trace: TraceWriter
    #: Executors may run neighbouring stages in one shell as far as this allows, or ignore it.
    sharing: Sharing = Sharing.NONE


class Executor(Protocol):
    """Runs one job. Calls come from one thread, in the order prepare, run…, finish, cleanup.

    `cleanup` may be called twice, after a failed or cancelled `prepare`, and must then still remove everything.
    Long calls return soon after their token is cancelled, with everything they started stopped.
    """

    def shell(self) -> ShellScriptInfo:
        """Shell, its type and the runner command: what scripts are made for. Valid after `prepare`."""
        ...

    def prepare(self, options: PrepareOptions) -> Environment:
        """Make the environment ready.

        Raises:
            JobError: with `retriable` set when another try may help; the token's cause when cancelled.
        """
        ...

    def run(self, command: ExecutorCommand) -> None:
        """Run one stage's script to its end.

        Raises:
            JobFailure: the script ended with another code than 0.
            SystemFailure: the script could not be run.
            BaseException: the token's cause, when cancelled; the processes are gone by then.
        """
        ...

    def finish(self, error: BaseException | None) -> None:
        """The job is decided; `error` is None on success."""
        ...

    def cleanup(self) -> None:
        """Remove whatever `prepare` and `run` made. Raises nothing."""
        ...

    def get_current_stage(self) -> ExecutorStage:
        """Current stage; called from other threads by metrics."""
        ...

    def set_current_stage(self, stage: ExecutorStage) -> None:
        """Record the current stage."""
        ...


class ExecutorProvider(Protocol):
    """Makes executors and keeps what they share. Safe from any thread. One per executor name and process."""

    def can_create(self) -> bool:
        """Whether executors can be made here at all."""
        ...

    def create(self) -> Executor:
        """A new executor; allocates nothing."""
        ...

    def acquire(self, config: RunnerConfig) -> object:
        """Reserve what a job will need, before a job is requested; the result goes to `PrepareOptions.data`.

        Raises:
            NoCapacityError: nothing free; no job is requested now.
        """
        ...

    def release(self, config: RunnerConfig, data: object) -> None:
        """Give back what `acquire` reserved; exactly once per successful `acquire`."""
        ...

    def get_features(self, features: Features) -> None:
        """Set the executor's keys of ``info.features``; client and shells have theirs already (`api.info`)."""
        ...

    def get_config_info(self, config: RunnerConfig, info: ConfigInfo) -> None:
        """Fill ``info.config``."""
        ...

    def get_default_shell(self) -> str:
        """Shell used when the config names none."""
        ...

    def shutdown(self, token: CancelToken) -> None:
        """The process ends: stop background work until `token` is cancelled."""
        ...


@runtime_checkable
class RecoveringProvider(Protocol):
    """A provider whose executors leave things behind when their process is killed."""

    def recover(self, configs: Sequence[RunnerConfig], system_id: str, home: str) -> None:
        """A manager with these runners begins: find what an earlier one has left, and remove it in the background.

        `home` is the directory for what outlives the process; empty = none.
        """
        ...


class NoCapacityError(Exception):
    """`ExecutorProvider.acquire` has nothing free."""
