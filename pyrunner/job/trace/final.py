"""The end of a job's delivery: the rest of the trace and the verdict (facts/runner-api.md 6.2, 6.4)."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from pyrunner.api.outcomes import PatchAnswer
from pyrunner.base.cancel import CancelToken
from pyrunner.job.trace.plan import DEFAULT_RETRY_LIMIT, Done, FinalPlan, Patch, Progress, Wait
from pyrunner.job.trace.sender import Delivery

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How the job ended."""

    #: ``success`` or ``failed``.
    state: str
    failure_reason: str = ""
    exit_code: int = 0


def deliver(
    delivery: Delivery,
    progress: Progress,
    verdict: Verdict,
    *,
    retry_limit: int = DEFAULT_RETRY_LIMIT,
    stop: CancelToken | None = None,
) -> bool:
    """Send the rest and the verdict; whether the server has them, or has given up on the job.

    `stop` ends it early: the process must go.
    """
    plan = FinalPlan(progress, delivery.snapshot().size, retry_limit)
    while stop is None or not stop.cancelled:
        action = plan.next()
        if isinstance(action, Done):
            if not action.delivered:
                log.error("Could not deliver the job's final state", extra={"job": delivery.job_id})
            return action.delivered
        if isinstance(action, Wait):
            _pause(action.seconds, stop)
        elif isinstance(action, Patch):
            plan.patched(action, _patch(delivery, action, stop))
        else:
            update = delivery.update(verdict.state, verdict.failure_reason, verdict.exit_code)
            plan.updated(delivery.client.update_job(delivery.job_id, update, stop))
    return False


def _patch(delivery: Delivery, action: Patch, stop: CancelToken | None) -> PatchAnswer:
    return delivery.client.patch_trace(
        delivery.job_id,
        delivery.job_token,
        delivery.read(action.start, action.length),
        action.start,
        debug_trace=delivery.debug_trace,
        cancel=stop,
    )


def _pause(seconds: float, stop: CancelToken | None) -> None:
    if stop is not None:
        stop.wait(seconds)
    else:
        threading.Event().wait(seconds)
