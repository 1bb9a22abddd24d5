"""The provider of executors that need nothing reserved (seeds/executor-interface.txt, DefaultExecutorProvider)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyrunner.api.wire import ConfigInfo, Features
from pyrunner.base.cancel import CancelToken
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import Executor


@dataclass(frozen=True, kw_only=True)
class DefaultExecutorProvider:
    """Makes an independent executor per job; reserves nothing, so `acquire` and `release` do nothing."""

    creator: Callable[[], Executor] | None
    default_shell_name: str
    features_updater: Callable[[Features], None] | None = None
    config_updater: Callable[[RunnerConfig, ConfigInfo], None] | None = None

    def can_create(self) -> bool:
        """Whether there is a creator."""
        return self.creator is not None

    def create(self) -> Executor:
        """A new executor."""
        if self.creator is None:
            raise LookupError("this provider has no creator; ask can_create first")
        return self.creator()

    def acquire(self, config: RunnerConfig) -> object:
        """Nothing to reserve."""
        return None

    def release(self, config: RunnerConfig, data: object) -> None:
        """Nothing to give back."""

    def get_features(self, features: Features) -> None:
        """Set what every executor can, then what this one can."""
        features.variables = True
        if self.features_updater is not None:
            self.features_updater(features)

    def get_config_info(self, config: RunnerConfig, info: ConfigInfo) -> None:
        """Fill ``info.config`` if the executor has anything to tell."""
        if self.config_updater is not None:
            self.config_updater(config, info)

    def get_default_shell(self) -> str:
        """Shell used when the config names none."""
        return self.default_shell_name

    def shutdown(self, token: CancelToken) -> None:
        """Nothing runs in the background."""
