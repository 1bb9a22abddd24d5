"""One thread with one event loop that serves an ASGI application on a listening socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState

log = logging.getLogger(__name__)

T = TypeVar("T")
Application = Callable[..., Any]

#: Idle keep-alive connections are closed after this many seconds; runners keep theirs for 90.
_KEEP_ALIVE = 120
#: How long running requests may go on after `stop`, in seconds.
_GRACE = 2.0


class Listener:
    """Listens as soon as it is made; clients wait in the backlog until the thread serves.

    `build` runs in the thread, inside the event loop, and returns the application: heavy imports belong there, so that
    they pass while the caller does something else. `closing` runs in the loop before connections are closed.
    """

    def __init__(self, host: str, port: int, build: Callable[[], Application], closing: Callable[[], None]) -> None:
        self._socket = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
        self.port: int = self._socket.getsockname()[1]
        self._build = build
        self._closing = closing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._stopped: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="server")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def stopped(self) -> bool:
        """Whether the thread has ended or was never started."""
        return not self._thread.is_alive()

    def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the server's thread and return its result.

        Raises:
            BaseException: what `work` raised, or what kept the server from starting.
        """
        if threading.current_thread() is self._thread:
            return work()
        self._ready.wait()
        if self._error is not None or self._loop is None:
            raise self._error or RuntimeError("the server is not running")

        async def run() -> T:
            return work()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        while True:
            try:
                return future.result(timeout=1)
            except TimeoutError:
                # the loop may end between the look at it and the call
                if self.stopped:
                    return work()

    def post(self, work: Callable[[], object]) -> None:
        """Run `work` on the server's thread soon; nothing happens once the server has stopped."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """Stop serving and wait for the thread; may be called again."""
        if not self._thread.is_alive():
            self._socket.close()
            return
        self._ready.wait()
        if self._stopped is not None:
            self.post(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - a thread's top: `call` and `stop` hand it on
            log.exception("Server failed", extra={"action": "server_failed"})
            self._error = error
        finally:
            self._loop = None
            self._socket.close()
            self._ready.set()

    async def _serve(self) -> None:
        from uvicorn.config import Config
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
        from uvicorn.server import ServerState

        loop = asyncio.get_running_loop()
        self._loop, self._stopped = loop, asyncio.Event()
        config = Config(
            self._build(),
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
        )
        config.load()
        state = ServerState()
        server = await loop.create_server(lambda: HttpToolsProtocol(config, state, {}, _loop=loop), sock=self._socket)
        # uvicorn's own Server ticks ten times a second and takes 100 ms to stop; its protocol needs neither
        self._ready.set()
        try:
            await self._stopped.wait()
        finally:
            server.close()
            self._closing()
            await _drain(state)


async def _drain(state: ServerState) -> None:
    """Let running requests end, then cut what is left."""
    deadline = asyncio.get_running_loop().time() + _GRACE
    connections: set[HttpToolsProtocol] = state.connections  # type: ignore[assignment]
    for connection in list(connections):
        connection.shutdown()
    while (connections or state.tasks) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)
    for connection in list(connections):
        connection.transport.abort()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not built for this platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
