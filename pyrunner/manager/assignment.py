"""One job from its payload to its final update: accept, run, report."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass

from pyrunner.api.chain import full_chain
from pyrunner.api.outcomes import JobAnswer
from pyrunner.api.urls import clean_url
from pyrunner.api.wire import JobResponse, JobUpdate
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobError
from pyrunner.base.kill_point import kill_point
from pyrunner.job.cancel import JobCancel
from pyrunner.job.context import PREPARE_PAUSE, JobContext, JobSetting, job_context
from pyrunner.job.opening import open_trace
from pyrunner.job.outcome import Outcome, outcome_of
from pyrunner.job.patience import PATIENCE
from pyrunner.job.run import run_job
from pyrunner.job.trace import JobTrace
from pyrunner.job.validate import PayloadError, check_payload
from pyrunner.job.variables import TlsFiles
from pyrunner.manager.acceptance import Acceptance, commit_update, decide
from pyrunner.manager.entry import Entry
from pyrunner.manager.post import Post
from pyrunner.manager.slots import Numbers

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What all jobs of this process share."""

    system_id: str = ""
    #: OS user of shell jobs.
    user: str = ""
    #: Home of stage logs that survive the process; empty = none.
    state_dir: str = ""
    #: Where traces wait; empty = the temporary directory.
    spool_dir: str = ""
    prepare_pause: float = PREPARE_PAUSE
    #: Seconds that the end of a stopped job is waited for.
    patience: float = PATIENCE
    #: Keeps verdicts and logs until the server has them; None: they end with the process.
    post: Post | None = None


class Assignment:
    """A received job on its way through this process; used once, by one thread."""

    def __init__(self, entry: Entry, answer: JobAnswer, options: JobOptions, stop: CancelToken) -> None:
        assert answer.job is not None  # noqa: S101 - the caller's promise
        self._entry = entry
        self._answer = answer
        self._options = options
        self._stop = stop
        self._job: JobResponse = answer.job

    def carry_out(self, numbers: Numbers, cancel: JobCancel, data: object) -> bool:
        """Run the job, and say whether it got so far; what goes wrong with it goes to the server."""
        begin = time.monotonic()
        context = job_context(self._job, self._setting(numbers, data)).with_full_chain(full_chain)
        try:
            trace = self._open_trace(context)
        except OSError as error:
            self._give_up(error)
            return True
        try:
            outcome = self._with_trace(context, trace, cancel)
        finally:
            trace.close()
        if outcome is None:
            return False
        self._log_end(outcome, time.monotonic() - begin)
        return True

    def _setting(self, numbers: Numbers, data: object) -> JobSetting:
        answer, options = self._answer, self._options
        assert self._entry.provider is not None  # noqa: S101 - a runner without one is never polled
        return JobSetting(
            config=self._entry.config,
            provider=self._entry.provider,
            system_id=options.system_id,
            concurrent_id=numbers.concurrent_id,
            concurrent_project_id=numbers.concurrent_project_id,
            user=options.user,
            data=data,
            correlation_id=answer.correlation_id,
            tls=TlsFiles(ca=answer.tls_chain, cert=answer.tls_certificate, key=answer.tls_key),
            state_dir=os.path.join(options.state_dir, str(self._job.id)) if options.state_dir else "",
            prepare_pause=options.prepare_pause,
            patience=options.patience,
            started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )

    def _open_trace(self, context: JobContext) -> JobTrace:
        entry, options, post = self._entry, self._options, self._options.post
        if post is None:
            return open_trace(context, entry.client, entry.info, options.spool_dir)
        spool_dir = options.spool_dir or post.directory
        return open_trace(context, entry.client, entry.info, spool_dir, post.box(entry.sender))

    def _with_trace(self, context: JobContext, trace: JobTrace, cancel: JobCancel) -> Outcome | None:
        refused = self._refusal()
        acceptance = self._accept(trace)
        if acceptance is Acceptance.DROP:
            return None
        if acceptance is Acceptance.CANCELED:
            # the reason is not mapped here, whatever the server knows (6.6)
            trace.finish("failed", "job_canceled", stop=self._stop)
            return None
        trace.start(cancel.abort, cancel.cancel)
        if refused is None:
            return run_job(
                self._job, context.setting, trace, cancel, context, lambda outcome: self._report(trace, outcome)
            )
        outcome = outcome_of(refused, self._job.features.failure_reasons)
        trace.runner.error(outcome.line)
        self._report(trace, outcome)
        return outcome

    def _report(self, trace: JobTrace, outcome: Outcome) -> None:
        kill_point("job.decided")
        trace.finish(outcome.state, outcome.sent_reason, outcome.exit_code, self._stop)

    def _refusal(self) -> JobError | None:
        if self._answer.invalid:
            return PayloadError(self._answer.invalid)
        try:
            check_payload(self._job)
        except JobError as error:
            return error
        return None

    def _accept(self, trace: JobTrace) -> Acceptance:
        update = commit_update(self._job, self._entry.info)
        answer = self._entry.client.update_job(self._job.id, update, self._stop)
        trace.heard(answer)
        return decide(answer)

    def _give_up(self, error: OSError) -> None:
        log.error(
            "Could not create the job's trace",
            extra={"action": "trace_failed", "job": self._job.id, "error": str(error)},
        )
        update = JobUpdate(
            info=self._entry.info, token=self._job.token, state="failed", failure_reason="runner_system_failure"
        )
        self._entry.client.update_job(self._job.id, update, self._stop)

    def _log_end(self, outcome: Outcome, seconds: float) -> None:
        fields: dict[str, object] = {
            **self._entry.log_fields,
            "action": "job_finished",
            "job": self._job.id,
            "project": self._job.job_info.project_id,
            "duration_s": round(seconds, 3),
        }
        if outcome.succeeded:
            log.info(outcome.line, extra=fields)
        else:
            log.warning(
                outcome.line, extra={**fields, "failure_reason": outcome.reason, "exit_code": outcome.exit_code}
            )


def job_fields(entry: Entry, job: JobResponse) -> dict[str, object]:
    """Fields of the log lines that say that a job begins or ends."""
    return {
        **entry.log_fields,
        "job": job.id,
        "project": job.job_info.project_id,
        "repo_url": clean_url(job.git_info.repo_url),
        "time_in_queue_seconds": job.job_info.time_in_queue_seconds,
    }
