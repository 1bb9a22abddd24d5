"""What a worker does with a runner: ask for a job and, when there is one, run it (facts/runner-api.md 9.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto

from pyrunner.api.outcomes import JobAnswer
from pyrunner.base.cancel import CancelToken
from pyrunner.base.durations import format_duration
from pyrunner.base.errors import PyrunnerError
from pyrunner.executors.protocol import NoCapacityError
from pyrunner.job.cancel import JobCancel
from pyrunner.manager.assignment import Assignment, JobOptions, job_fields
from pyrunner.manager.entry import Entry
from pyrunner.manager.ledger import Ledger

log = logging.getLogger(__name__)

_NOTHING = object()


class Polled(Enum):
    """What came of polling a runner."""

    #: There was a job, and it has been dealt with.
    JOB = auto()
    #: There was a job, but it was taken away before it began.
    LOST_JOB = auto()
    NOTHING = auto()
    #: The server refuses this runner, or it cannot be used at all.
    UNHEALTHY = auto()


class Poller:
    """Polls runners; safe from any number of worker threads.

    Args:
        ledger: what is under way.
        options: for the jobs.
        requests: cancelled when no job may be taken any more; ends open long polls.
        stop: cancelled when the process must go; ends final updates.
        again: offers a runner to another worker at once.
        max_builds: for log lines.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: JobOptions,
        *,
        requests: CancelToken,
        stop: CancelToken,
        again: Callable[[Entry], None],
        max_builds: Callable[[], int],
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._requests = requests
        self._stop = stop
        self._again = again
        self._max_builds = max_builds

    def poll(self, entry: Entry) -> Polled:
        """Ask for a job and run it to its end."""
        if entry.provider is None:
            log.error(
                f'Executor "{entry.config.executor}" is not known; marking Runner as unhealthy',
                extra={**entry.log_fields, "action": "unknown_executor"},
            )
            self._record(entry, healthy=False)
            return Polled.UNHEALTHY
        if not self._ledger.acquire_build(entry):
            log.debug("Failed to request job: runner limit met", extra=entry.log_fields)
            return Polled.NOTHING
        try:
            return self._request_and_run(entry)
        finally:
            if self._ledger.release_build(entry) and not entry.config.strict_check_interval:
                self._again(entry)

    def _request_and_run(self, entry: Entry) -> Polled:
        if not self._ledger.acquire_request(entry):
            log.debug("Failed to request job: runner requestConcurrency meet", extra=entry.log_fields)
            return Polled.NOTHING
        provider = entry.provider
        assert provider is not None  # noqa: S101 - `poll` has checked
        answer, data = JobAnswer(), _NOTHING
        try:
            try:
                data = provider.acquire(entry.config)
            except NoCapacityError as error:
                log.debug("Failed to request job: no free executor", extra={**entry.log_fields, "error": str(error)})
                return Polled.NOTHING
            except (PyrunnerError, OSError) as error:
                log.warning("Failed to process runner", extra={**entry.log_fields, "error": str(error)})
                return Polled.NOTHING
            answer = entry.client.request_job(entry.request, self._requests)
        finally:
            self._ledger.release_request(entry, received=answer.job is not None, retried=answer.retried)
            if answer.job is None and data is not _NOTHING:
                provider.release(entry.config, data)
        if answer.status in (201, 204) and self._options.post is not None:
            self._options.post.server_answers(entry.config.url)
        if not answer.cancelled:
            self._record(entry, healthy=answer.healthy)
        if answer.job is None:
            return Polled.NOTHING if answer.healthy else Polled.UNHEALTHY
        try:
            ran = self._run(entry, answer, data)
        finally:
            provider.release(entry.config, data)
        return Polled.JOB if ran else Polled.LOST_JOB

    def _run(self, entry: Entry, answer: JobAnswer, data: object) -> bool:
        if not entry.config.strict_check_interval:
            self._again(entry)
        job = answer.job
        assert job is not None  # noqa: S101 - the caller's promise
        cancel = JobCancel()
        fields = job_fields(entry, job)
        with self._ledger.job(entry, job.job_info.project_id, cancel) as numbers:
            self._tell("Added job to processing list", fields)
            ran = Assignment(entry, answer, self._options, self._stop).carry_out(numbers, cancel, data)
        self._tell("Removed job from processing list", fields)
        return ran

    def _tell(self, message: str, fields: dict[str, object]) -> None:
        if log.isEnabledFor(logging.INFO):
            counts = {"builds": self._ledger.builds, "max_builds": self._max_builds()}
            log.info(message, extra={**fields, **counts})

    def _record(self, entry: Entry, *, healthy: bool) -> None:
        if self._ledger.record_health(entry, healthy=healthy):
            interval = format_duration(entry.config.effective_unhealthy_interval)
            log.error(
                f'Runner "{entry.unique_id}" is unhealthy and will be disabled for {interval} seconds!',
                extra={**entry.log_fields, "action": "runner_disabled"},
            )
