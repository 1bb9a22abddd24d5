"""What is under way in this process: jobs, reserved slots, health. One lock guards all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyrunner.job.cancel import JobCancel
from pyrunner.manager.entry import Entry
from pyrunner.manager.health import Health, HealthBook
from pyrunner.manager.slots import Numbers, Slots


class Ledger:
    """Safe from any thread; nothing here blocks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._slots = Slots()
        self._health = HealthBook()
        self._jobs: set[JobCancel] = set()
        self._turned_away: set[str] = set()
        self._signal = ""
        self._killed = False
        self._clock = clock

    @property
    def builds(self) -> int:
        """How many jobs are running."""
        return len(self._jobs)

    def acquire_build(self, entry: Entry) -> bool:
        """Reserve a job of the runner; when there is none free, `release_build` will say that one was wanted."""
        token = entry.config.token
        with self._lock:
            if self._slots.acquire_build(token, entry.config.limit):
                return True
            self._turned_away.add(token)
            return False

    def release_build(self, entry: Entry) -> bool:
        """Give the job back; whether another one was wanted meanwhile."""
        token = entry.config.token
        with self._lock:
            self._slots.release_build(token)
            wanted = token in self._turned_away
            self._turned_away.discard(token)
            return wanted

    def acquire_request(self, entry: Entry) -> bool:
        """Reserve a request of the runner."""
        configured = entry.config.effective_request_concurrency
        with self._lock:
            return self._slots.acquire_request(entry.config.token, configured, adaptive=entry.adaptive)

    def release_request(self, entry: Entry, *, received: bool, retried: bool) -> None:
        """Give the request back."""
        configured = entry.config.effective_request_concurrency
        with self._lock:
            self._slots.release_request(entry.config.token, configured, received=received, retried=retried)

    def check_health(self, entry: Entry) -> Health:
        """Whether the runner may be polled now."""
        config = entry.config
        with self._lock:
            return self._health.check(
                entry.unique_id,
                config.effective_unhealthy_requests_limit,
                config.effective_unhealthy_interval,
                self._clock(),
            )

    def record_health(self, entry: Entry, *, healthy: bool) -> bool:
        """Take in the result of a request; whether the runner is disabled now."""
        limit = entry.config.effective_unhealthy_requests_limit
        with self._lock:
            return self._health.record(entry.unique_id, limit, self._clock(), healthy=healthy)

    @contextmanager
    def job(self, entry: Entry, project_id: int, cancel: JobCancel) -> Iterator[Numbers]:
        """A job runs inside the ``with`` block under these numbers."""
        token = entry.config.token
        with self._lock:
            numbers = self._slots.start_job(token, project_id)
            self._jobs.add(cancel)
            signal, killed = self._signal, self._killed
        if signal:
            # taken while the process was told to stop: the stop must not miss it
            cancel.interrupt(signal)
        if killed:
            cancel.kill()
        try:
            yield numbers
        finally:
            with self._lock:
                self._jobs.discard(cancel)
                self._slots.end_job(token, project_id, numbers)
            cancel.close()

    def interrupt(self, signal: str) -> None:
        """Abort all running jobs, and those that still begin, because the process got `signal`."""
        with self._lock:
            self._signal = signal
            jobs = list(self._jobs)
        for cancel in jobs:
            cancel.interrupt(signal)

    def kill(self) -> None:
        """Kill what interrupted jobs have not ended yet: left behind, it would run on with nobody to look after it."""
        with self._lock:
            self._killed = True
            jobs = list(self._jobs)
        for cancel in jobs:
            cancel.kill()

    def reloaded(self) -> None:
        """The config is another one: forget health and learned limits."""
        with self._lock:
            self._health.clear()
            self._slots.forget_limits()
