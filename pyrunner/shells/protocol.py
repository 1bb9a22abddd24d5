"""What a shell is, and what a stage's script is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobResponse
from pyrunner.config.model import RunnerConfig


class Stage(StrEnum):
    """Names of the script stages (facts/job-lifecycle.md section 3); user steps are ``step_<name>``."""

    PREPARE_SCRIPT = "prepare_script"
    GET_SOURCES = "get_sources"
    CLEAR_WORKTREE = "clear_worktree"
    RESTORE_CACHE = "restore_cache"
    DOWNLOAD_ARTIFACTS = "download_artifacts"
    AFTER_SCRIPT = "after_script"
    ARCHIVE_CACHE = "archive_cache"
    ARCHIVE_CACHE_ON_FAILURE = "archive_cache_on_failure"
    UPLOAD_ARTIFACTS_ON_SUCCESS = "upload_artifacts_on_success"
    UPLOAD_ARTIFACTS_ON_FAILURE = "upload_artifacts_on_failure"
    CLEANUP_FILE_VARIABLES = "cleanup_file_variables"


STEP_PREFIX = "step_"


class Sharing(StrEnum):
    """Whether a stage can run in a shell with others and nobody notices (docs/architecture.md)."""

    #: Text of the user is in the script: its shell is its own from its first command on.
    NONE = "none"
    #: Only the runner's own text, but it brings or takes files, which a profile read later could look at.
    FILES = "files"
    #: Only the runner's own text, and nothing changes but the runner's own directories.
    INERT = "inert"


class ShellType(StrEnum):
    """How the executor starts the shell."""

    NORMAL = "normal"
    LOGIN = "login"


@dataclass(frozen=True, kw_only=True)
class ScriptContext:
    """All that a stage's script depends on. Paths are those *inside* the executor's environment, ``/``-separated."""

    job: JobResponse
    config: RunnerConfig
    #: Expanded, with everything of section 4.1 in order, feature flags included.
    variables: Variables
    #: Resolved feature flags, every known one present.
    flags: dict[str, bool]
    executor: str
    builds_dir: str
    cache_dir: str
    #: ``<builds_dir>/…/<slug>``: the working copy.
    project_dir: str
    #: ``<project_dir>.tmp``
    temp_dir: str
    #: ``<cache_dir>/<slug>``: where local cache archives live.
    project_cache_dir: str
    #: Runner command in scripts (``gitlab-runner`` or a path); empty = the executor has none.
    runner_command: str
    #: Where the job runs, for ``Running on … via …``; empty = do not tell.
    via_host: str = ""
    shared_environment: bool = False
    #: Resolved GIT_STRATEGY: ``fetch``, ``clone``, ``none``, ``empty``.
    git_strategy: str = "fetch"
    #: Value of X-Request-Id of the job request; header for git (``X-Gitaly-Correlation-ID``).
    correlation_id: str = ""
    safe_directory: bool = False
    clean_git_config: bool = False
    debug_trace: bool = False
    #: Short form of the runner token, used in cache object names.
    short_token: str = ""
    runner_name: str = ""
    #: RFC 3339 times of the job, for provenance.
    started_at: str = ""
    ended_at: str = ""
    #: Free room for distributed caches; the local cache needs nothing.
    cache_urls: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShellCommandLine:
    """How an executor starts a shell so that it runs a script."""

    #: Program and arguments; the script comes on stdin unless `pass_file`.
    arguments: Sequence[str]
    pass_file: bool = False
    #: Suffix of the script file with `pass_file`, e.g. ``ps1``.
    extension: str = ""
    #: Command of a container: the shell is found by probing inside (docker, kubernetes).
    container_command: Sequence[str] = ()


class Shell(Protocol):
    """One shell language. Implementations are stateless and safe from any thread."""

    name: str

    def command_line(self, kind: ShellType, user: str = "", *, by_file: bool = False) -> ShellCommandLine:
        """How to start it (facts/executors.md section 2; facts/job-lifecycle.md section 6).

        `by_file` asks for scripts as files; shells that are as good with their input may go on to read that.
        """
        ...

    def script(self, stage: str, context: ScriptContext) -> str | None:
        """The script of `stage`, or None when the stage has nothing to do (then it is skipped silently).

        Raises:
            JobError: the job asks for something invalid, e.g. an unknown cache policy.
        """
        ...
