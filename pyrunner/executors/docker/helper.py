"""The helper container: started once per job, kept running, every stage a process in it.

GitLab Runner starts a container again for every stage, which takes most of the time that it adds to a job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobFailure, SystemFailure
from pyrunner.executors.docker.containers import Container, Containers
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import ConflictError, EngineError, NotFoundError
from pyrunner.executors.docker.engine.hijack import Ended, Hijacked
from pyrunner.executors.docker.spec import ContainerSpec
from pyrunner.executors.docker.stage import StageStream
from pyrunner.executors.docker.stopping import terminate_processes
from pyrunner.executors.protocol import ExecutorCommand

log = logging.getLogger(__name__)

#: Reads the script on stdin, with umask 0000: job containers of any user share the files (facts/executors.md 6.4).
STAGE_PROGRAM = "gitlab-runner-build"
STAGE_PROGRAM_WITH_UMASK = "/bin/bash"
_READY = b"helper-is-ready"
#: Opens fresh volumes, tells that the image's entrypoint has done its work, and waits without ever waking up.
_IDLE = f"""\
command -v "$1" >/dev/null || {{ echo "the helper image has no $1"; exit 127; }}
shift
[ $# = 0 ] || chmod 0777 "$@"
echo {_READY.decode()}
exec cat >/dev/null
"""
#: Seconds for a container to say so.
_READY_LIMIT = 120.0
_LONGEST_LOOK = 0.5


def idle_command(program: str, fresh: Sequence[str]) -> list[str]:
    """Command of the helper container; `fresh` are the paths whose permissions it opens."""
    return ["sh", "-c", _IDLE, "sh", program, *fresh]


class ResidentHelper:
    """Starts the helper container when it is needed and runs stages in it. Used by the job's thread."""

    def __init__(
        self,
        engine: Engine,
        containers: Containers,
        spec: Callable[[], ContainerSpec],
        program: str = STAGE_PROGRAM,
        *,
        attempts: int = 1,
    ) -> None:
        self._engine = engine
        self._containers = containers
        self._spec = spec
        # One pipe for both: two would lose the order of the lines.
        self._command = ["sh", "-c", 'exec "$0" 2>&1', program]
        self._attempts = attempts
        self._container: Container | None = None
        self._hello: Hijacked | None = None

    def start(self) -> Container:
        """Create and start the container unless it runs; `run` waits until it is ready."""
        if self._container is None:
            container = self._containers.create(self._spec())
            self._hello = self._engine.attach(container.id)
            self._engine.start_container(container.id)
            self._container = container
        return self._container

    def run(self, command: ExecutorCommand) -> None:
        """Run a stage in the container.

        Raises:
            JobFailure: the script ended with another code than 0.
            SystemFailure: the container does not start or is gone.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                self._once(command)
            except NotFoundError:
                gone = self._drop()
                command.token.raise_if_cancelled()
                command.trace.warning(f'Container "{gone}" not found or removed. Will retry...')
                if attempt == self._attempts:
                    raise NotFoundError("Execution attempts exceeded", status=404) from None
                command.trace.plain(f"Retrying {command.stage}")
            else:
                return

    def close(self) -> None:
        """Let go of its stream; the container is for `Containers` to remove."""
        if self._hello is not None:
            self._hello.close()
            self._hello = None

    def _once(self, command: ExecutorCommand) -> None:
        command.token.raise_if_cancelled()
        container = self.start()
        self._wait_until_ready(container, command.token)
        execution = self._execution(container)
        stream = self._engine.start_exec(execution)
        try:
            stage = StageStream(
                stream, lambda: self._stop(container, execution), lambda: self._code(execution) is not None
            )
            stage.run(command)
        finally:
            stream.close()
        code = self._wait_for_code(container, execution)
        if code:
            raise JobFailure(f"exit code {code}", job_exit_code=code)

    def _wait_until_ready(self, container: Container, token: CancelToken) -> None:
        if self._hello is None:
            return
        said = bytearray()
        limit = token.child(_READY_LIMIT, SystemFailure("the helper container does not get ready"))
        try:
            end = self._hello.pump(said.extend, limit, enough=lambda: _READY in said)
            limit.raise_if_cancelled()
        finally:
            limit.close()
        if end is Ended.CLOSED:
            raise self._not_ready(container, bytes(said))
        self.close()

    def _not_ready(self, container: Container, said: bytes) -> SystemFailure:
        state = self._engine.container_state(container.id)
        words = said.decode("utf-8", "replace").strip() or state.error or "no output"
        return SystemFailure(
            f"the helper container ended at once with exit code {state.exit_code}: {words}",
            reason="runner_configuration_error",
        )

    def _wait_for_code(self, container: Container, execution: str) -> int:
        pause = 0.002
        while (code := self._code(execution)) is None:
            if not self._engine.container_state(container.id).running:
                raise NotFoundError("the helper container is gone", status=404)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_LOOK)
        return code

    def _code(self, execution: str) -> int | None:
        return self._engine.exec_exit_code(execution)

    def _execution(self, container: Container) -> str:
        try:
            return self._engine.create_exec(container.id, self._command, stdin=True)
        except ConflictError as error:
            # It is there but does not run any more: as good as gone.
            raise NotFoundError(str(error), status=404) from error

    def _stop(self, container: Container, execution: str) -> None:
        engine = self._engine.sibling()
        try:
            terminate_processes(engine, container.id)
            if engine.exec_exit_code(execution) is None:
                engine.kill_container(container.id)
        except EngineError as error:
            log.debug("Cannot end the stage: %s", error, extra={"action": "terminate_failed"})
        finally:
            engine.close()

    def _drop(self) -> str:
        self.close()
        container, self._container = self._container, None
        if container is None:
            return ""
        self._containers.remove(container)
        return container.id
