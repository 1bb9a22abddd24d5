"""Where docker executors come from. Imports nothing heavy: every start of the manager imports it."""

from __future__ import annotations

from pyrunner.api.wire import ConfigInfo, Features
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import Executor
from pyrunner.executors.provider import DefaultExecutorProvider


def _create() -> Executor:
    from pyrunner.executors.docker.executor import DockerExecutor

    return DockerExecutor()


def _update_features(features: Features) -> None:
    features.image = True
    features.services = True
    features.image_executor_opts = True
    features.service_executor_opts = True
    features.service_variables = True
    features.service_multiple_aliases = True


def _update_info(config: RunnerConfig, info: ConfigInfo) -> None:
    if config.docker is not None:
        info.gpus = config.docker.gpus.strip()


provider = DefaultExecutorProvider(
    creator=_create, default_shell_name="bash", features_updater=_update_features, config_updater=_update_info
)
