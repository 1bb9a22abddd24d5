"""What is ours in an engine, found by labels, and its removal: for the end of a job, for leftovers, for people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyrunner.base.supervisor import Supervisor
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.engine.records import Listed

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """Containers, volumes and networks that carry our labels."""

    containers: list[Listed]
    volumes: list[Listed]
    networks: list[Listed]

    def __len__(self) -> int:
        return len(self.containers) + len(self.volumes) + len(self.networks)


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


def remove_containers(engine: Engine, identities: Iterable[str], *, volumes: bool = True) -> None:
    """Remove all at once; what cannot be removed is logged. Returns when all are gone."""
    wanted = list(identities)
    if len(wanted) == 1:
        _attempt(f"container {wanted[0][:12]}", lambda: engine.remove_container(wanted[0], volumes=volumes))
        return
    with Supervisor("docker-cleanup") as threads:
        for identity in wanted:
            threads.start(identity[:12], lambda identity=identity: _remove_aside(engine, identity, volumes))  # type: ignore[misc]


def remove_quietly(what: str, remove: Callable[[], object]) -> None:
    """Call `remove`; an error of the engine is logged."""
    _attempt(what, remove)


def _remove_aside(engine: Engine, identity: str, volumes: bool) -> None:
    def remove() -> None:
        own = engine.sibling()
        try:
            own.remove_container(identity, volumes=volumes)
        finally:
            own.close()

    _attempt(f"container {identity[:12]}", remove)


def _attempt(what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except EngineError as error:
        log.error("Cannot remove %s: %s", what, error, extra={"action": "docker_cleanup_failed"})  # noqa: TRY400
