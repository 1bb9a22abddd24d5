"""The network of a job (facts/executors.md 6.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker.context import NETWORK_PER_BUILD, DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.ledger import remove_network

_MTU = "com.docker.network.driver.mtu"


class Network:
    """One of three: the network that the config names, one made for this job, or the default bridge."""

    def __init__(self, engine: Engine, job: DockerJob) -> None:
        self._engine = engine
        self._job = job
        self._created = ""

    @property
    def mode(self) -> str:
        """``HostConfig.NetworkMode`` of all containers; empty = the engine's default bridge."""
        if self._job.docker.network_mode:
            return self._job.docker.network_mode
        return self._job.names.network if self._created else ""

    @property
    def needs_hosts(self) -> bool:
        """Whether services are found by entries in ``/etc/hosts``: the default bridge resolves no names."""
        return not self.mode

    def prepare(self) -> None:
        """Make the job's own network if it wants one."""
        docker = self._job.docker
        if docker.network_mode or not self._job.flag(NETWORK_PER_BUILD):
            return
        payload: dict[str, Any] = {"Labels": self._job.labels.of_object(), "EnableIPv6": docker.enable_ipv6}
        if docker.network_mtu:
            payload["Options"] = {_MTU: str(docker.network_mtu)}
        self._created = self._engine.create_network(self._job.names.network, payload)
        kill_point("docker.network-created")

    def aliases(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For `ContainerSpec.aliases`: what a container is called on the job's network."""
        return {self.mode: names} if self._created else {}

    def remove(self) -> None:
        """Remove the job's own network with whatever is still on it."""
        if not self._created:
            return
        remove_network(self._engine, self._created)
        self._created = ""
