"""``pyrunner run``: the long-running service (facts/commands.md section 3)."""

from __future__ import annotations

import os

from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from pyrunner.cli.parse import Invocation
    from pyrunner.config.model import Config
    from pyrunner.manager.service import Service


def run(call: Invocation) -> int:
    """Take jobs until told to stop."""
    import logging

    from pyrunner.base.errors import PyrunnerError
    from pyrunner.base.logs import FATAL

    log = logging.getLogger(__name__)
    try:
        code = _serve(call)
    except (PyrunnerError, OSError) as error:
        log.log(FATAL, "Service run failed", extra={"error": str(error)})
        return 1
    if code:
        log.log(FATAL, "Service run failed", extra={"error": "forceful shutdown not finished properly"})
        # threads of jobs that would not stop must not keep the process: the interpreter would wait for them
        logging.shutdown()
        os._exit(code)
    return code


def _serve(call: Invocation) -> int:
    import logging
    import signal

    from pyrunner.cli.notice import runtime_platform, user_mode
    from pyrunner.cli.signals import Signals
    from pyrunner.config.load import default_config_path, load_config
    from pyrunner.config.system_id import system_id
    from pyrunner.manager.assignment import JobOptions
    from pyrunner.manager.service import Service, ServiceOptions
    from pyrunner.store.outbox import Outbox

    log = logging.getLogger(__name__)
    runtime_platform()
    if call.flag("syslog"):
        _add_syslog(call.text("service"))
    if directory := call.text("working-directory"):
        os.chdir(directory)
    path = os.path.abspath(call.text("config") or default_config_path())
    log.info("Starting multi-runner from %s...", path, extra={"builds": 0, "max_builds": 0})
    user_mode(hint=False)
    options = JobOptions(system_id=system_id(path), user=call.text("user"))
    outbox = Outbox(os.path.dirname(path), options.system_id)
    service = Service(
        lambda: load_config(path),
        ServiceOptions(
            jobs=options,
            configured=_configured(call),
            listen_address=call.text("listen-address"),
            outbox=outbox,
            home=os.path.dirname(path),
        ),
    )
    with Signals(_handler(service), also=(signal.SIGHUP, signal.SIGUSR1)):
        return service.run()


def _handler(service: Service) -> Callable[[signal.Signals], None]:
    import logging
    import signal

    from pyrunner.cli.signals import SIGNAL_TEXTS, dump_threads

    def handle(number: signal.Signals) -> None:
        if number is signal.SIGHUP:
            service.reload()
        elif number is signal.SIGUSR1:
            if logging.getLogger().isEnabledFor(logging.DEBUG):
                dump_threads()
        elif number is signal.SIGQUIT:
            service.stop_gracefully(SIGNAL_TEXTS[number])
        else:
            service.stop_forcefully(SIGNAL_TEXTS[number])

    return handle


def _configured(call: Invocation) -> Callable[[Config], None]:
    """What each loaded config changes outside the service: level and format of the log, unless flags set them."""
    import logging

    from pyrunner.base import logs

    def apply(config: Config) -> None:
        root = call.root
        if not {"debug", "log-level"} & root.given and config.log_level in logs.LEVELS:
            logging.getLogger().setLevel(logs.LEVELS[config.log_level])
        if "log-format" not in root.given and config.log_format in logs.FORMATS:
            _set_format(config.log_format)

    return apply


def _set_format(name: str) -> None:
    import logging

    from pyrunner.base import logs

    before = logging.getLogger().level
    kept = [handler for handler in logging.getLogger().handlers if not _is_stream(handler)]
    logs.setup("info", name)
    logging.getLogger().handlers.extend(kept)
    logging.getLogger().setLevel(before)


def _is_stream(handler: object) -> bool:
    import logging

    return type(handler) is logging.StreamHandler


def _add_syslog(service: str) -> None:
    """Also log to the system logger, from level info up.

    Raises:
        PyrunnerError: there is none.
    """
    import logging
    import socket
    from logging.handlers import SysLogHandler

    from pyrunner.base.errors import PyrunnerError
    from pyrunner.base.logs import RunnerFormatter

    address = "/dev/log"
    try:
        # the handler itself would silently do without
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
        handler = SysLogHandler(address=address, facility=SysLogHandler.LOG_DAEMON)
    except OSError as error:
        raise PyrunnerError(f"--syslog: cannot reach the system logger at {address}: {error.strerror}") from error
    handler.ident = f"{service}[{os.getpid()}]: "
    handler.setLevel(logging.INFO)
    handler.setFormatter(RunnerFormatter(color=False))
    logging.getLogger().addHandler(handler)


COMMAND = Command(
    "run",
    "Run the multi-runner service",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag("listen-address", help="address of the metrics server", env=["LISTEN_ADDRESS"], metavar="HOST:PORT"),
        Flag("service", help="name of the service, in the system log", default="gitlab-runner", aliases=["n"]),
        Flag("working-directory", help="go there first", aliases=["d"], metavar="DIR", complete="dir"),
        Flag("user", help="OS user that runs the scripts of shell jobs", aliases=["u"]),
        Flag("syslog", "bool", "also log to the system logger", env=["LOG_SYSLOG"]),
    ],
    description="""
        Takes jobs for all [[runners]] of the config file and runs them, until it is told to stop.

        SIGQUIT waits for the running jobs; SIGTERM and SIGINT abort them and wait for shutdown_timeout at most; a
        second one leaves at once. SIGHUP, or a change of the file, loads the config again.
    """,
    examples=[
        ("run", "take jobs as the default config file says"),
        ("run --config ./config.toml", "use another config file"),
        ("--log-level debug run", "say more"),
    ],
)
