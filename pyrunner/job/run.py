"""`run_job`: the driver that carries out what `StagePlan` decides (facts/job-lifecycle.md sections 1 and 3)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyrunner.api.wire import JobResponse
from pyrunner.base.cancel import CancelToken
from pyrunner.base.durations import format_duration
from pyrunner.base.errors import JobError, JobTimeout
from pyrunner.executors.protocol import Executor, ExecutorStage, PrepareOptions
from pyrunner.job.cancel import JobCancel
from pyrunner.job.context import JobContext, JobSetting, PreparedJob, job_context, job_place, prepared_job
from pyrunner.job.outcome import Outcome, outcome_of
from pyrunner.job.patience import Patience
from pyrunner.job.prepare import Preparation, header_lines, log_images, policy_lines
from pyrunner.job.stage_runner import Section, StageRunner
from pyrunner.job.stages import (
    Action,
    Finish,
    Pause,
    Run,
    Scope,
    SetStatus,
    StageEnd,
    StagePlan,
    Warn,
)
from pyrunner.job.trace import JobTrace
from pyrunner.job.validate import check_support
from pyrunner.job.variables import masked_values
from pyrunner.shells.protocol import Stage

log = logging.getLogger(__name__)

RESOLVE_SECRETS = "resolve_secrets"
PREPARE_EXECUTOR = "prepare_executor"


def run_job(
    job: JobResponse,
    setting: JobSetting,
    trace: JobTrace,
    cancel: JobCancel,
    context: JobContext | None = None,
    report: Callable[[Outcome], object] = lambda outcome: None,
) -> Outcome:
    """Run an accepted job to its end; the last line is in the trace then.

    Never raises: every error is an outcome. `context` saves resolving it again. `report` is called once, with the
    outcome that is returned, as soon as there is one: earlier than the return when the job was stopped but what runs it
    does not end, and from another thread then.
    """
    given_up: list[Outcome] = []

    def give_up() -> None:
        trace.runner.warning("Timed out waiting for the build to finish")
        given_up.append(_conclude(job, trace, cancel.token.cause))
        report(given_up[0])

    with Patience(cancel.token, setting.patience, give_up):
        error = _error_of(context or job_context(job, setting), trace, cancel)
    if given_up:
        return given_up[0]
    outcome = _conclude(job, trace, error)
    report(outcome)
    return outcome


def _error_of(context: JobContext, trace: JobTrace, cancel: JobCancel) -> BaseException | None:
    try:
        _JobRun(context, trace, cancel).execute()
    except (JobError, OSError) as failure:
        return failure
    except Exception as failure:
        log.exception("Job failed with an internal error", extra={"action": "job_crashed", "job": context.job.id})
        return failure
    return None


def _conclude(job: JobResponse, trace: JobTrace, error: BaseException | None) -> Outcome:
    outcome = outcome_of(error, job.features.failure_reasons)
    (trace.runner.info if outcome.succeeded else trace.runner.error)(outcome.line)
    return outcome


class _JobRun:
    """One job on its way; used once, by one thread."""

    def __init__(self, context: JobContext, trace: JobTrace, cancel: JobCancel) -> None:
        self._context = context
        self._trace = trace
        self._cancel = cancel
        self._tokens: dict[Scope, CancelToken] = {}
        self._current: CancelToken = cancel.token

    def execute(self) -> None:
        """Run all stages.

        Raises:
            BaseException: what the job failed with.
        """
        self._say_hello()
        if self._context.refusal is not None:
            raise self._context.refusal
        check_support(self._context.job, self._context.setting.config.executor)
        self._resolve_secrets()
        if self._context.flags["FF_LOG_IMAGES_CONFIGURED_FOR_JOB"]:
            log_images(self._context.job, self._context.variables.expand)
        self._cancel.start_clock(self._context.timeout)
        try:
            self._warn()
            self._with_executor()
        finally:
            for token in self._tokens.values():
                token.close()

    def _say_hello(self) -> None:
        setting = self._context.setting
        short = self._context.sources.short_token
        for line in header_lines(setting.config.name, short, setting.system_id, self._context.flags):
            self._trace.runner.plain(line)

    def _warn(self) -> None:
        if self._context.warnings:
            self._trace.runner.warning("\n".join(self._context.warnings))
        for text in self._context.settings.timeout_warnings:
            self._trace.runner.warning(text)
        for text in self._context.settings.log_warnings:
            log.warning(text, extra={"action": "limit_ignored", "job": self._context.job.id})

    def _resolve_secrets(self) -> None:
        """Not under the job's timeout. No value can be printed before it is masked."""
        secrets = self._context.job.secrets
        if not secrets:
            return
        # the sources of secrets are loaded by the jobs that have some
        from pyrunner.secrets.resolve import resolve_secrets

        with Section(self._trace, RESOLVE_SECRETS, "Resolving secrets"):
            found = resolve_secrets(
                secrets,
                self._context.variables,
                self._context.flags,
                self._cancel.token,
                self._trace.runner,
                attempts=self._context.settings.attempts.resolve_secrets,
            )
        self._trace.add_masks(masked_values(found))
        self._context = self._context.with_secrets(found)

    def _with_executor(self) -> None:
        executor, prepared = self._prepare()
        error: BaseException | None = None
        try:
            executor.set_current_stage(ExecutorStage.RUN)
            error = self._run_stages(executor, prepared)
        except BaseException as failure:
            error = failure
            raise
        finally:
            executor.finish(error)
            executor.set_current_stage(ExecutorStage.CLEANUP)
            executor.cleanup()
        if error is not None:
            raise error

    def _prepare(self) -> tuple[Executor, PreparedJob]:
        setting = self._context.setting
        name = setting.config.executor
        with Section(self._trace, PREPARE_EXECUTOR, f'Preparing the "{name}" executor'):
            options = PrepareOptions(
                config=setting.config,
                job=self._context.job,
                variables=self._context.variables,
                trace=self._trace.runner,
                token=self._token(Scope.PREPARE),
                concurrent_id=setting.concurrent_id,
                concurrent_project_id=setting.concurrent_project_id,
                user=setting.user,
                data=setting.data,
                state_dir=setting.state_dir,
                system_id=setting.system_id,
                service_trace=self._trace.service_stream,
                locate=lambda environment: job_place(self._context, environment),
            )
            executor, environment = Preparation(setting.provider.create, setting.prepare_pause).run(options)
            try:
                prepared = prepared_job(self._context, environment, executor.shell())
            except BaseException:
                executor.cleanup()
                raise
        self._trace.add_masks(masked_values(prepared.script.variables))
        return executor, prepared

    def _run_stages(self, executor: Executor, prepared: PreparedJob) -> BaseException | None:
        settings = self._context.settings
        plan = StagePlan(
            [step.name for step in self._context.job.steps],
            attempts=settings.attempts,
            exponential_backoff=self._context.flags.get("FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY", True),
            after_script_ignore_errors=settings.after_script_ignore_errors,
        )
        stages = StageRunner(executor, prepared, self._trace)
        actions = plan.start()
        while True:
            last = self._carry_out(actions, stages)
            if isinstance(last, Finish):
                self._cancel.end_steps()
                return last.error
            assert isinstance(last, Run)  # noqa: S101 - StagePlan's promise
            actions = plan.handle(self._run_stage(last, stages))

    def _carry_out(self, actions: list[Action], stages: StageRunner) -> Action:
        for action in actions:
            if isinstance(action, Warn):
                self._trace.runner.warning(action.text)
            elif isinstance(action, Pause):
                self._current.wait(action.seconds)
            elif isinstance(action, SetStatus):
                stages.set_status(action.status)
        return actions[-1]

    def _run_stage(self, run: Run, stages: StageRunner) -> StageEnd:
        if run.scope is not Scope.SCRIPT and Scope.SCRIPT in self._tokens:
            self._cancel.end_steps()
        self._current = token = self._token(run.scope)
        error = token.cause
        if error is None:
            try:
                stages.run(run.stage, token)
            except Exception as failure:  # noqa: BLE001 - every failure of a stage is the plan's to judge
                if not isinstance(failure, (JobError, OSError)):
                    log.exception("Stage failed unexpectedly", extra={"action": "stage_crashed"})
                error = failure
        if error is not None and run.stage == Stage.CLEANUP_FILE_VARIABLES:
            log.warning("Cleaning up after the job failed", extra={"action": "cleanup_failed", "error": str(error)})
        return StageEnd(stage=run.stage, error=error, job_over=self._cancel.token.cause)

    def _token(self, scope: Scope) -> CancelToken:
        if scope is Scope.JOB:
            return self._cancel.token
        token = self._tokens.get(scope)
        if token is None:
            token = self._tokens[scope] = self._new_token(scope)
        return token

    def _new_token(self, scope: Scope) -> CancelToken:
        timeouts = self._context.settings.timeouts
        if scope is Scope.SCRIPT:
            for line in policy_lines(self._context.job.policy_options):
                self._trace.runner.info(line)
            return self._cancel.begin_steps(timeouts.script)
        if scope is Scope.AFTER_SCRIPT:
            return self._cancel.token.child(timeouts.after_script, JobTimeout("context deadline exceeded"))
        name, limit = ("prepare", timeouts.prepare) if scope is Scope.PREPARE else ("get sources", timeouts.get_sources)
        text = f"{name} timeout: exceeded timeout of {format_duration(limit or 0)}"
        return self._cancel.token.child(limit, JobTimeout(text))
