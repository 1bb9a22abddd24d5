"""Runs each stage in a shell of its own on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.abstract import AbstractExecutor, ExecutorOptions
from pyrunner.executors.pipe import PipeOutput
from pyrunner.executors.process import GracePeriods, ProcessGroup
from pyrunner.executors.protocol import Environment, ExecutorCommand, ExecutorStage, PrepareOptions
from pyrunner.executors.shell.directories import check_program, check_user, runner_command, usable_directory
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ShellCommandLine, ShellType

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
    script of any size cannot block on a pipe that nobody reads.
    """

    def __init__(self, grace: GracePeriods | None = None) -> None:
        super().__init__(DEFAULTS)
        self._grace = grace or GracePeriods()
        self._output: PipeOutput | None = None
        self._command_line: ShellCommandLine | None = None

    def prepare(self, options: PrepareOptions) -> Environment:
        """Check shell, user and directories, and say which shell it is."""
        environment = super().prepare(options)
        options.token.raise_if_cancelled()
        options.trace.plain(f"Using {self.defaults.title} ({self.shell_name}) executor...")
        if options.user:
            check_user(options.user)
        self._command_line = shell(self.shell_name).command_line(self.defaults.shell_type, options.user)
        check_program(self._command_line.arguments[0])
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
        if self._output is None:
            self._output = PipeOutput()
        self._output.direct(command.trace)
        with _script_input(self._command_line, command.script) as (arguments, stdin):
            group = ProcessGroup.start(arguments, stdin=stdin, output=self._output.writer, environment=os.environ)
            group.wait(self._output, command.token, self._grace)

    def cleanup(self) -> None:
        """Release the pipe."""
        super().cleanup()
        if self._output is not None:
            self._output.close()
            self._output = None


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
