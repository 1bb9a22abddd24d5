"""Keep-alive connections of one client, and breaking one off from another thread."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.api.urls import Target

    Route = tuple[str, str, int, str]


def route_of(target: Target, proxy: Target | None) -> Route:
    """What two requests must share to use the same connection."""
    return (*target.origin, proxy.address if proxy else "")


class Connection:
    """One connection: used by one thread at a time, except for `abort`."""

    __slots__ = ("_aborted", "idle_since", "reused", "route", "sock")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.sock: socket.socket | None = None
        #: Whether it served a request before: only then may the server have closed it in the meantime.
        self.reused = False
        self.idle_since = 0.0
        self._aborted = False

    def watch(self, sock: socket.socket) -> None:
        """Remember the socket that is about to block."""
        self.sock = sock
        if self._aborted:
            self.abort()

    def abort(self) -> None:
        """Make whatever blocks on the connection return at once. Any thread; blocks for nothing."""
        self._aborted = True
        sock = self.sock
        if sock is None:
            return
        with contextlib.suppress(OSError):
            # not SSLSocket.shutdown: it turns the socket back into a plain one first, and a thread that is just
            # about to send would send in the clear
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close for good."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.close()

    def __del__(self) -> None:
        # a client that nobody holds any more lets go of its idle connections
        self.close()

    def readable(self) -> bool:
        """Whether something waits to be read, the end of the stream included."""
        if self.sock is None or self.sock.fileno() < 0:
            return True
        poller = select.poll()
        poller.register(self.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(poller.poll(0))


class Pool:
    """Idle connections, most recently used first.

    Args:
        max_age: seconds after which all idle connections are dropped, so that a moved server is noticed; 0 = never.
    """

    def __init__(self, *, max_age: float, idle_timeout: float = 90.0, max_idle: int = 100) -> None:
        self._max_age = max_age
        self._idle_timeout = idle_timeout
        self._max_idle = max_idle
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._born = time.monotonic()

    def take(self, route: Route) -> Connection | None:
        """An idle connection that is still open as far as can be seen, or None."""
        while (connection := self._pop(route)) is not None:
            # an idle server has nothing to say: what can be read now is the end of the connection
            if not connection.readable():
                return connection
            connection.close()
        return None

    def _pop(self, route: Route) -> Connection | None:
        now = time.monotonic()
        with self._lock:
            dropped = self._expired(now)
            found = next((one for one in reversed(self._idle) if one.route == route), None)
            if found is not None:
                self._idle.remove(found)
        for connection in dropped:
            connection.close()
        return found

    def _expired(self, now: float) -> list[Connection]:
        if self._max_age > 0 and now - self._born > self._max_age:
            self._born = now
            dropped, self._idle = self._idle, []
            return dropped
        oldest = now - self._idle_timeout
        dropped = [one for one in self._idle if one.idle_since < oldest]
        if dropped:
            self._idle = [one for one in self._idle if one.idle_since >= oldest]
        return dropped

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end."""
        connection.reused = True
        connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle.pop(0) if len(self._idle) > self._max_idle else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        """Close all idle connections; the pool can be used again afterwards."""
        with self._lock:
            dropped, self._idle = self._idle, []
            self._born = time.monotonic()
        for connection in dropped:
            connection.close()
