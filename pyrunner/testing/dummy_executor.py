"""An executor that runs nothing: job variables say what happens.

``DUMMY_PREPARE`` and ``DUMMY_<STAGE>`` (``DUMMY_STEP_SCRIPT``, ``DUMMY_GET_SOURCES`` …; else ``DUMMY_RUN``) hold
actions separated by ``;``:

================== ====================================================================
``print <text>``   write a line
``flood <n>``      write `n` bytes in lines
``exit <n>``       end the stage with that exit code
``system <text>``  fail on the runner's side
``sleep <s>``      take so long, unless cancelled
``hang``           take until cancelled
================== ====================================================================
"""

from __future__ import annotations

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobFailure, SystemFailure
from pyrunner.executors.abstract import AbstractExecutor, ExecutorOptions
from pyrunner.executors.protocol import (
    Environment,
    Executor,
    ExecutorCommand,
    ExecutorStage,
    PrepareOptions,
    TraceWriter,
)
from pyrunner.executors.provider import DefaultExecutorProvider

DEFAULTS = ExecutorOptions(
    title="Dummy", default_builds_dir="/builds", default_cache_dir="/cache", runner_command="pyrunner"
)


class DummyExecutor(AbstractExecutor):
    """Implements `Executor`; `stages` holds what was run, `cleanups` how often it was cleaned up."""

    def __init__(self) -> None:
        super().__init__(DEFAULTS)
        self.stages: list[str] = []
        self.cleanups = 0

    def prepare(self, options: PrepareOptions) -> Environment:
        """Do what ``DUMMY_PREPARE`` says."""
        environment = super().prepare(options)
        options.token.raise_if_cancelled()
        options.trace.plain(f"Using {self.defaults.title} ({self.shell_name}) executor...")
        _act(options.variables.get("DUMMY_PREPARE"), options.trace, options.token)
        return environment

    def run(self, command: ExecutorCommand) -> None:
        """Do what the stage's variable says."""
        self.set_current_stage(ExecutorStage.RUN)
        command.token.raise_if_cancelled()
        self.stages.append(command.stage)
        variables = self.options.variables
        stage = variables.find(f"DUMMY_{command.stage.upper()}") or variables.find("DUMMY_RUN")
        _act(stage.value if stage else "", command.trace, command.token)

    def cleanup(self) -> None:
        """Count."""
        super().cleanup()
        self.cleanups += 1


def _act(actions: str, trace: TraceWriter, token: CancelToken) -> None:
    for action in filter(None, map(str.strip, actions.split(";"))):
        name, _, argument = action.partition(" ")
        match name:
            case "print":
                trace.write(f"{argument}\n".encode())
            case "flood":
                line = b"x" * 63 + b"\n"
                trace.write((line * (int(argument) // 64 + 1))[: int(argument)])
            case "exit":
                if int(argument):
                    raise JobFailure(f"exit status {argument}", job_exit_code=int(argument))
                return
            case "system":
                raise SystemFailure(argument)
            case "sleep" | "hang":
                if token.wait(float(argument) if argument else None):
                    token.raise_if_cancelled()
            case _:
                raise SystemFailure(f'the dummy executor does not know the action "{action}"')


def _create() -> Executor:
    return DummyExecutor()


provider = DefaultExecutorProvider(creator=_create, default_shell_name="bash")
