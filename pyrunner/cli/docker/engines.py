"""Which engines a command looks at, and what is known beside them."""

from __future__ import annotations

import os

from pyrunner.config.load import default_config_path, load_config
from pyrunner.executors.docker.engine.address import EngineAddress, engine_address
from pyrunner.executors.docker.volumes.uses import VolumeUses, uses_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def engines(call: Invocation) -> list[EngineAddress]:
    """The engine of ``--host``, else those of the config's docker runners, else the default one.

    Raises:
        ConfigError: the config cannot be read.
    """
    from pyrunner.config.docker import DockerConfig

    if host := call.text("host"):
        return [engine_address(DockerConfig(host=host))]
    config = load_config(_config(call))
    found = [
        engine_address(runner.docker or DockerConfig())
        for runner in config.runners
        if runner.executor.startswith("docker")
    ]
    return list(dict.fromkeys(found)) or [engine_address(DockerConfig())]


def volume_uses(call: Invocation) -> VolumeUses:
    """What the manager of this config has noted of cache volumes."""
    return VolumeUses(uses_directory(os.path.dirname(_config(call))))


def _config(call: Invocation) -> str:
    return os.path.abspath(call.text("config") or default_config_path())
