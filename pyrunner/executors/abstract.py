"""What all executors have in common (seeds/executor-interface.txt; facts/executors.md 1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.protocol import (
    Environment,
    ExecutorStage,
    PrepareOptions,
    ShellScriptInfo,
)
from pyrunner.shells.protocol import ShellType


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """One row of the table in facts/executors.md 1.1: the defaults of an executor."""

    #: Name in lines for the user, e.g. ``Shell``.
    title: str
    default_builds_dir: str = ""
    default_cache_dir: str = ""
    shared_builds_dir: bool = False
    custom_build_dir: bool = False
    safe_directory: bool = False
    shared_environment: bool = False
    default_shell: str = "bash"
    shell_type: ShellType = ShellType.NORMAL
    #: Runner command inside the environment; a function when it depends on this installation.
    runner_command: str | Callable[[], str] = "gitlab-runner"


class AbstractExecutor:
    """Base class: keeps the options of `prepare`, answers `shell`, works out the directories, records the stage.

    An executor overrides `prepare` (and calls it first), `run` and `cleanup`.
    """

    def __init__(self, defaults: ExecutorOptions) -> None:
        self.defaults = defaults
        self._options: PrepareOptions | None = None
        self._stage = ExecutorStage.CREATED

    @property
    def options(self) -> PrepareOptions:
        """What `prepare` got."""
        if self._options is None:
            raise SystemFailure("the executor is used before it is prepared")
        return self._options

    @property
    def shell_name(self) -> str:
        """Shell of the config, else the executor's default."""
        return self.options.config.shell or self.defaults.default_shell

    def shell(self) -> ShellScriptInfo:
        """Shell, its type and the runner command."""
        command = self.defaults.runner_command
        return ShellScriptInfo(
            shell=self.shell_name,
            type=self.defaults.shell_type,
            runner_command=command if isinstance(command, str) else command(),
            user=self.options.user,
        )

    def prepare(self, options: PrepareOptions) -> Environment:
        """Keep `options` and work out where the job lives.

        Raises:
            SystemFailure: neither the config nor the executor names a directory.
        """
        self._options = options
        self.set_current_stage(ExecutorStage.PREPARE)
        defaults = self.defaults
        return Environment(
            builds_dir=self.directory("builds_dir", options.config.builds_dir, defaults.default_builds_dir),
            cache_dir=self.directory("cache_dir", options.config.cache_dir, defaults.default_cache_dir),
            shared_builds_dir=defaults.shared_builds_dir,
            custom_build_dir=defaults.custom_build_dir,
            safe_directory=defaults.safe_directory,
            shared_environment=defaults.shared_environment,
        )

    def directory(self, key: str, configured: str, default: str) -> str:
        """The directory to use for the config key `key`.

        Raises:
            SystemFailure: there is none.
        """
        chosen = configured or default
        if not chosen:
            raise SystemFailure(f"the {key} is not configured", reason="runner_configuration_error")
        return chosen

    def finish(self, error: BaseException | None) -> None:
        """Nothing to do but to record the stage."""
        self.set_current_stage(ExecutorStage.FINISH)

    def cleanup(self) -> None:
        """Nothing to do but to record the stage."""
        self.set_current_stage(ExecutorStage.CLEANUP)

    def get_current_stage(self) -> ExecutorStage:
        """Current stage."""
        return self._stage

    def set_current_stage(self, stage: ExecutorStage) -> None:
        """Record the current stage."""
        self._stage = stage
