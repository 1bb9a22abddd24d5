"""Makes a job's volumes and removes the temporary ones."""

from __future__ import annotations

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.volumes.plan import PlannedVolume, VolumePlan, plan_volumes
from pyrunner.executors.docker.volumes.uses import USES, VolumeUses


class Volumes:
    """The volumes of one job."""

    def __init__(self, engine: Engine, job: DockerJob, uses: VolumeUses | None = None) -> None:
        self._engine = engine
        self._job = job
        self._uses = uses or USES
        self._temporary: list[PlannedVolume] = []
        #: Not known to be open yet.
        self._reusable: list[PlannedVolume] = []
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
            if volume.reusable:
                self._reusable.append(volume)
            else:
                self._temporary.append(volume)
            if self._engine.volume_labels(volume.name) is None:
                self._create(volume)
            elif volume.reusable and self._uses.never_opened(volume.name):
                # its job was killed before
                self.fresh.append(volume)
            elif volume.reusable:
                self._uses.used(volume.name, opened=True)
        self.binds = plan.binds
        return plan

    def opened(self) -> None:
        """Containers of any user can write to all of them now."""
        while self._reusable:
            self._uses.used(self._reusable.pop().name, opened=True)

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
        if volume.reusable:
            self._uses.used(volume.name)
        driver = docker.volume_driver if volume.reusable else ""
        options = docker.volume_driver_ops if volume.reusable else {}
        self._engine.create_volume(volume.name, self._job.labels.of_object(own), driver, options)
        kill_point("docker.volume-created")
        self.fresh.append(volume)
