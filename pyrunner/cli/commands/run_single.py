"""``pyrunner run-single``: one runner without a config file (facts/commands.md section 4)."""

from __future__ import annotations

from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

    from pyrunner.cli.parse import Invocation
    from pyrunner.config.model import RunnerConfig
    from pyrunner.manager.single import SingleRunner
    from pyrunner.store.outbox import Outbox


def run(call: Invocation) -> int:
    """Take jobs for one runner."""
    import logging
    import os
    import signal

    from pyrunner.base.errors import PyrunnerError
    from pyrunner.base.logs import FATAL
    from pyrunner.cli.notice import runtime_platform
    from pyrunner.cli.signals import Signals
    from pyrunner.config.system_id import new_system_id
    from pyrunner.manager.assignment import JobOptions
    from pyrunner.manager.single import SingleOptions, SingleRunner

    runtime_platform()
    runner = _runner(call)
    _check(runner)
    system_id = new_system_id()
    options = SingleOptions(
        jobs=JobOptions(system_id=system_id),
        outbox=_outbox(call, system_id),
        max_builds=call.number("max-builds"),
        wait_timeout=float(call.number("wait-timeout")),
        shutdown_timeout=float(call.number("shutdown-timeout")) or SingleOptions.shutdown_timeout,
    )
    single = SingleRunner(runner, options)
    with Signals(_handler(single), also=(signal.SIGUSR1,)):
        try:
            single.run()
        except PyrunnerError as error:
            logging.getLogger(__name__).log(FATAL, str(error))
            logging.shutdown()
            # the thread of a job that would not stop must not keep the process
            os._exit(1)
    return 0


def _runner(call: Invocation) -> RunnerConfig:
    from pyrunner.base.errors import ConfigError, UsageError
    from pyrunner.cli.runner_flags import apply_flags
    from pyrunner.config.load import default_config_path, load_config

    name = call.text("runner")
    if not name:
        return apply_flags(call)
    try:
        config = load_config(call.text("config") or default_config_path())
    except ConfigError as error:
        raise UsageError(f"Error loading config: {error}") from error
    for runner in config.runners:
        if runner.name == name:
            return runner
    raise UsageError(f"Error loading runner by name: could not find a runner with the name '{name}'")


def _outbox(call: Invocation, system_id: str) -> Outbox:
    """Beside the config file if one was named; a runner of flags alone has its state where the user's programs do."""
    import os

    from pyrunner.config.load import default_config_path
    from pyrunner.store.outbox import Outbox, state_home

    named = call.text("config") or (default_config_path() if call.text("runner") else "")
    home = os.path.dirname(os.path.abspath(named)) if named else state_home(os.environ)
    # an id that is drawn anew at each start would hide what the last one left
    return Outbox(home, system_id if system_id.startswith("s_") else "single")


def _check(runner: RunnerConfig) -> None:
    from pyrunner.base.errors import PyrunnerError, UsageError
    from pyrunner.executors.loader import executor_provider

    for value, text in ((runner.url, "URL"), (runner.token, "Token"), (runner.executor, "Executor")):
        if not value:
            raise UsageError(f"Missing {text}")
    try:
        executor_provider(runner.executor)
    except PyrunnerError as error:
        raise UsageError(f"Unknown executor: {runner.executor}", hint=str(error)) from error


def _handler(single: SingleRunner) -> Callable[[signal.Signals], None]:
    import logging
    import signal

    from pyrunner.cli.signals import SIGNAL_TEXTS, dump_threads

    def handle(number: signal.Signals) -> None:
        if number is signal.SIGUSR1:
            if logging.getLogger().isEnabledFor(logging.DEBUG):
                dump_threads()
        elif number is signal.SIGQUIT:
            single.stop_gracefully(SIGNAL_TEXTS[number])
        else:
            single.stop_forcefully(SIGNAL_TEXTS[number])

    return handle


def _flags() -> Sequence[Flag]:
    from pyrunner.cli.runner_flags import runner_flags

    return [
        Flag("wait-timeout", "int", "end when there was no job for N seconds; 0 = never"),
        Flag("max-builds", "int", "end after N jobs; 0 = never"),
        Flag("shutdown-timeout", "int", "seconds that an aborted job may take; 0 = 30"),
        Flag(
            "config",
            help="config file, for --runner",
            env=["CONFIG_FILE"],
            aliases=["c"],
            metavar="FILE",
            complete="file",
        ),
        Flag("runner", help="take this entry of the config file instead of flags", aliases=["r"], complete="runner"),
        *runner_flags(),
    ]


COMMAND = Command(
    "run-single",
    "Start a single runner",
    run,
    flags=_flags,
    description="""
        Takes jobs for one runner that is described by flags and environment variables, or by an entry of the config
        file. The exit code is 0 also when jobs failed.

        SIGQUIT waits for the running job; SIGTERM and SIGINT abort it.
    """,
    examples=[
        (
            "run-single --url https://gitlab.example.com --token glrt-… --executor shell --max-builds 1",
            "run one job, then end",
        ),
        ("run-single --runner my-runner --wait-timeout 60", "an entry of the config file, as long as there are jobs"),
    ],
)
