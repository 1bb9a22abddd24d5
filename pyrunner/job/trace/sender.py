"""Carries out what the plans decide: patches and updates to the server (facts/runner-api.md 6.2 to 6.5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyrunner.api.wire import Info, JobUpdate, TraceOutput
from pyrunner.base.cancel import CancelToken
from pyrunner.job.trace.plan import LivePlan, Patch, Progress, Signal, Update, Wait
from pyrunner.job.trace.protocol import TraceClient


@dataclass(frozen=True)
class Snapshot:
    """Size and checksum of the trace at one moment."""

    size: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One job's way to the server: everything that goes into every request."""

    client: TraceClient
    job_id: int
    job_token: str
    info: Info | None
    debug_trace: bool
    #: Bytes of the spooled trace: start, length.
    read: Callable[[int, int], bytes]
    snapshot: Callable[[], Snapshot]

    def update(self, state: str, failure_reason: str = "", exit_code: int = 0) -> JobUpdate:
        """The body of a job update with the trace as it is now."""
        now = self.snapshot()
        return JobUpdate(
            info=self.info,
            token=self.job_token,
            state=state,
            failure_reason=failure_reason,
            checksum=now.checksum,
            output=TraceOutput(checksum=now.checksum, bytesize=now.size),
            exit_code=exit_code,
        )


class Sender:
    """The loop that keeps the server up to date while the job runs; `run` is the body of its thread."""

    def __init__(
        self, delivery: Delivery, progress: Progress, abort: Callable[[], None], cancel: Callable[[], None]
    ) -> None:
        self._delivery = delivery
        self._progress = progress
        self._hooks: dict[Signal, Callable[[], None] | None] = {Signal.ABORT: abort, Signal.CANCEL: cancel}
        self._stopped = threading.Event()
        self._token = CancelToken()

    def stop(self) -> None:
        """End the loop soon; a request on its way is left to finish."""
        self._stopped.set()

    def cut(self) -> None:
        """End the loop now, a request on its way included: the process must go."""
        self._stopped.set()
        self._token.cancel(InterruptedError("stopped"))

    def run(self) -> None:
        """Send until stopped."""
        plan = LivePlan(self._progress, time.monotonic())
        while not self._stopped.is_set():
            size = self._delivery.snapshot().size
            action = plan.next(size, time.monotonic())
            if isinstance(action, Wait):
                self._stopped.wait(action.seconds)
            else:
                self._notify(self._do(plan, action))

    def _do(self, plan: LivePlan, action: Patch | Update) -> Signal:
        delivery = self._delivery
        if isinstance(action, Update):
            update = delivery.update("running")
            return plan.updated(delivery.client.update_job(delivery.job_id, update, self._token), time.monotonic())
        answer = delivery.client.patch_trace(
            delivery.job_id,
            delivery.job_token,
            delivery.read(action.start, action.length),
            action.start,
            debug_trace=delivery.debug_trace,
            cancel=self._token,
        )
        return plan.patched(action, answer, delivery.snapshot().size, time.monotonic())

    def _notify(self, signal: Signal) -> None:
        hook = self._hooks.get(signal)
        if hook is None or self._stopped.is_set():
            return
        # Each hook works once: the job knows by then.
        self._hooks[signal] = None
        hook()
