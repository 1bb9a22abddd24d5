"""Single stages of a prepared job, each in a section of the trace."""

from __future__ import annotations

import time
from dataclasses import replace

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.protocol import Executor, ExecutorCommand
from pyrunner.job.context import PreparedJob
from pyrunner.job.stages import is_predefined, stage_title
from pyrunner.job.trace import JobTrace
from pyrunner.job.variables import with_status
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import Shell, Stage
from pyrunner.shells.sharing import stage_sharing

_BOLD_CYAN, _RESET = "\x1b[36;1m", "\x1b[0;m"
_UPLOADS = (Stage.UPLOAD_ARTIFACTS_ON_SUCCESS, Stage.UPLOAD_ARTIFACTS_ON_FAILURE)


class Section:
    """One section of the trace around a ``with`` block; it also ends when the block raises."""

    __slots__ = ("_name", "_title", "_trace")

    def __init__(self, trace: JobTrace, name: str, title: str) -> None:
        self._trace, self._name, self._title = trace, name, title

    def __enter__(self) -> None:
        self._trace.section_start(self._name)
        self._trace.runner.plain(f"{_BOLD_CYAN}{self._title}{_RESET}")

    def __exit__(self, *exc: object) -> None:
        self._trace.section_end(self._name)


class StageRunner:
    """Runs single stages of a prepared job."""

    def __init__(self, executor: Executor, prepared: PreparedJob, trace: JobTrace) -> None:
        self._executor = executor
        self._context = prepared.script
        self._shell: Shell = shell(prepared.shell_info.shell)
        self._trace = trace

    def set_status(self, status: str) -> None:
        """Overwrite ``CI_JOB_STATUS`` from now on."""
        self._context = replace(self._context, variables=with_status(self._context.variables, status))

    def run(self, stage: str, token: CancelToken) -> None:
        """Run a stage; one with nothing to do leaves no mark in the log."""
        if stage in _UPLOADS:
            ended_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._context = replace(self._context, ended_at=ended_at)
        script = self._shell.script(stage, self._context)
        if script is None:
            return
        with Section(self._trace, stage, stage_title(stage)):
            self._executor.run(
                ExecutorCommand(
                    script=script,
                    stage=stage,
                    predefined=is_predefined(stage),
                    token=token,
                    trace=self._trace.script,
                    sharing=stage_sharing(stage, self._context),
                )
            )
