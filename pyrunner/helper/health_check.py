"""The work of ``health-check``: wait until a service accepts connections (facts/commands.md section 16)."""

from __future__ import annotations

import sys
import time

from pyrunner.base.errors import PyrunnerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PAUSE = 1.0
_DIAL_TIMEOUT = 10.0


class Watch:
    """Which address and ports to wait for; `all_ports` tells whether one is enough."""

    __slots__ = ("address", "all_ports", "ports")

    def __init__(self, address: str, ports: Sequence[str], *, all_ports: bool) -> None:
        self.address = address
        self.ports = list(ports)
        self.all_ports = all_ports


def what_to_watch(ports: Sequence[str], environment: Mapping[str, str]) -> Watch:
    """From the flags, else from variables in the style of container links (``*_TCP_ADDR``, ``*_TCP_PORT``).

    Raises:
        PyrunnerError: neither says anything.
    """
    if ports:
        return Watch("localhost", ports, all_ports=True)
    address, found = "", []
    for name, value in environment.items():
        if "=" in value:
            continue
        if name.endswith("_TCP_ADDR"):
            address = value
        elif name.endswith("_TCP_PORT"):
            found.append(value)
    if not address or not found:
        raise PyrunnerError("No HOST or PORT found")
    return Watch(address, found, all_ports=False)


def wait_for(watch: Watch, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Dial once a second until the service answers; returns the exit code. The caller ends us when it has enough."""
    _say(f"waiting for TCP connection to {watch.address} on [{' '.join(watch.ports)}]...")
    waiting = list(watch.ports)
    while True:
        for port in list(waiting):
            _say(f"dialing {watch.address}:{port}...")
            if not _accepts(watch.address, port):
                continue
            waiting.remove(port)
            if not waiting or not watch.all_ports:
                _say(f"dial succeeded on {watch.address}:{port}. Exiting...")
                return 0
        sleep(_PAUSE)


def _accepts(address: str, port: str) -> bool:
    import socket

    try:
        with socket.create_connection((address, int(port)), timeout=_DIAL_TIMEOUT):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
