"""Starts a job's services and tells the other containers where they are (facts/executors.md 6.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker.containers import Containers
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.host_config import Role, Surroundings, host_config
from pyrunner.executors.docker.images.options import docker_option
from pyrunner.executors.docker.images.store import PresentImage
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.networks import Network
from pyrunner.executors.docker.running_service import RunningService
from pyrunner.executors.docker.service_health import ServiceHealth
from pyrunner.executors.docker.service_logs import ServiceLogs
from pyrunner.executors.docker.services import Service
from pyrunner.executors.docker.spec import ContainerSpec

#: Gets a service's image, by its policies.
ImageOf = Callable[[Service], PresentImage]


class ServiceContainers:
    """The services of one job."""

    def __init__(
        self, engine: Engine, job: DockerJob, containers: Containers, network: Network, binds: Sequence[str]
    ) -> None:
        self._engine = engine
        self._job = job
        self._containers = containers
        self._network = network
        self._binds = binds
        self._logs: ServiceLogs | None = None
        if job.service_trace is not None and job.flag("CI_DEBUG_SERVICES"):
            self._logs = ServiceLogs(engine, job.service_trace)
        self.running: list[RunningService] = []

    def start(self, services: Sequence[Service], image_of: ImageOf) -> None:
        """Start all, one after the other.

        Raises:
            SystemFailure: an image cannot be had, or a container cannot be made or started.
        """
        for service in services:
            self._job.token.raise_if_cancelled()
            self._job.trace.plain(f"Starting service {service.name}:{service.version}...")
            image = image_of(service)
            self.running.append(self._start(service, image))

    def wait(self, helper_image: Callable[[], PresentImage]) -> None:
        """Wait until they answer, as long as the config says; one that does not is only told of.

        Raises:
            SystemFailure: the helper's image cannot be had.
            BaseException: the token's cause, when cancelled.
        """
        health = ServiceHealth(self._engine, self._job, self._containers, self._network)
        if not self.running or health.timeout < 0:
            return
        self._job.trace.plain(f"Waiting for services to be up and running (timeout {health.timeout} seconds)...")
        health.wait(self.running, helper_image())

    def close(self) -> None:
        """Their containers are gone: pass on their last words."""
        logs, self._logs = self._logs, None
        if logs is not None:
            logs.close()

    def _start(self, service: Service, image: PresentImage) -> RunningService:
        spec = self._spec(service, image)
        container = self._containers.create(spec)
        if self._logs is not None:
            self._logs.follow(container, service.aliases)
        self._engine.start_container(container.id)
        kill_point("docker.container-started")
        addresses = self._engine.container_state(container.id).addresses if self._network.needs_hosts else {}
        return RunningService(
            service=service,
            container=container,
            image=image,
            address=addresses.get("bridge", ""),
            environment=spec.environment,
        )

    def hosts(self) -> list[str]:
        """``name:ip`` for build and helper where names are not resolved by the network."""
        return [
            f"{alias}:{running.address}"
            for running in self.running
            if running.address
            for alias in (*running.service.aliases, running.container.short_id)
        ]

    def _spec(self, service: Service, image: PresentImage) -> ContainerSpec:
        job = self._job
        around = Surroundings(
            binds=self._binds,
            network_mode=self._network.mode,
            image=service.image,
            use_init=job.flag("FF_USE_INIT_WITH_DOCKER_EXECUTOR"),
            cgroup_parent=job.slot_cgroup(service=True),
        )
        labels = {"service": service.name, "service.version": service.version}
        return ContainerSpec(
            name=job.names.service(service.name, service.index),
            image=image.runnable,
            labels=job.labels.of_container(ObjectType.SERVICE, labels),
            host_config=host_config(job.docker, Role.SERVICE, around),
            command=service.definition.command or None,
            entrypoint=service.definition.entrypoint or None,
            environment=self._environment(service),
            user=docker_option(service.definition, "user", job.variables),
            aliases=self._network.aliases(service.aliases),
            platform=docker_option(service.definition, "platform", job.variables),
        )

    def _environment(self, service: Service) -> list[str]:
        variables = self._job.variables
        public = [f"{item.key}={variables.value(item.key)}" for item in variables.last() if item.public]
        own = [f"{item.key}={item.value if item.raw else variables.expand(item.value)}" for item in service.variables]
        return [*public, *own]
