"""Where docker executors come from. Imports nothing heavy: every start of the manager imports it."""

from __future__ import annotations

from collections.abc import Sequence

from pyrunner.api.wire import ConfigInfo, Features
from pyrunner.base.cancel import CancelToken
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


class DockerProvider(DefaultExecutorProvider):
    """Also cleans up behind managers that were killed, and behind engines that did not answer."""

    def recover(self, configs: Sequence[RunnerConfig], system_id: str, home: str) -> None:
        """Look at the engines of these runners, now and a few times soon; see `RecoveringProvider`."""
        from pyrunner.config.docker import DockerConfig
        from pyrunner.executors.docker.cleaning import AFTER_START, CLEANER, policy_or_none
        from pyrunner.executors.docker.engine.address import engine_address
        from pyrunner.executors.docker.volumes.uses import USES, uses_directory

        if home:
            USES.directory = uses_directory(home)
        CLEANER.open()
        for config in configs:
            docker = config.docker or DockerConfig()
            CLEANER.request(engine_address(docker), system_id, AFTER_START, policy=policy_or_none(docker))

    def shutdown(self, token: CancelToken) -> None:
        """End what works in the background."""
        import sys

        # Without it nobody has asked for anything.
        if (cleaning := sys.modules.get("pyrunner.executors.docker.cleaning")) is not None:
            cleaning.CLEANER.close(token.remaining())


provider = DockerProvider(
    creator=_create, default_shell_name="bash", features_updater=_update_features, config_updater=_update_info
)
