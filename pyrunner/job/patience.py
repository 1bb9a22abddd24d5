"""How long the end of a stopped job is waited for (facts/job-lifecycle.md 3.2)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyrunner.base.cancel import CancelToken
from pyrunner.base.supervisor import Supervisor

#: Seconds; executors wait longer for processes that ignore their signals.
PATIENCE = 300.0


class Patience:
    """Watches the job inside the ``with`` block: `give_up` is called when it was stopped and does not come to its end.

    That call is made once, in a thread that lives from the stop on; it is over when the block is left, and `gave_up`
    tells whether it was made.
    """

    def __init__(self, job: CancelToken, seconds: float, give_up: Callable[[], None]) -> None:
        self._job = job
        self._seconds = seconds
        self._give_up = give_up
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._supervisor = Supervisor("patience")
        self.gave_up = False

    def __enter__(self) -> Patience:
        self._detach = self._job.on_cancel(self._begin)
        return self

    def __exit__(self, *error: object) -> None:
        self._detach()
        with self._lock:
            self._over.set()
        self._supervisor.join()

    def _begin(self) -> None:
        with self._lock:
            if not self._over.is_set():
                self._supervisor.start("job", self._wait)

    def _wait(self) -> None:
        self._over.wait(self._seconds)
        with self._lock:
            if self._over.is_set():
                return
            self.gave_up = True
        self._give_up()
