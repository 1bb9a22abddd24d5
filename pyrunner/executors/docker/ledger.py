"""What is ours in an engine, found by labels, and its removal: for the end of a job, for leftovers, for people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyrunner.base.supervisor import Supervisor
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.engine.records import Listed

log = logging.getLogger(__name__)

#: Containers that are removed at the same time; each takes a thread of ours and much more of the engine.
_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """Containers, volumes and networks that carry our labels."""

    containers: list[Listed]
    volumes: list[Listed]
    networks: list[Listed]

    def __len__(self) -> int:
        return len(self.containers) + len(self.volumes) + len(self.networks)

    def __iter__(self) -> Iterator[Listed]:
        return iter((*self.containers, *self.volumes, *self.networks))

    def only(self, wanted: Callable[[Listed], bool]) -> Belongings:
        """Those that `wanted` says yes to."""
        return Belongings(
            containers=[item for item in self.containers if wanted(item)],
            volumes=[item for item in self.volumes if wanted(item)],
            networks=[item for item in self.networks if wanted(item)],
        )


def belongings(engine: Engine, *, system_id: str = "", job_id: int = 0) -> Belongings:
    """All that runners made in this engine, or one installation, or one of its jobs."""
    wanted = {labels.MANAGED: "true"}
    if system_id:
        wanted[labels.SYSTEM_ID] = system_id
    if job_id:
        wanted[labels.JOB_ID] = str(job_id)
    return Belongings(
        containers=engine.containers(wanted), volumes=engine.volumes(wanted), networks=engine.networks(wanted)
    )


def is_reusable(volume: Listed) -> bool:
    """Whether it is a cache that later jobs want."""
    return volume.labels.get(labels.REUSABLE) == "true"


def remove_all(engine: Engine, doomed: Belongings) -> bool:
    """Remove containers first, then volumes and networks, which are in use until then; whether all of it worked."""
    done = remove_containers(engine, [container.id for container in doomed.containers])
    for volume in doomed.volumes:
        done &= remove_quietly(f"volume {volume.name}", lambda volume=volume: engine.remove_volume(volume.name))  # type: ignore[misc]
    for network in doomed.networks:
        done &= remove_quietly(f"network {network.name}", lambda network=network: remove_network(engine, network.id))  # type: ignore[misc]
    return done


def remove_network(engine: Engine, network: str) -> None:
    """Remove a job's network, with whatever a job has put onto it."""
    for container in engine.network_containers(network):
        engine.disconnect(network, container)
        engine.remove_container(container)
    engine.remove_network(network)


def remove_containers(engine: Engine, identities: Iterable[str], *, volumes: bool = True) -> bool:
    """Remove all at once; what cannot be removed is logged. Returns when all are gone, and whether they are."""
    wanted = list(identities)
    if len(wanted) == 1:
        return _attempt(f"container {wanted[0][:12]}", lambda: engine.remove_container(wanted[0], volumes=volumes))
    results: list[bool] = []
    for start in range(0, len(wanted), _AT_ONCE):
        with Supervisor("docker-cleanup") as threads:
            for identity in wanted[start : start + _AT_ONCE]:
                threads.start(
                    identity[:12],
                    lambda identity=identity: results.append(_remove_aside(engine, identity, volumes)),  # type: ignore[misc]
                )
    return len(results) == len(wanted) and all(results)


def remove_quietly(what: str, remove: Callable[[], object]) -> bool:
    """Call `remove`; an error of the engine is logged. Whether there was none."""
    return _attempt(what, remove)


def _remove_aside(engine: Engine, identity: str, volumes: bool) -> bool:
    def remove() -> None:
        own = engine.sibling()
        try:
            own.remove_container(identity, volumes=volumes)
        finally:
            own.close()

    return _attempt(f"container {identity[:12]}", remove)


def _attempt(what: str, act: Callable[[], object]) -> bool:
    try:
        act()
    except EngineError as error:
        log.error("Cannot remove %s: %s", what, error, extra={"action": "docker_cleanup_failed"})  # noqa: TRY400
        return False
    return True
