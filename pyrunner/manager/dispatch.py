"""Hand-over of runners to worker threads: whoever is idle takes the runner whose turn it is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Runner = TypeVar("Runner")


class Dispatch(Generic[Runner]):
    """A queue in which each runner stands at most once, and the number of workers that it needs.

    Workers are started only when a runner waits and none is idle, up to a limit that may change. GitLab Runner offers
    a runner over an unbuffered channel, so that a runner whose offer finds every worker busy waits for the next
    interval; here it keeps its place and is taken as soon as a worker is free.

    Args:
        start_worker: starts a thread that calls `take` until that gives None.
    """

    def __init__(self, start_worker: Callable[[], object], limit: int) -> None:
        self._start_worker = start_worker
        self._wake = threading.Condition()
        self._waiting: OrderedDict[Hashable, Runner] = OrderedDict()
        self._limit = limit
        self._workers = 0
        self._idle = 0
        self._closed = False

    def offer(self, key: Hashable, runner: Runner) -> None:
        """Put `runner` at the end of the queue unless it stands there already."""
        with self._wake:
            if self._closed:
                return
            self._waiting[key] = runner
            start = self._idle < len(self._waiting) and self._workers < self._limit
            if start:
                self._workers += 1
            elif self._idle:
                self._wake.notify()
        if start:
            self._start_worker()

    def take(self) -> Runner | None:
        """The next runner; blocks. None tells the worker to end."""
        with self._wake:
            self._idle += 1
            try:
                while not self._closed and self._workers <= self._limit:
                    if self._waiting:
                        return self._waiting.popitem(last=False)[1]
                    self._wake.wait()
                self._workers -= 1
                return None
            finally:
                self._idle -= 1

    def resize(self, limit: int) -> None:
        """Allow `limit` workers; surplus ones end when they are idle."""
        with self._wake:
            self._limit = limit
            self._waiting.clear()
            self._wake.notify_all()

    def close(self) -> None:
        """Hand over nothing more; idle workers end, busy ones after what they do."""
        with self._wake:
            self._closed = True
            self._waiting.clear()
            self._wake.notify_all()

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return self._workers
