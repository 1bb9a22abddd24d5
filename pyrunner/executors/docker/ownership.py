"""Whose the project directory is where no umask opens it to everyone (facts/executors.md 6.4, umask flag)."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from dataclasses import replace

from pyrunner.api.variables import Variables
from pyrunner.base.errors import JobError
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.protocol import ExecutorCommand
from pyrunner.shells.protocol import Stage

log = logging.getLogger(__name__)

FLAG = "FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR"
NOTICE = f"Not using umask - {FLAG} is set!"
_WHO = "id -u; id -g\n"

Run = Callable[[ExecutorCommand], None]


class Handover:
    """Gives what the helper has fetched to the user of the build container."""

    def __init__(self, job: DockerJob, *, build: Run, helper: Run) -> None:
        self._job = job
        self._build = build
        self._helper = helper

    def after(self, command: ExecutorCommand) -> None:
        """A stage of the helper has ended well; what goes wrong here is only logged, as the job may not mind."""
        if command.stage != Stage.GET_SOURCES or not self._job.flag(FLAG):
            return
        try:
            owner = self._owner(command)
            if owner and not owner.startswith("0:"):
                self._change(owner, command)
        except JobError as error:
            command.token.raise_if_cancelled()
            log.warning("Could not hand the project directory over: %s", error, extra={"action": "handover_failed"})

    def _owner(self, command: ExecutorCommand) -> str:
        said = _Said()
        self._build(replace(command, script=_WHO, predefined=False, trace=said))
        numbers = bytes(said.data).decode("ascii", "replace").split()
        return ":".join(numbers) if len(numbers) == 2 and all(number.isdigit() for number in numbers) else ""

    def _change(self, owner: str, command: ExecutorCommand) -> None:
        for path in (self._job.project_dir, _temp_dir(self._job.variables)):
            log.debug('Changing ownership of files at "%s" to %s', path, owner, extra={"action": "handover"})
            word = shlex.quote(path)
            script = f"[ ! -e {word} ] || chown -RP -- {owner} {word}\n"
            self._helper(replace(command, script=script))


def _temp_dir(variables: Variables) -> str:
    return variables.get("RUNNER_TEMP_PROJECT_DIR")


class _Said:
    """A `TraceWriter` that keeps what a process says from the log."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data

    def plain(self, text: str) -> None:
        log.debug("%s", text)

    def info(self, text: str) -> None:
        log.debug("%s", text)

    def warning(self, text: str) -> None:
        log.warning("%s", text)

    def error(self, text: str) -> None:
        log.error("%s", text)
