"""A container that is started once per stage, reads the script on stdin and ends with it (facts/executors.md 6.4)."""

from __future__ import annotations

from collections.abc import Callable

from pyrunner.base.errors import JobFailure
from pyrunner.executors.docker.containers import Container, Containers
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import NotFoundError
from pyrunner.executors.docker.engine.records import ContainerState
from pyrunner.executors.docker.spec import ContainerSpec
from pyrunner.executors.docker.stage import StageStream
from pyrunner.executors.docker.stopping import stop_container, terminate_processes
from pyrunner.executors.protocol import ExecutorCommand

#: Pauses between looks at a container whose output has ended, seconds.
_SHORTEST_LOOK = 0.01
_LONGEST_LOOK = 1.0


class ScriptContainer:
    """The build container, and the helper's where nothing can be executed in a running one.

    `attempts` is how often a stage is begun whose container has vanished (``EXECUTOR_JOB_SECTION_ATTEMPTS``).
    """

    def __init__(
        self, engine: Engine, containers: Containers, spec: Callable[[], ContainerSpec], *, attempts: int = 1
    ) -> None:
        self._engine = engine
        self._containers = containers
        self._spec = spec
        self._attempts = attempts
        self._container: Container | None = None
        #: Whether a cancelled stage's processes get SIGTERM before the container is stopped.
        self.signals = True

    def create(self) -> Container:
        """Create the container unless it is there."""
        if self._container is None:
            self._container = self._containers.create(self._spec())
        return self._container

    def run(self, command: ExecutorCommand) -> None:
        """Run a stage.

        Raises:
            JobFailure: the script ended with another code than 0.
            EngineError: the container cannot be started, or is gone.
        """
        for attempt in range(1, self._attempts + 1):
            container = self.create()
            try:
                state = self._once(container, command)
                break
            except NotFoundError:
                self._containers.forget(container)
                self._container = None
                command.token.raise_if_cancelled()
                command.trace.warning(f'Container "{container.id}" not found or removed. Will retry...')
                if attempt == self._attempts:
                    raise NotFoundError("Execution attempts exceeded", status=404) from None
                command.trace.plain(f"Retrying {command.stage}")
        _check(state)

    def _once(self, container: Container, command: ExecutorCommand) -> ContainerState:
        command.token.raise_if_cancelled()
        stream = self._engine.attach(container.id)
        try:
            self._engine.start_container(container.id)
            stage = StageStream(stream, lambda: self._stop(container), lambda: self._is_down(container))
            stage.run(command)
        finally:
            stream.close()
        return self._down(container, command)

    def _down(self, container: Container, command: ExecutorCommand) -> ContainerState:
        """The state once it has ended; its output may end earlier."""
        pause = _SHORTEST_LOOK
        while (state := self._engine.container_state(container.id)).running:
            if command.token.wait(pause):
                self._stop(container)
                command.token.raise_if_cancelled()
            pause = min(pause * 2, _LONGEST_LOOK)
        return state

    def _is_down(self, container: Container) -> bool:
        return not self._engine.container_state(container.id).running

    def _stop(self, container: Container) -> None:
        engine = self._engine.sibling()
        try:
            if self.signals:
                terminate_processes(engine, container.id)
            stop_container(engine, container.id)
        finally:
            engine.close()


def _check(state: ContainerState) -> None:
    if not state.exit_code:
        return
    cause = ": a process was killed for lack of memory" if state.out_of_memory else ""
    raise JobFailure(f"exit code {state.exit_code}{cause}", job_exit_code=state.exit_code)
