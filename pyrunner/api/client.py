"""The runner's side of the API: every call, its outcomes and its log lines (facts/runner-api.md 3, 4 and 6).

No method raises for what a server or a network does; answers are values of `pyrunner.api.outcomes`. The spacing of the
log lines is the reference runner's: with a space behind the dots for some results, without for others (6.2).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from pyrunner.api.calls import JSON, Api, Call, Observer, Result, encode
from pyrunner.api.endpoint import Endpoint
from pyrunner.api.management import Management
from pyrunner.api.outcomes import CLIENT_ERROR, JobAnswer, PatchAnswer, PatchState, UpdateAnswer, UpdateState
from pyrunner.api.payload import read_job
from pyrunner.api.retry import RetryPolicy
from pyrunner.api.urls import clean_url
from pyrunner.base.durations import format_duration

if TYPE_CHECKING:
    from pyrunner.api.wire import JobRequest, JobUpdate
    from pyrunner.base.cancel import CancelToken

__all__ = ["Endpoint", "RunnerClient"]

log = logging.getLogger(__name__)

_OVER = ("canceled", "failed")


class RunnerClient(Management):
    """Calls of one runner at one server. Safe from any thread; keeps connections alive.

    Args:
        connection_max_age: seconds after which idle connections are closed; 0 = never.
        observer: called after each answered request, in the calling thread; for metrics.
        retry: the retry layer, in other proportions for tests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connection_max_age: float = 900,
        observer: Observer | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(Api(endpoint, connection_max_age=connection_max_age, observer=observer, retry=retry))
        self._last_update = ""

    @property
    def endpoint(self) -> Endpoint:
        """Server and runner token."""
        return self._api.endpoint

    def close(self) -> None:
        """Close idle connections; requests that are under way are not touched."""
        self._api.http.close()

    def request_job(self, request: JobRequest, cancel: CancelToken | None = None) -> JobAnswer:
        """Ask for a job; blocks as long as the server holds the request (long poll), or until `cancel`.

        ``token`` and ``last_update`` of the request are filled in here.
        """
        token = request.token or self.endpoint.token
        body = msgspec.structs.replace(request, token=token, last_update=self._last_update)
        call = Call(
            method="POST",
            path="jobs/request",
            headers=JSON | {"RUNNER-TOKEN": token},
            body=encode(body),
            name="request_job",
        )
        result = self._api.make(call, cancel)
        self._last_update = result.header("X-GitLab-Last-Update") or self._last_update
        return self._job_answer(result)

    def _job_answer(self, result: Result) -> JobAnswer:
        if result.response is not None and result.status == 201:
            return self._job_received(result)
        text = "Checking for jobs... "
        healthy = result.status not in (403, CLIENT_ERROR)
        if result.status == 204:
            # constant cost: most polls end here
            if log.isEnabledFor(logging.DEBUG):
                log.debug("Checking for jobs...no content", extra=self._fields(result))
        elif not result.cancelled:
            level = logging.WARNING if healthy else logging.ERROR
            log.log(level, text + _request_failure(result.status), extra=self._failure_fields(result))
        return JobAnswer(
            healthy=healthy,
            status=result.status,
            correlation_id=result.response.correlation_id if result.response else "",
            retried=result.retried,
            cancelled=result.cancelled,
        )

    def _job_received(self, result: Result) -> JobAnswer:
        assert result.response is not None  # noqa: S101
        job, invalid = read_job(result.response)
        fields = self._fields(result)
        if job is not None:
            fields |= {"job": job.id, "repo_url": clean_url(job.git_info.repo_url)}
        if invalid:
            failure = self._failure_fields(result) | fields | {"error": invalid}
            log.warning("Checking for jobs... failed", extra=failure)
        else:
            log.info("Checking for jobs... received", extra=fields)
        files = self._api.http.tls
        certificate, key = files.pair_text()
        return JobAnswer(
            job=job,
            status=result.status,
            correlation_id=result.response.correlation_id,
            tls_chain=files.ca_text() or result.response.chain,
            tls_certificate=certificate,
            tls_key=key,
            retried=result.retried,
            invalid=invalid,
        )

    def update_job(self, job_id: int, update: JobUpdate, cancel: CancelToken | None = None) -> UpdateAnswer:
        """Tell the state of a job (6.1)."""
        fields: dict[str, object] = {"job": job_id, "checksum": "", "bytesize": 0}
        if update.output is not msgspec.UNSET:
            fields |= {"checksum": update.output.checksum, "bytesize": update.output.bytesize}
        log.info("Updating job...", extra=self.endpoint.log_fields | fields)
        call = Call(
            method="PUT",
            path=f"jobs/{job_id}",
            headers=JSON | {"JOB-TOKEN": update.token},
            body=encode(update),
            name="update_job",
        )
        result = self._api.make(call, cancel)
        state, level, text = _update_outcome(result)
        if not result.cancelled:
            extra = self._remote_fields(result, job_id)
            log.log(level, f"Submitting job to coordinator...{text}", extra=extra)
        return UpdateAnswer(
            state=state,
            cancel_requested=_job_status(result) == "canceling",
            interval=self._interval(result, job_id),
            status=result.status,
        )

    def patch_trace(
        self,
        job_id: int,
        job_token: str,
        content: bytes | memoryview,
        start: int,
        *,
        debug_trace: bool = False,
        cancel: CancelToken | None = None,
    ) -> PatchAnswer:
        """Append `content`, whose first byte is number `start` of the trace (6.4); empty content is not sent."""
        if not content:
            fields = self.endpoint.log_fields | {"job": job_id}
            log.info("Appending trace to coordinator...skipped due to empty patch", extra=fields)
            return PatchAnswer(state=PatchState.SUCCEEDED, offset=start)
        sent = f"{start}-{start + len(content) - 1}"
        call = Call(
            method="PATCH",
            path=f"jobs/{job_id}/trace?debug_trace={'true' if debug_trace else 'false'}",
            headers={"Content-Type": "text/plain", "Content-Range": sent, "JOB-TOKEN": job_token},
            body=content,
            name="patch_trace",
        )
        result = self._api.make(call, cancel)
        state, offset, level, text = _patch_outcome(result, start, len(content))
        if not result.cancelled:
            log.log(
                level,
                f"Appending trace to coordinator...{text}",
                extra=self._remote_fields(result, job_id) | {"sent-log": sent, "job-log": result.header("Range")},
            )
        return PatchAnswer(
            state=state,
            offset=offset,
            cancel_requested=_job_status(result) == "canceling",
            interval=self._interval(result, job_id),
            status=result.status,
        )

    def _remote_fields(self, result: Result, job_id: int) -> dict[str, object]:
        fields = self._fields(result) | {"job": job_id, "code": result.status, "status": result.text}
        if result.response is not None:
            fields |= {"job-status": _job_status(result), "status": result.response.status_line}
        interval = result.header("X-GitLab-Trace-Update-Interval")
        if interval.isascii() and interval.isdigit():
            fields["update-interval"] = format_duration(int(interval[:9]))
        return fields

    def _interval(self, result: Result, job_id: int) -> float | None:
        text = result.header("X-GitLab-Trace-Update-Interval").strip()
        if not text:
            return None
        try:
            seconds = int(text[:18])
        except ValueError:
            log.warning(
                "Failed to parse the X-GitLab-Trace-Update-Interval header",
                extra=self._fields(result) | {"job": job_id, "header-value": text[:80]},
            )
            return None
        return float(seconds) if seconds > 0 else None


def _job_status(result: Result) -> str:
    return result.header("Job-Status")


def _request_failure(status: int) -> str:
    known = {403: "forbidden", 503: "GitLab instance currently unavailable", CLIENT_ERROR: "client error"}
    return known.get(status, "failed")


_UPDATES = {
    200: (UpdateState.SUCCEEDED, logging.INFO, "ok"),
    202: (UpdateState.ACCEPTED, logging.INFO, "accepted, but not yet completed"),
    412: (UpdateState.TRACE_VALIDATION_FAILED, logging.INFO, "trace validation failed"),
    404: (UpdateState.NOT_FOUND, logging.WARNING, " not found"),
    CLIENT_ERROR: (UpdateState.ABORT, logging.ERROR, " client error"),
}


def _update_outcome(result: Result) -> tuple[UpdateState, int, str]:
    if _job_status(result) in _OVER or result.status == 403:
        return UpdateState.ABORT, logging.WARNING, " job failed"
    return _UPDATES.get(result.status, (UpdateState.FAILED, logging.WARNING, " failed"))


def _patch_outcome(result: Result, start: int, size: int) -> tuple[PatchState, int, int, str]:
    if _job_status(result) in _OVER or result.status == 403:
        return PatchState.ABORT, start, logging.WARNING, " job failed"
    if result.status == 202:
        return PatchState.SUCCEEDED, start + size, logging.INFO, "ok"
    if result.status == 404:
        return PatchState.NOT_FOUND, start, logging.WARNING, " not-found"
    if result.status == 416:
        return PatchState.RANGE_MISMATCH, _range_end(result), logging.WARNING, " range mismatch"
    if result.status == CLIENT_ERROR:
        return PatchState.FAILED, start, logging.ERROR, " client error"
    if result.response is None:
        return PatchState.FAILED, start, logging.ERROR, f" error {result.text}"
    return PatchState.FAILED, start, logging.WARNING, " failed"


def _range_end(result: Result) -> int:
    """The number behind the dash of ``Range: 0-<n>``: how much the server has; 0 when it does not say."""
    end = result.header("Range").rpartition("-")[2].strip()
    return int(end[:18]) if end.isascii() and end.isdigit() else 0
