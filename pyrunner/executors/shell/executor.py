"""Runs stages in shells on this machine."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.abstract import AbstractExecutor, ExecutorOptions
from pyrunner.executors.pipe import PipeOutput
from pyrunner.executors.process import GracePeriods, ProcessGroup
from pyrunner.executors.protocol import Environment, ExecutorCommand, ExecutorStage, PrepareOptions
from pyrunner.executors.shell.directories import check_program, check_user, runner_command, usable_directory
from pyrunner.executors.shell.shared import HIGHEST_DESCRIPTOR
from pyrunner.executors.shell.stage_shells import StageShells
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ShellCommandLine, ShellType

if TYPE_CHECKING:
    from pyrunner.executors.log_output import LogOutput
    from pyrunner.executors.shell.durable import DurableStages

DEFAULTS = ExecutorOptions(
    title="Shell",
    default_builds_dir="builds",
    default_cache_dir="cache",
    shared_builds_dir=True,
    shared_environment=True,
    shell_type=ShellType.LOGIN,
    runner_command=runner_command,
)


class ShellExecutor(AbstractExecutor):
    """Implements `Executor` with process groups (facts/executors.md section 2).

    The script comes from an unnamed file in memory, so its secrets are neither on a disk nor in an argument, and a
    script of any size cannot block on a pipe that nobody reads. Output comes through a pipe of the job, or, when the
    options name a state directory, through a log in it: then a later process can `resume` the stage.
    """

    def __init__(self, grace: GracePeriods | None = None) -> None:
        super().__init__(DEFAULTS)
        self._grace = grace or GracePeriods()
        self._output: PipeOutput | LogOutput | None = None
        self._command_line: ShellCommandLine | None = None
        self._environment: dict[bytes, bytes] = {}
        self._state: DurableStages | None = None
        self._shared: StageShells | None = None

    def prepare(self, options: PrepareOptions) -> Environment:
        """Check shell, user and directories, and say which shell it is."""
        environment = super().prepare(options)
        # Copied once, and as bytes: to convert it for every stage costs more than to start the process.
        self._environment = dict(os.environb)
        options.token.raise_if_cancelled()
        options.trace.plain(f"Using {self.defaults.title} ({self.shell_name}) executor...")
        if options.user:
            check_user(options.user)
        self._command_line = shell(self.shell_name).command_line(
            self.defaults.shell_type,
            options.user,
            by_file=options.variables.get("FF_DISABLE_POWERSHELL_STDIN") == "true",
        )
        check_program(self._command_line.arguments[0])
        if options.state_dir:
            from pyrunner.executors.shell.durable import DurableStages

            self._state = DurableStages(options.state_dir)
        elif self._can_share(self._command_line):
            self._shared = StageShells(self._command_line.arguments, self._environment, self._grace)
        builds_dir = usable_directory("builds_dir", environment.builds_dir, options.user)
        cache_dir = os.path.abspath(environment.cache_dir)
        if options.job.cache:
            cache_dir = usable_directory("cache_dir", cache_dir, options.user)
        return Environment(
            builds_dir=builds_dir,
            cache_dir=cache_dir,
            shared_builds_dir=environment.shared_builds_dir,
            shared_environment=environment.shared_environment,
        )

    def run(self, command: ExecutorCommand) -> None:
        """Run one stage to the end of its shell."""
        if self._command_line is None:
            raise SystemFailure("the executor is used before it is prepared")
        command.token.raise_if_cancelled()
        self.set_current_stage(ExecutorStage.RUN)
        output = self._open_output()
        output.direct(command.trace)
        if self._shared is None or not isinstance(output, PipeOutput) or not self._shared.run(command, output):
            self._run_alone(self._command_line, command, output)

    def _run_alone(self, line: ShellCommandLine, command: ExecutorCommand, output: PipeOutput | LogOutput) -> None:
        with _script_input(line, command.script) as (arguments, stdin):
            if self._state is not None:
                arguments = self._state.begin(arguments)
            group = ProcessGroup.start(arguments, stdin=stdin, output=output.writer, environment=self._environment)
            if self._state is not None:
                self._state.started(command.stage, group.pid)
            group.wait(output, command.token, self._grace)

    def resume(self, command: ExecutorCommand, offset: int) -> None:
        """Go on with the stage that an earlier process has started in the same state directory.

        `offset` is how far its log is already in the trace (0 or less than the stage's start: from its start). Ends
        and raises like `run`; the command's script is not used.
        """
        if self._state is None:
            raise SystemFailure("a stage can only be resumed with a state directory")
        self.set_current_stage(ExecutorStage.RUN)
        self._state.resume(command, offset, self._grace)

    @property
    def log_offset(self) -> int:
        """How far the log in the state directory has been passed on; 0 without one."""
        return self._state.offset if self._state is not None else 0

    def cleanup(self) -> None:
        """Release the output; the state directory belongs to whoever named it."""
        super().cleanup()
        if self._shared is not None:
            self._shared.close()
        if self._output is not None:
            self._output.close()
            self._output = None

    def _can_share(self, line: ShellCommandLine) -> bool:
        """Sharing speaks bash over descriptors, which ``su`` need not hand on."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        room = limit == resource.RLIM_INFINITY or limit > HIGHEST_DESCRIPTOR
        return self.shell_name == "bash" and not self.options.user and not line.pass_file and room

    def _open_output(self) -> PipeOutput | LogOutput:
        if self._output is None:
            self._output = PipeOutput() if self._state is None else self._state.open_output()
            if self.options.user:
                # Or the script's ``>/dev/stderr`` were refused.
                os.fchown(self._output.writer, pwd.getpwnam(self.options.user).pw_uid, -1)
        return self._output


@contextlib.contextmanager
def _script_input(line: ShellCommandLine, script: str) -> Iterator[tuple[list[str], int]]:
    """Arguments and stdin that make the shell of `line` run `script`.

    Raises:
        SystemFailure: there is no room for the script.
    """
    text = script.encode("utf-8", "surrogateescape")
    with contextlib.ExitStack() as stack:
        try:
            if line.pass_file:
                arguments = [*line.arguments, stack.enter_context(_script_file(line.extension, text))]
                stdin = stack.enter_context(open(os.devnull, "r+b"))
            else:
                arguments = list(line.arguments)
                stdin = stack.enter_context(open(os.memfd_create("script", os.MFD_CLOEXEC), "w+b"))
                stdin.write(text)
                stdin.seek(0)
        except OSError as error:
            raise SystemFailure(
                f"cannot store the stage's script: {error.strerror}", reason="runner_system_failure"
            ) from error
        yield arguments, stdin.fileno()


@contextlib.contextmanager
def _script_file(extension: str, text: bytes) -> Iterator[str]:
    """A file of its own for a script, only for its owner; gone afterwards."""
    directory = tempfile.mkdtemp(prefix="build_script")
    try:
        path = os.path.join(directory, f"script.{extension}" if extension else "script")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as file:
            file.write(text)
        yield path
    finally:
        shutil.rmtree(directory, ignore_errors=True)
