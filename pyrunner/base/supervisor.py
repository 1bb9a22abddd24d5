"""Threads: all of them are started, named and joined here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Supervisor:
    """Owns threads: names them, joins them, and keeps the first error.

    Use as a context manager; leaving it joins every thread that was started and raises the first error. A supervisor
    never stops its threads by itself: whoever owns them cancels the token that they work under.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._error: BaseException | None = None

    def start(self, name: str, target: Callable[[], object]) -> threading.Thread:
        """Run `target` in a thread named `name`; an exception in it is logged and kept if it is the first."""
        thread = threading.Thread(target=self._guard, args=(target,), name=f"{self._name}/{name}")
        with self._lock:
            self._threads.add(thread)
        thread.start()
        return thread

    def _guard(self, target: Callable[[], object]) -> None:
        try:
            target()
        except BaseException as error:  # noqa: BLE001 - a thread's top: nothing above could see it
            log.debug("thread failed", exc_info=True, extra={"action": "thread_failed"})
            with self._lock:
                self._error = self._error or error
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    @property
    def error(self) -> BaseException | None:
        """The first error of any thread so far."""
        return self._error

    def alive(self) -> int:
        """How many threads are running."""
        with self._lock:
            return len(self._threads)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all threads, each up to `timeout` seconds; whether all ended. Raises nothing."""
        me = threading.current_thread()
        while True:
            with self._lock:
                waiting = [thread for thread in self._threads if thread is not me]
            if not waiting:
                return True
            for thread in waiting:
                thread.join(timeout)
                if thread.is_alive():
                    return False

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.join()
        if error is None and self._error is not None:
            raise self._error
