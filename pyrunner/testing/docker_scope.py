"""A corner of a docker engine for one test: found by its system id, empty again at the end."""

from __future__ import annotations

import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyrunner.base.errors import PyrunnerError
from pyrunner.config.docker import DockerConfig
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.ledger import Belongings, belongings, is_reusable
from pyrunner.testing.docker_images import TestImages


@dataclass(frozen=True, kw_only=True)
class DockerScope:
    """What a test uses so that it meets no other one: token and system id of its own."""

    images: TestImages
    token: str = field(default_factory=lambda: f"glrt-{secrets.token_hex(10)}")
    system_id: str = field(default_factory=lambda: f"s_{secrets.token_hex(6)}")

    def config(self, **docker: object) -> RunnerConfig:
        """A runner with the docker executor; `docker` are keys of its ``[runners.docker]``."""
        keys: dict[str, object] = {
            "image": self.images.build,
            "helper_image": self.images.helper,
            "pull_policy": ["never"],
            **docker,
        }
        return RunnerConfig(
            name="docker-test",
            token=self.token,
            executor="docker",
            docker=DockerConfig(**keys),  # type: ignore[arg-type]
        )

    def belongings(self, engine: Engine) -> Belongings:
        """All that is there of this test."""
        return belongings(engine, system_id=self.system_id)

    @contextmanager
    def checked(self, limit: float = 10.0) -> Iterator[DockerScope]:
        """Fail when something but caches is left at the end of the block; remove everything in any case."""
        with opened(EngineAddress()) as engine:
            try:
                yield self
                deadline = time.monotonic() + limit
                while left := self._left(engine):
                    assert time.monotonic() < deadline, f"left behind: {', '.join(left)}"
                    time.sleep(0.05)
            finally:
                self._remove_all(engine)

    def _left(self, engine: Engine) -> list[str]:
        found = self.belongings(engine)
        volumes = [volume for volume in found.volumes if not is_reusable(volume)]
        return [item.name for item in (*found.containers, *volumes, *found.networks)]

    def _remove_all(self, engine: Engine) -> None:
        found = self.belongings(engine)
        for container in found.containers:
            engine.remove_container(container.id)
        for volume in found.volumes:
            engine.remove_volume(volume.name)
        for network in found.networks:
            engine.remove_network(network.id)


def why_no_engine() -> str:
    """Why tests with real containers cannot run here; empty when they can."""
    if shutil.which("busybox") is None:
        return "busybox is not installed"
    try:
        with opened(EngineAddress()):
            return ""
    except PyrunnerError as error:
        return str(error)


def host_address() -> str:
    """Where containers on the default bridge reach servers of this machine."""
    with opened(EngineAddress()) as engine:
        return engine.network_gateway("bridge")


if __name__ == "__main__":
    # For scripts: the reason, and an exit code.
    sys.exit(why_no_engine() or 0)
