"""Where shell executors come from."""

from __future__ import annotations

import os

from pyrunner.api.wire import Features
from pyrunner.executors.protocol import Executor
from pyrunner.executors.provider import DefaultExecutorProvider


def _create() -> Executor:
    from pyrunner.executors.shell.executor import ShellExecutor

    return ShellExecutor()


def _update_features(features: Features) -> None:
    features.shared = True


provider = DefaultExecutorProvider(
    # Without pidfds (Linux 5.3) there is nothing to wait for a process, its output and a cancel at once.
    creator=_create if hasattr(os, "pidfd_open") else None,
    default_shell_name="bash",
    features_updater=_update_features,
)
