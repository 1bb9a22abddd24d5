"""What waits for one server: a queue by due time, and the thread that exists while something is in it."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrunner.api.outcomes import NO_ANSWER
from pyrunner.base.supervisor import Supervisor
from pyrunner.job.trace.final import Ending
from pyrunner.job.trace.plan import LONGEST_BACKOFF, Done, Wait
from pyrunner.store.outbox import Entry

log = logging.getLogger(__name__)

#: A server that answers other requests again is tried at once, but not more often than every so many seconds.
HASTE_INTERVAL = 60.0


@dataclass(kw_only=True, eq=False)
class Parcel:
    """An entry on its way."""

    entry: Entry
    ending: Ending
    due: float = field(default_factory=time.monotonic)

    @property
    def fields(self) -> dict[str, object]:
        """Fields of log lines about it."""
        letter = self.entry.letter
        return {"job": letter.job_id, "runner": letter.sender.short_token, "runner_name": letter.sender.name}


class Lane:
    """Parcels for one server, delivered one after the other. Safe from any thread.

    Args:
        step: tries a parcel; a `Wait` puts it back, `Done` says that it is delivered, None that it is not to be tried
            again by this process.
    """

    def __init__(self, step: Callable[[Parcel], Wait | Done | None], supervisor: Supervisor) -> None:
        self._step = step
        self._supervisor = supervisor
        self._wake = threading.Condition()
        self._heap: list[tuple[float, int, Parcel]] = []
        self._numbers = itertools.count()
        self._running = False
        self._closed = False
        self._hastened = -HASTE_INTERVAL

    def add(self, parcel: Parcel) -> None:
        """Deliver `parcel` when it is due."""
        with self._wake:
            heapq.heappush(self._heap, (parcel.due, next(self._numbers), parcel))
            start = not self._running and not self._closed
            self._running = self._running or start
            self._wake.notify()
        if start:
            self._supervisor.start("lane", self._run)

    def hasten(self) -> None:
        """The server answers: what failed for want of an answer is due now."""
        now = time.monotonic()
        if not self._heap or now - self._hastened < HASTE_INTERVAL:
            return
        with self._wake:
            silenced = [parcel for _, _, parcel in self._heap if _is_silence(parcel.ending.status)]
            if not silenced:
                return
            self._hastened = now
            for parcel in silenced:
                parcel.ending.plan.hasten()
                parcel.due = now
            self._heap = [(parcel.due, number, parcel) for _, number, parcel in self._heap]
            heapq.heapify(self._heap)
            self._wake.notify()

    def close(self) -> None:
        """End the thread after the request that is under way."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def _run(self) -> None:
        while (parcel := self._next()) is not None:
            try:
                result = self._step(parcel)
            except Exception:
                log.exception("Delivery from the outbox failed", extra={**parcel.fields, "action": "outbox_crashed"})
                result = Wait(LONGEST_BACKOFF)
            if isinstance(result, Wait):
                parcel.due = time.monotonic() + result.seconds
                self.add(parcel)
            elif result is not None:
                self.hasten()

    def _next(self) -> Parcel | None:
        with self._wake:
            while self._heap and not self._closed:
                pause = self._heap[0][0] - time.monotonic()
                if pause <= 0:
                    return heapq.heappop(self._heap)[2]
                self._wake.wait(pause)
            self._running = False
            return None


def _is_silence(status: int) -> bool:
    """Whether a status speaks of a server that is down or busy rather than of one that refuses this request."""
    return status == NO_ANSWER or status == 429 or status >= 500
