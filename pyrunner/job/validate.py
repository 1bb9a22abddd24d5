"""What a payload asks for that cannot be done: refused before the job starts, with one clear line.

facts/runner-api.md 5.3 (``executor_opts``) and 5.8 (``run``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrunner.api.wire import Image, JobResponse
from pyrunner.base.errors import JobError

#: Exit code of jobs whose payload is refused.
INVALID_PAYLOAD_EXIT = 3
_IMAGE_OPTIONS = {"docker": ("platform", "user"), "kubernetes": ("user",)}


class PayloadError(JobError):
    """The payload cannot be run as it is."""

    job_exit_code = INVALID_PAYLOAD_EXIT


class UnsupportedJobError(JobError):
    """The job needs something that this version does not have."""

    reason = "runner_configuration_error"


def check_payload(job: JobResponse) -> None:
    """Refuse a malformed payload; checked before the job is committed.

    Raises:
        PayloadError: ``runner_system_failure`` with exit code 3.
    """
    images = [("image", job.image)] if job.image else []
    for kind, image in [*images, *(("service", service) for service in job.services)]:
        _check_options(kind, image)
    if job.run:
        if any(step.script for step in job.steps):
            raise PayloadError("the job has both `run` and scripts: only one of them can be executed")
        if any(variable.key == "STEPS" for variable in job.variables):
            raise PayloadError("the job has `run` and a variable STEPS: only one of them can be used")


def check_support(job: JobResponse, executor: str) -> None:
    """Refuse what is well-formed but cannot be done here.

    Raises:
        UnsupportedJobError: ``runner_configuration_error``.
    """
    if job.run:
        raise UnsupportedJobError(f'the "{executor}" executor cannot run CI steps (`run`) in this version')


def _check_options(kind: str, image: Image) -> None:
    _check_keys(kind, image.executor_opts, tuple(_IMAGE_OPTIONS), "executor_opts")
    for name, known in _IMAGE_OPTIONS.items():
        options = image.executor_opts.get(name)
        if options is None:
            continue
        if not isinstance(options, dict):
            raise PayloadError(f'Unsupported "{kind}" options for "{name} executor"; expected an object')
        _check_keys(kind, options, known, f"{name} executor")


def _check_keys(kind: str, options: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise PayloadError(
            f'Unsupported "{kind}" options [{" ".join(unknown)}] for "{where}"; '
            f"supported options are [{' '.join(known)}]"
        )
