"""``pyrunner coordinator serve``."""

from __future__ import annotations

import sys

from pyrunner.base.errors import UsageError
from pyrunner.cli.coordinator.client import data_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def serve(call: Invocation) -> int:
    """Serve until SIGINT, SIGTERM or SIGQUIT."""
    import threading

    from pyrunner.cli.signals import Signals
    from pyrunner.server.coordinator import Coordinator

    if not 0 <= call.number("port") <= 65535:
        raise UsageError(f'invalid value "{call.number("port")}" for flag --port: expected 0 to 65535')
    coordinator = Coordinator(data_dir_of(call), host=call.text("host"), port=call.number("port"))
    stop = threading.Event()
    try:
        with Signals(lambda number: stop.set()):
            url = coordinator.start()
            _greet(call, url, coordinator.registration_token)
            stop.wait()
    finally:
        coordinator.stop()
    return 0


def _greet(call: Invocation, url: str, registration_token: str) -> None:
    program, where = call.program, ""
    if call.text("data-dir"):
        where = f" --data-dir {call.text('data-dir')}"
    sys.stdout.write(
        f"Coordinator at {url}\n\n"
        f"Make a runner and register it here:\n"
        f"  {program} register --non-interactive --url {url} --executor shell --token "
        f'"$({program} coordinator runner create{where} --quiet)"\n'
        f"or with the registration token {registration_token}:\n"
        f"  {program} register --non-interactive --url {url} --executor shell "
        f"--registration-token {registration_token}\n"
        f"then run it and give it work:\n"
        f"  {program} run\n"
        f"  {program} coordinator submit{where} FILE\n\n"
    )
    sys.stdout.flush()
