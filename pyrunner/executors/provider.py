"""The provider of executors that need nothing reserved (seeds/executor-interface.txt, DefaultExecutorProvider)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyrunner.api.wire import ConfigInfo, Features
from pyrunner.base.cancel import CancelToken
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import Executor

#: Features that every executor has because the shells and the client have them (facts/executors.md 1.4).
_CLIENT_FEATURES = (
    "trace_reset",
    "trace_checksum",
    "trace_size",
    "cancelable",
    "cancel_gracefully",
    "two_phase_job_commit",
    "job_inputs",
)
_SHELL_FEATURES = (
    "artifacts",
    "upload_multiple_artifacts",
    "upload_raw_artifacts",
    "cache",
    "fallback_cache_keys",
    "refspecs",
    "masking",
    "raw_variables",
    "artifacts_exclude",
    "multi_build_steps",
    "return_exit_code",
)


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
        """Set what shells and client can, then what the executor can."""
        for name in (*_CLIENT_FEATURES, *_SHELL_FEATURES):
            setattr(features, name, True)
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
