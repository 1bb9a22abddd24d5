"""The end of a job's delivery: the rest of the trace and the verdict (facts/runner-api.md 6.2, 6.4)."""

from __future__ import annotations

import logging
import threading

from pyrunner.api.outcomes import PatchAnswer
from pyrunner.base.cancel import CancelToken
from pyrunner.base.kill_point import kill_point
from pyrunner.job.trace.plan import Done, FinalPlan, Patch, Wait
from pyrunner.job.trace.protocol import Kept, Verdict
from pyrunner.job.trace.sender import Delivery

log = logging.getLogger(__name__)


class Ending:
    """One job's end on its way: carries out what its plan decides, up to the next pause. One thread at a time."""

    def __init__(self, verdict: Verdict, plan: FinalPlan) -> None:
        self.verdict = verdict
        self.plan = plan
        #: HTTP status of the last answer, or one of `pyrunner.api.outcomes`.
        self.status = 0

    def step(self, delivery: Delivery, cancel: CancelToken | None) -> Wait | Done:
        """Send until there is something to wait for or nothing left to send; `cancel` ends a request under way."""
        while cancel is None or not cancel.cancelled:
            action = self.plan.next()
            if isinstance(action, (Wait, Done)):
                return action
            if isinstance(action, Patch):
                patched = _patch(delivery, action, cancel)
                self.status = patched.status
                self.plan.patched(action, patched)
            else:
                kill_point("outbox.log-sent")
                verdict = self.verdict
                update = delivery.update(verdict.state, verdict.failure_reason, verdict.exit_code)
                updated = delivery.client.update_job(delivery.job_id, update, cancel)
                kill_point("outbox.verdict-sent")
                self.status = updated.status
                self.plan.updated(updated)
        return Done(delivered=False)


def deliver(ending: Ending, delivery: Delivery, kept: Kept | None, stop: CancelToken | None = None) -> bool:
    """Send the rest and the verdict while the job holds its slot; whether the server has them or has given up on it.

    `stop` ends it early: the process must go. What is `kept` then, or when all tries have failed, is left to whoever
    keeps it.
    """
    leaving = kept.leaving if kept is not None else stop
    result = ending.step(delivery, stop)
    while isinstance(result, Wait):
        if kept is not None and ending.plan.failures == 1:
            kept.sync()
        result = Done(delivered=False) if _pause(result.seconds, leaving) else ending.step(delivery, stop)
    if not result.delivered:
        fields = {"action": "verdict_undelivered", "job": delivery.job_id, "kept": kept is not None}
        log.error("Could not deliver the job's final state", extra=fields)
    return result.delivered


def _patch(delivery: Delivery, action: Patch, stop: CancelToken | None) -> PatchAnswer:
    return delivery.client.patch_trace(
        delivery.job_id,
        delivery.job_token,
        delivery.read(action.start, action.length),
        action.start,
        debug_trace=delivery.debug_trace,
        cancel=stop,
    )


def _pause(seconds: float, leaving: CancelToken | None) -> bool:
    """Wait; whether the process is about to go."""
    if leaving is not None:
        return leaving.wait(seconds)
    return threading.Event().wait(seconds)
