"""Makes a job's volumes and removes the temporary ones."""

from __future__ import annotations

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.volumes.plan import PlannedVolume, VolumePlan, plan_volumes


class Volumes:
    """The volumes of one job."""

    def __init__(self, engine: Engine, job: DockerJob) -> None:
        self._engine = engine
        self._job = job
        self._temporary: list[PlannedVolume] = []
        #: Volumes that did not exist before: whoever the containers run as cannot write to them yet.
        self.fresh: list[PlannedVolume] = []
        self.binds: tuple[str, ...] = ()

    def prepare(self) -> VolumePlan:
        """Create what is missing.

        Raises:
            SystemFailure: an entry of the config is wrong, or the engine refuses.
        """
        plan = plan_volumes(self._job)
        for volume in plan.volumes:
            if not volume.reusable:
                self._temporary.append(volume)
            if self._engine.volume_labels(volume.name) is None:
                self._create(volume)
        self.binds = plan.binds
        return plan

    def remove_temporary(self) -> None:
        """Remove those that are only for this job; their containers are gone by now."""
        while self._temporary:
            self._engine.remove_volume(self._temporary[-1].name)
            self._temporary.pop()

    def _create(self, volume: PlannedVolume) -> None:
        own = {
            "type": ObjectType.CACHE.value,
            "destination": volume.destination,
            "protected": "true" if volume.protected else "false",
            "reusable": "true" if volume.reusable else "false",
        }
        docker = self._job.docker
        driver = docker.volume_driver if volume.reusable else ""
        options = docker.volume_driver_ops if volume.reusable else {}
        self._engine.create_volume(volume.name, self._job.labels.of_object(own), driver, options)
        kill_point("docker.volume-created")
        self.fresh.append(volume)
