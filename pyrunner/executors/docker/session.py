"""One job's containers from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pyrunner.base.kill_point import kill_point
from pyrunner.executors.docker import ownership
from pyrunner.executors.docker.containers import Containers
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.helper import STAGE_PROGRAM, STAGE_PROGRAM_WITH_UMASK, ResidentHelper, idle_command
from pyrunner.executors.docker.host_config import Role, Surroundings, host_config
from pyrunner.executors.docker.images.job_images import JobImages
from pyrunner.executors.docker.images.store import PresentImage
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.ledger import remove_containers, remove_quietly
from pyrunner.executors.docker.networks import Network
from pyrunner.executors.docker.script_container import ScriptContainer
from pyrunner.executors.docker.service_containers import ServiceContainers
from pyrunner.executors.docker.services import Service, requested_services
from pyrunner.executors.docker.spec import ContainerSpec
from pyrunner.executors.docker.volumes.manager import Volumes
from pyrunner.executors.docker.volumes.plan import destinations
from pyrunner.executors.protocol import ExecutorCommand
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ShellType

USE_INIT = "FF_USE_INIT_WITH_DOCKER_EXECUTOR"
NATIVE_STOP = "FF_USE_NATIVE_CONTAINER_STOP"
#: Before it, a MAC address is the container's and not the network's (facts/executors.md 6.5).
MAC_ADDRESS_API = (1, 44)
SECTION_ATTEMPTS = "EXECUTOR_JOB_SECTION_ATTEMPTS"


class DockerSession:
    """Prepares, runs and removes; used by the job's thread. `cleanup` may come at any time and twice."""

    def __init__(self, engine: Engine, job: DockerJob) -> None:
        self._engine = engine
        self._job = job
        self._containers = Containers(engine)
        self._network = Network(engine, job)
        self._volumes = Volumes(engine, job)
        self._images = JobImages(engine, job)
        self._services: ServiceContainers | None = None
        self._helper: ResidentHelper | None = None
        self._build: ScriptContainer | None = None

    def prepare(self, image: str, shell_name: str) -> None:
        """Network, volumes, services, helper, build: in this order (facts/executors.md 6.3).

        Raises:
            SystemFailure: something cannot be had.
            BaseException: the token's cause, when cancelled.
        """
        job = self._job
        if job.flag(ownership.FLAG):
            job.trace.plain(ownership.NOTICE)
        self._images.check_build(image)
        self._network.prepare()
        self._volumes.prepare()
        self._services = ServiceContainers(self._engine, job, self._containers, self._network, self._volumes.binds)
        self._services.start(requested_services(job), self._image_of_service)
        helper_image = cache(lambda: self._images.helper(shell_name))
        self._services.wait(helper_image)
        self._helper = self._new_helper(helper_image())
        self._helper.start()
        build_image = self._images.build(image)
        self._build = self._new_build(build_image, shell_name)
        self._build.create()

    def run(self, command: ExecutorCommand) -> None:
        """Run a stage where it belongs."""
        helper, build = self._helper, self._build
        assert helper is not None and build is not None  # noqa: S101, PT018 - prepared before
        if not command.predefined:
            build.run(command)
            return
        helper.run(command)
        # it has opened them before it was ready
        self._volumes.opened()
        ownership.Handover(self._job, build=build.run, helper=helper.run).after(command)

    def cleanup(self) -> bool:
        """Remove everything but caches; errors are logged. Whether there were none, now or before."""
        if self._helper is not None:
            self._helper.close()
        present = self._containers.present
        clean = self._containers.all_known & remove_containers(
            self._engine, [container.id for container in present], volumes=not self._job.docker.volume_keep
        )
        for container in present:
            self._containers.forget(container)
        if self._services is not None:
            self._services.close()
        kill_point("docker.containers-removed")
        clean &= remove_quietly("the job's volumes", self._volumes.remove_temporary)
        return clean & remove_quietly("the job's network", self._network.remove)

    def _image_of_service(self, service: Service) -> PresentImage:
        return self._images.service(service.definition, service.image)

    # --- containers -------------------------------------------------------------------------------------------

    def _new_helper(self, image: PresentImage) -> ResidentHelper:
        program = STAGE_PROGRAM_WITH_UMASK if self._job.flag(ownership.FLAG) else STAGE_PROGRAM
        return ResidentHelper(
            self._engine,
            self._containers,
            lambda: self._helper_spec(image, program),
            program,
            attempts=self._attempts(),
        )

    def _helper_spec(self, image: PresentImage, program: str) -> ContainerSpec:
        job = self._job
        return ContainerSpec(
            name=job.names.helper,
            image=image.runnable,
            labels=job.labels.of_container(ObjectType.HELPER),
            host_config=host_config(job.docker, Role.HELPER, self._surroundings(image.name)),
            command=idle_command(program, destinations(self._volumes.fresh)),
            environment=job.environment(),
            hostname=job.hostname,
            stdin=True,
            aliases=self._network.aliases(["build", job.names.helper]),
        )

    def _new_build(self, image: PresentImage, shell_name: str) -> ScriptContainer:
        command = _one_stream(shell(shell_name).command_line(ShellType.NORMAL).container_command)
        build = ScriptContainer(
            self._engine,
            self._containers,
            lambda: self._build_spec(image, command),
            attempts=self._attempts(),
        )
        build.signals = not self._job.flag(NATIVE_STOP)
        return build

    def _build_spec(self, image: PresentImage, command: Sequence[str]) -> ContainerSpec:
        job = self._job
        definition = job.job.image
        entrypoint = definition.entrypoint if definition else None
        if entrypoint and job.docker.disable_entrypoint_overwrite:
            job.trace.warning("Entrypoint override disabled")
            entrypoint = None
        return ContainerSpec(
            name=job.names.build,
            image=image.runnable,
            labels=job.labels.of_container(ObjectType.BUILD),
            host_config=host_config(job.docker, Role.BUILD, self._surroundings(image.name)),
            command=command,
            entrypoint=entrypoint,
            environment=job.environment(),
            hostname=job.hostname,
            user=self._images.user(),
            stdin=True,
            stdin_once=True,
            aliases=self._network.aliases(["build", job.names.build]),
            mac_address=self._mac_address(),
            platform=self._images.platform,
        )

    def _mac_address(self) -> str:
        address = self._job.docker.mac_address
        if address and self._engine.facts.api < MAC_ADDRESS_API:
            self._job.trace.warning(f'mac_address = "{address}" is ignored: it needs an engine with API 1.44 or newer')
            return ""
        return address

    def _surroundings(self, image: str) -> Surroundings:
        return Surroundings(
            binds=self._volumes.binds,
            network_mode=self._network.mode,
            extra_hosts=self._services.hosts() if self._services else (),
            image=image,
            use_init=self._job.flag(USE_INIT),
            cgroup_parent=self._job.slot_cgroup(),
        )

    def _attempts(self) -> int:
        text = self._job.variables.get(SECTION_ATTEMPTS)
        return min(10, max(1, int(text))) if text.isdigit() else 1


def _one_stream(command: Sequence[str]) -> list[str]:
    """`command` of a POSIX shell with stderr into stdout: the engine has a pipe for each and loses the lines' order."""
    if list(command[:2]) == ["sh", "-c"]:
        return ["sh", "-c", f"exec 2>&1\n{command[2]}", *command[3:]]
    return list(command)
