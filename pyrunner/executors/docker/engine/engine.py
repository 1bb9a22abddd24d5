"""What the executor asks of an engine, typed. Paths and field names are those of the Engine API."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing

from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.containers import ContainerCalls
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.engine.images import ImageCalls
from pyrunner.executors.docker.engine.records import EngineFacts
from pyrunner.executors.docker.engine.stores import StoreCalls
from pyrunner.executors.docker.engine.transport import NEWEST_API, Transport


class Engine(ContainerCalls, ImageCalls, StoreCalls):
    """One engine; every instance has its own connections and belongs to one thread. All methods raise `EngineError`."""

    def __init__(self, address: EngineAddress, facts: EngineFacts | None = None) -> None:
        self.address = address
        self._http = Transport(address)
        self.facts = facts or self._negotiate()
        self._http.version = "{}.{}".format(*self.facts.api)

    def sibling(self) -> Engine:
        """The same engine for another thread; to be closed by it."""
        return Engine(self.address, self.facts)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._http.close()

    def _negotiate(self) -> EngineFacts:
        told = self._http.call("get", "/version")
        api = _api(told["ApiVersion"])
        return EngineFacts(
            api=min(api, NEWEST_API),
            version=told.get("Version", ""),
            os=told.get("Os", ""),
            arch=told.get("Arch", ""),
            kernel=told.get("KernelVersion", ""),
        )


def connect(address: EngineAddress) -> Engine:
    """The engine there.

    Raises:
        EngineError: it cannot be reached, or runs containers of another kind.
    """
    engine = Engine(address)
    if engine.facts.os not in ("linux", "windows", "freebsd"):
        engine.close()
        raise EngineError(f'the engine runs containers for "{engine.facts.os}", expected linux, windows or freebsd')
    return engine


def opened(address: EngineAddress) -> AbstractContextManager[Engine]:
    """`connect` for a ``with`` block."""
    return closing(connect(address))


def _api(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)
