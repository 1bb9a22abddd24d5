"""Which binds and which volumes of the engine a job's entries mean (facts/executors.md 6.6). Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyrunner.api.wire import JobResponse
from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.volumes.specification import VolumeSpecification, absolute, parse_volume


@dataclass(frozen=True, kw_only=True)
class PlannedVolume:
    """A volume of the engine that must be there."""

    name: str
    destination: str
    #: Kept for later jobs; otherwise it goes with this one.
    reusable: bool
    protected: bool


@dataclass(frozen=True, kw_only=True)
class VolumePlan:
    """All of a job's volumes."""

    #: For ``HostConfig.Binds``, the same in build, helper and services.
    binds: tuple[str, ...]
    volumes: tuple[PlannedVolume, ...]


def plan_volumes(job: DockerJob) -> VolumePlan:
    """Entries of the config in order, then the builds directory unless one of them covers it.

    Raises:
        SystemFailure: ``runner_configuration_error``: an entry is wrong or its destination is taken.
    """
    planner = _Planner(job)
    for text in job.docker.volumes:
        planner.add(parse_volume(text, job.variables.expand))
    planner.add_builds_dir()
    return VolumePlan(binds=tuple(planner.binds), volumes=tuple(planner.volumes))


def builds_dir_is_on_host(docker: DockerConfig, builds_dir: str, expand: Callable[[str], str]) -> bool:
    """Whether several jobs may meet in the builds directory, because it lies under a directory of the host."""
    entries = (parse_volume(text, expand) for text in docker.volumes)
    return any(entry.from_host and _within(builds_dir, entry.destination) for entry in entries)


def is_protected(job: JobResponse, variable: str) -> bool:
    """Whether caches of this job are kept apart for protected refs; `variable` is ``CI_COMMIT_REF_PROTECTED``."""
    if any(cache.key.endswith("-protected") and not cache.key.endswith("-non_protected") for cache in job.cache):
        return True
    if job.git_info.protected is not None:
        return job.git_info.protected
    return variable.strip().lower() in ("true", "t", "1")


class _Planner:
    def __init__(self, job: DockerJob) -> None:
        self._job = job
        self._protected = is_protected(job.job, job.variables.get("CI_COMMIT_REF_PROTECTED"))
        self._taken: list[str] = []
        self.binds: list[str] = []
        self.volumes: list[PlannedVolume] = []

    def add(self, entry: VolumeSpecification) -> None:
        destination = absolute(entry.destination, self._job.project_dir)
        if destination in self._taken:
            raise SystemFailure(
                f'volume for container path "{destination}" is already defined', reason="runner_configuration_error"
            )
        self._taken.append(destination)
        if entry.source:
            bind = VolumeSpecification(source=entry.source, destination=destination, options=entry.options)
            self.binds.append(bind.bind)
        else:
            self._cache(destination)

    def add_builds_dir(self) -> None:
        directory = self._job.builds_dir
        if any(_within(directory, taken) for taken in self._taken):
            return
        self._taken.append(directory)
        if self._job.git_strategy == "fetch":
            self._cache(directory)
        else:
            self._volume(directory, reusable=False)

    def _cache(self, destination: str) -> None:
        docker = self._job.docker
        if docker.disable_cache:
            self._volume(destination, reusable=False)
        elif docker.cache_dir:
            directory = self._job.names.cache_directory(destination, protected=self._protected)
            self.binds.append(f"{posixpath.join(docker.cache_dir, directory)}:{destination}")
        else:
            self._volume(destination, reusable=True)

    def _volume(self, destination: str, *, reusable: bool) -> None:
        names = self._job.names
        make = names.cache_volume if reusable else names.temporary_volume
        name = make(destination, protected=self._protected)
        self.binds.append(f"{name}:{destination}")
        self.volumes.append(
            PlannedVolume(name=name, destination=destination, reusable=reusable, protected=self._protected)
        )


def _within(path: str, directory: str) -> bool:
    root = directory.rstrip("/")
    return path.rstrip("/") == root or path.startswith(f"{root}/")


def destinations(volumes: Iterable[PlannedVolume]) -> list[str]:
    """Where they appear."""
    return [volume.destination for volume in volumes]
