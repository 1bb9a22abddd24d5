"""Waits until services accept connections; the job goes on without one that does not (facts/executors.md 6.7)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyrunner.executors.docker import labels
from pyrunner.executors.docker.containers import Container, Containers
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.images.store import PresentImage
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.networks import Network
from pyrunner.executors.docker.running_service import RunningService
from pyrunner.executors.docker.spec import ContainerSpec

#: Seconds, where the config says 0.
DEFAULT_TIMEOUT = 30
#: Of a container's output, in the block of a failure.
LOG_LIMIT = 64 * 1024
#: More than so many ports of a service are not tried.
MOST_PORTS = 20
PORT_VARIABLE = "HEALTHCHECK_TCP_PORT"
_SHORTEST_LOOK = 0.02
_LONGEST_LOOK = 0.25
_YELLOW = "\x1b[0;33m"
_RESET = "\x1b[0;m"


def health_ports(environment: Sequence[str], exposed: Sequence[str]) -> list[int]:
    """Ports to try: the one that the service's variables name, else the lowest ones of TCP that its image exposes."""
    named = [text.partition("=")[2] for text in environment if text.startswith(f"{PORT_VARIABLE}=")]
    if named and named[-1].isdecimal():
        return [int(named[-1])]
    ports = (text.partition("/") for text in exposed)
    tcp = {int(port) for port, _, kind in ports if port.isdecimal() and kind in ("", "tcp")}
    return sorted(tcp)[:MOST_PORTS]


def warning_block(container: str, error: str, checked: str | None, logs: str) -> str:
    """What the log says of a service that did not start; `checked` is the output of its check, None without one."""
    parts = [
        f"{_YELLOW}*** WARNING:{_RESET} Service {container} probably didn't start properly.",
        f"Health check error:\n{error.strip()}",
        *([] if checked is None else [f"Health check container logs:\n{checked.rstrip()}"]),
        f"Service container logs:\n{logs.rstrip()}",
        f"{_YELLOW}*********{_RESET}",
    ]
    return "\n" + "\n\n".join(parts) + "\n\n"


@dataclass(kw_only=True)
class _Check:
    running: RunningService
    container: Container | None = None
    error: str = ""
    checked: str | None = field(default=None)


class ServiceHealth:
    """The checks of one job's services: a container each, of the helper image, all at the same time."""

    def __init__(self, engine: Engine, job: DockerJob, containers: Containers, network: Network) -> None:
        self._engine = engine
        self._job = job
        self._containers = containers
        self._network = network

    @property
    def timeout(self) -> int:
        """Seconds; negative: nothing is waited for."""
        return self._job.docker.wait_for_services_timeout or DEFAULT_TIMEOUT

    def wait(self, services: Sequence[RunningService], helper: PresentImage) -> None:
        """Wait for all services or until the time is over; print a block for each that did not answer.

        Raises:
            BaseException: the token's cause, when cancelled.
        """
        checks = [self._begin(running, helper) for running in services]
        deadline = time.monotonic() + self.timeout
        pause = _SHORTEST_LOOK
        while waiting := [check for check in checks if check.container is not None and not self._over(check)]:
            if time.monotonic() > deadline:
                for check in waiting:
                    self._end(check, f'service "{check.container.name if check.container else ""}" timeout')
                break
            self._job.token.wait(pause)
            self._job.token.raise_if_cancelled()
            pause = min(pause * 1.5, _LONGEST_LOOK)
        for check in checks:
            if check.error:
                self._tell(check)

    def _begin(self, running: RunningService, helper: PresentImage) -> _Check:
        check = _Check(running=running)
        ports = health_ports(
            [*running.image.facts.environment, *running.environment], running.image.facts.exposed_ports
        )
        if not ports:
            check.error = f'service "{running.container.name}" has no exposed ports'
            return check
        try:
            check.container = self._containers.create(self._spec(running, helper, ports))
            self._engine.start_container(check.container.id)
        except EngineError as error:
            self._end(check, str(error))
        return check

    def _spec(self, running: RunningService, helper: PresentImage, ports: Sequence[int]) -> ContainerSpec:
        job, short_id = self._job, running.container.short_id
        own_host = self._network.mode == "host"
        hosts = [f"{short_id}:{running.address}"] if running.address else []
        environment = [f"WAIT_FOR_SERVICE_TCP_ADDR={'127.0.0.1' if own_host else short_id}"]
        environment += [f"WAIT_FOR_SERVICE_{port}_TCP_PORT={port}" for port in ports]
        config: Mapping[str, object] = {
            "NetworkMode": self._network.mode or "default",
            "ExtraHosts": hosts,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "json-file"},
        }
        return ContainerSpec(
            name=f"{running.container.name}-wait-for-service",
            image=helper.runnable,
            labels=job.labels.of_container(ObjectType.WAIT, {labels.WAIT_FOR: running.container.id}),
            host_config={key: value for key, value in config.items() if value},
            command=["gitlab-runner-helper", "health-check"],
            environment=environment,
        )

    def _over(self, check: _Check) -> bool:
        assert check.container is not None  # noqa: S101 - the caller has looked
        try:
            state = self._engine.container_state(check.container.id)
        except EngineError as error:
            self._end(check, str(error))
            return True
        if state.running:
            return False
        self._end(check, f"exit code {state.exit_code}" if state.exit_code else "")
        return True

    def _end(self, check: _Check, error: str) -> None:
        check.error = error
        container, check.container = check.container, None
        if container is None:
            return
        try:
            if error:
                check.checked = self._output(container)
            self._containers.remove(container)
        except EngineError:
            # `Containers` knows it still, and removes it with the job
            return

    def _output(self, container: Container) -> str:
        try:
            return self._engine.logs(container.id, LOG_LIMIT, timestamps=True).decode("utf-8", "replace")
        except EngineError as error:
            return str(error)

    def _tell(self, check: _Check) -> None:
        container = check.running.container
        block = warning_block(container.name, check.error, check.checked, self._output(container))
        self._job.trace.write(block.encode("utf-8", "surrogateescape"))
