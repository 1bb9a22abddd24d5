"""Where shell executors come from."""

from __future__ import annotations

from pyrunner.api.wire import Features
from pyrunner.executors.protocol import Executor
from pyrunner.executors.provider import DefaultExecutorProvider


def _create() -> Executor:
    from pyrunner.executors.shell.executor import ShellExecutor

    return ShellExecutor()


def _update_features(features: Features) -> None:
    features.variables = True
    features.shared = True


provider = DefaultExecutorProvider(
    creator=_create,
    default_shell_name="bash",
    features_updater=_update_features,
)
