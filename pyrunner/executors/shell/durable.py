"""Stages whose processes, output and exit code do not depend on this process."""

from __future__ import annotations

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.exit_code import check_exit_code
from pyrunner.executors.log_output import LogKeeper, LogOutput
from pyrunner.executors.process import GracePeriods, ProcessGroup
from pyrunner.executors.protocol import ExecutorCommand
from pyrunner.executors.shell.stage_record import (
    KEEP_EXIT_CODE,
    StageDirectory,
    StageRecord,
    new_marker,
    start_time,
)


class DurableStages:
    """One job's state directory in use: by the process that starts stages, or by a later one that resumes the last."""

    def __init__(self, path: str) -> None:
        self._directory = StageDirectory(path)
        self._directory.make()
        self._marker = new_marker()
        self._keeper: LogKeeper | None = None
        self._output: LogOutput | None = None

    @property
    def offset(self) -> int:
        """How far the log has been passed on."""
        return self._output.offset if self._output is not None else 0

    def open_output(self) -> LogOutput:
        """The job's log, with a process that fills it.

        Raises:
            SystemFailure: the log cannot be made.
        """
        path = self._directory.log
        try:
            self._keeper = LogKeeper.start(path)
            self._output = LogOutput(path, marker=self._marker, keeper=self._keeper)
        except OSError as error:
            raise SystemFailure(
                f"the job's log {path} cannot be made: {error.strerror}", reason="runner_system_failure"
            ) from error
        return self._output

    def begin(self, arguments: list[str]) -> list[str]:
        """The command line that runs `arguments` and keeps the exit code."""
        self._directory.begin()
        return ["sh", "-c", KEEP_EXIT_CODE, self._directory.exit_file, *arguments]

    def started(self, stage: str, pid: int) -> None:
        """Write down what runs now."""
        if self._keeper is None or self._output is None:
            raise SystemFailure("a stage was started without its log")
        record = StageRecord(
            stage=stage,
            pid=pid,
            started=start_time(pid) or 0,
            keeper_pid=self._keeper.pid,
            offset=self._output.offset,
            marker=self._marker.decode(),
        )
        self._directory.write(record)

    def resume(self, command: ExecutorCommand, offset: int, grace: GracePeriods) -> None:
        """See `ShellExecutor.resume`."""
        record = self._directory.read()
        if record is None or record.stage != command.stage:
            raise SystemFailure(f'no stage "{command.stage}" has been started in "{self._directory.path}"')
        output = LogOutput(
            self._directory.log,
            marker=record.marker.encode(),
            keeper=LogKeeper.adopt(record.keeper_pid),
            offset=max(offset, record.offset),
        )
        output.direct(command.trace)
        try:
            self._follow(record, output, command, grace)
        finally:
            output.close()

    def _follow(self, record: StageRecord, output: LogOutput, command: ExecutorCommand, grace: GracePeriods) -> None:
        if start_time(record.pid) == record.started:
            try:
                group = ProcessGroup.adopt(record.pid, self._directory.exit_code)
            except ProcessLookupError:
                pass
            else:
                group.wait(output, command.token, grace)
                return
        output.finish()
        check_exit_code(self._directory.exit_code())
