"""The containers of one job: created by specification, remembered until they are removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import ConflictError, EngineError
from pyrunner.executors.docker.spec import ContainerSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Container:
    """A created container."""

    id: str
    name: str

    @property
    def short_id(self) -> str:
        """As people write it."""
        return self.id[:12]


class Containers:
    """Creates containers and knows which of them are there. Used by the job's thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._present: dict[str, Container] = {}
        #: False: the engine may have made a container without being able to say so.
        self.all_known = True

    def create(self, spec: ContainerSpec) -> Container:
        """Create one; a container that has its name is removed first (facts/executors.md 6.1).

        Raises:
            EngineError: ``runner_configuration_error`` for a specification that the engine refuses (400).
        """
        payload = spec.payload()
        try:
            container = self._create(spec, payload)
        except ConflictError:
            self._engine.remove_container(spec.name)
            container = self._create(spec, payload)
        self._present[container.id] = container
        return container

    def remove(self, container: Container, *, volumes: bool = True) -> None:
        """Remove one now."""
        self._engine.remove_container(container.id, volumes=volumes)
        self._present.pop(container.id, None)

    def forget(self, container: Container) -> None:
        """It is gone already."""
        self._present.pop(container.id, None)

    @property
    def present(self) -> list[Container]:
        """Created and not removed, in order."""
        return list(self._present.values())

    def _create(self, spec: ContainerSpec, payload: dict[str, object]) -> Container:
        try:
            identity = self._engine.create_container(spec.name, payload, spec.platform)
        except EngineError as error:
            if not error.status:
                self.all_known = False
            if error.status == 400:
                raise EngineError(str(error), status=400, reason="runner_configuration_error") from error
            raise
        kill_point("docker.container-created")
        log.debug("Created container", extra={"action": "container_created", "container": spec.name})
        return Container(id=identity, name=spec.name)
