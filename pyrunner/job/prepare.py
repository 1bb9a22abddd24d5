"""The beginning of a job: header lines and the executor's preparation (facts/job-lifecycle.md 3.1 and 5.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pyrunner.api.wire import JobResponse, PolicyOptions
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobError
from pyrunner.base.version import CLIENT_NAME, GITLAB_RUNNER_VERSION, REVISION
from pyrunner.config import feature_flags
from pyrunner.executors.protocol import Environment, Executor, ExecutorStage, PrepareOptions, TraceWriter

log = logging.getLogger(__name__)

ATTEMPTS = 3


def header_lines(runner_name: str, short_token: str, system_id: str, flags: Mapping[str, bool]) -> list[str]:
    """The lines that every log starts with."""
    lines = [
        f"Running with {CLIENT_NAME} {GITLAB_RUNNER_VERSION} ({REVISION})",
        f"  on {runner_name} {short_token}, system ID: {system_id}",
    ]
    changed = [
        f"{name}:{'true' if value else 'false'}"
        for name, value in sorted(flags.items())
        if name in feature_flags.FEATURE_FLAGS and value != feature_flags.FEATURE_FLAGS[name].default
    ]
    return [*lines, f"  feature flags: {', '.join(changed)}"] if changed else lines


def log_images(job: JobResponse, expand: Callable[[str], str]) -> None:
    """Name the job's images in the log of the runner (``FF_LOG_IMAGES_CONFIGURED_FOR_JOB``)."""
    fields = {"action": "images", "job": job.id, "project": job.job_info.project_id}
    if job.image is not None and job.image.name:
        log.info("Image configured for job", extra={**fields, "image": expand(job.image.name)})
    for service in job.services:
        log.info("Service image configured for job", extra={**fields, "image": expand(service.name)})


def policy_lines(options: PolicyOptions) -> list[str]:
    """What a job made by a security policy says before its first step (facts/job-lifecycle.md 5.8)."""
    if not options.execution_policy_job:
        return []
    lines = [f'Job triggered by policy "{options.policy_name}".']
    allowed = options.policy_variables_override_allowed
    if allowed is None:
        return [*lines, "Variables of the policy take precedence over variables of the same name set elsewhere."]
    names = ", ".join(options.policy_variables_override_exceptions)
    verb = "may override" if allowed else "do not override"
    exceptions = f" (except {names})" if names else ""
    return [*lines, f"Variables set elsewhere {verb} those of the policy{exceptions}."]


class Preparation:
    """Tries to prepare an executor, each time a new one.

    Args:
        create: makes an executor.
        pause: seconds between two tries.
    """

    def __init__(self, create: Callable[[], Executor], pause: float) -> None:
        self._create = create
        self._pause = pause

    def run(self, options: PrepareOptions) -> tuple[Executor, Environment]:
        """A prepared executor and where it works.

        Raises:
            BaseException: the last error, or the token's cause when cancelled; nothing is left behind then.
        """
        for attempt in range(1, ATTEMPTS + 1):
            options.token.raise_if_cancelled()
            executor = self._create()
            try:
                executor.set_current_stage(ExecutorStage.PREPARE)
                return executor, executor.prepare(options)
            except BaseException as error:
                executor.cleanup()
                if not _worth_another_try(error, options.token):
                    raise
                options.trace.error(f"Preparation failed: {error}")
                if attempt == ATTEMPTS:
                    raise
                self._wait(options.trace, options.token)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait(self, trace: TraceWriter, token: CancelToken) -> None:
        trace.info(f"Will be retried in {self._pause:g}s ...")
        token.wait(self._pause)


def _worth_another_try(error: BaseException, token: CancelToken) -> bool:
    if token.cancelled:
        return False
    if isinstance(error, JobError):
        return error.retriable
    return isinstance(error, Exception)
