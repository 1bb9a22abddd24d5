"""In which shell a stage runs: its own, or one with its neighbours (docs/architecture.md, "Shells of a job")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrunner.base.errors import JobFailure
from pyrunner.executors.pipe import PipeOutput
from pyrunner.executors.process import GracePeriods
from pyrunner.executors.protocol import ExecutorCommand
from pyrunner.executors.shell.shared import LONGEST_SCRIPT, NotSharedError, SharedShell
from pyrunner.shells.protocol import Sharing, Stage


class StageShells:
    """The shared shell of one job, as long as there is one. Used by one thread.

    Args:
        arguments: how bash is started.
        environment: of the shells.
        grace: for signals.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[bytes, bytes], grace: GracePeriods) -> None:
        self._arguments = arguments
        self._environment = environment
        self._grace = grace
        self._shell: SharedShell | None = None
        #: Whether no stage in it has done anything that its profile could have looked at.
        self._fresh = True
        self._allowed = True

    def run(self, command: ExecutorCommand, output: PipeOutput) -> bool:
        """Run a stage in a shared shell; False, with nothing done, when it needs its own.

        Raises like `Executor.run`.
        """
        alone = command.sharing is Sharing.NONE
        if self._shell is not None and (len(command.script) > LONGEST_SCRIPT or (alone and not self._fresh)):
            self.close()
        # The clean-up comes last: a shell that nobody will share is started in the plain way.
        last = alone or command.stage == Stage.CLEANUP_FILE_VARIABLES
        shell, self._shell = self._shell, None
        if shell is None:
            if last or not self._allowed or len(command.script) > LONGEST_SCRIPT:
                return False
            shell, self._fresh = SharedShell(self._arguments, self._environment, output, self._grace), True
            try:
                self._allowed = shell.begin(command.token)
            except NotSharedError:
                self._allowed = False
                return False
        if last or not self._allowed:
            shell.run_inside(command)
        else:
            self._run_beside(shell, command)
        return True

    def close(self) -> None:
        """End the shared shell, if there is one."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.close()

    def _run_beside(self, shell: SharedShell, command: ExecutorCommand) -> None:
        self._fresh = self._fresh and command.sharing is Sharing.INERT
        try:
            shell.run_beside(command)
        except JobFailure:
            if shell.alive:
                self._shell = shell
            raise
        self._shell = shell
