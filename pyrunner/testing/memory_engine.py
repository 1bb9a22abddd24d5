"""An engine that only remembers what it was told: for tests of what reaches an engine, without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import NotFoundError
from pyrunner.executors.docker.engine.hijack import Hijacked
from pyrunner.executors.docker.engine.records import ContainerState, EngineFacts, ImageFacts, Labels


@dataclass(kw_only=True)
class MadeContainer:
    """One container that was asked for."""

    name: str
    platform: str
    #: Body of ``POST /containers/create``.
    body: Mapping[str, Any]
    started: bool = False
    #: Whether its anonymous volumes went with it; None while it is there.
    removed_volumes: bool | None = None

    @property
    def host(self) -> Mapping[str, Any]:
        """Its ``HostConfig``."""
        return cast("Mapping[str, Any]", self.body["HostConfig"])


@dataclass(kw_only=True)
class MadeObject:
    """A volume or a network."""

    name: str
    labels: Labels
    driver: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    #: Of a network.
    body: Mapping[str, Any] = field(default_factory=dict)


class _Silence:
    """A stream on which nothing happens."""

    def close(self) -> None:
        """Nothing to close."""


class MemoryEngine(Engine):
    """Every image is there, and every container answers as soon as it is started."""

    def __init__(self, *, api: tuple[int, int] = (1, 44), exposed_ports: tuple[str, ...] = ("80/tcp",)) -> None:
        self.address = EngineAddress()
        self.facts = EngineFacts(api=api, version="0", os="linux", arch="amd64")
        self.made: dict[str, MadeContainer] = {}
        self.made_volumes: dict[str, MadeObject] = {}
        self.made_networks: dict[str, MadeObject] = {}
        self._ports = exposed_ports

    def of_type(self, kind: labels.ObjectType) -> MadeContainer:
        """The one container of this type."""
        (found,) = (one for one in self.made.values() if one.body["Labels"][labels.TYPE] == kind.value)
        return found

    def sibling(self) -> Engine:
        """Itself: it has no connections."""
        return self

    def close(self) -> None:
        """Nothing to close."""

    def image(self, reference: str) -> ImageFacts:
        """Every image is here."""
        return ImageFacts(
            id=f"sha256:{reference}", digests=(), entrypoint=(), user="", exposed_ports=self._ports, environment=()
        )

    @contextmanager
    def pull(
        self, reference: str, auth: Mapping[str, str] | None, token: CancelToken, platform: str = ""
    ) -> Iterator[Iterator[Any]]:
        """Nothing to do."""
        yield iter(())

    def create_container(self, name: str, payload: Mapping[str, Any], platform: str = "") -> str:
        """Remember it; its id is its name."""
        self.made[name] = MadeContainer(name=name, platform=platform, body=payload)
        return name

    def start_container(self, container: str) -> None:
        """It runs."""
        self.made[container].started = True

    def remove_container(self, container: str, *, volumes: bool = True) -> None:
        """Remember how it was removed."""
        if container in self.made:
            self.made[container].removed_volumes = volumes

    def container_state(self, container: str) -> ContainerState:
        """Checks have ended well; everything has an address."""
        running = self.made[container].body["Labels"][labels.TYPE] != labels.ObjectType.WAIT.value
        return ContainerState(
            running=running, exit_code=0, out_of_memory=False, error="", addresses={"bridge": "172.17.0.9"}
        )

    def attach(self, container: str) -> Hijacked:
        """Nothing comes."""
        return cast("Hijacked", _Silence())

    def create_volume(
        self, name: str, labels: Labels, driver: str = "", options: Mapping[str, str] | None = None
    ) -> None:
        """Remember it."""
        self.made_volumes[name] = MadeObject(name=name, labels=labels, driver=driver, options=options or {})

    def volume_labels(self, name: str) -> Labels | None:
        """Labels of one that was made here."""
        made = self.made_volumes.get(name)
        return made.labels if made else None

    def remove_volume(self, name: str) -> None:
        """Forget it."""
        self.made_volumes.pop(name, None)

    def create_network(self, name: str, payload: Mapping[str, Any]) -> str:
        """Remember it; its id is its name."""
        self.made_networks[name] = MadeObject(name=name, labels=payload.get("Labels") or {}, body=payload)
        return name

    def network_containers(self, network: str) -> list[str]:
        """None."""
        return []

    def remove_network(self, network: str) -> None:
        """Nothing: tests look at it afterwards."""
        if network not in self.made_networks:
            raise NotFoundError(f"network {network} not found", status=404)
