"""What only the server knows about a job goes into its payload: token, dependencies' archives, the time limit."""

from __future__ import annotations

from typing import Any

import msgspec

from pyrunner.api.wire import ArtifactsFile, Dependency, JobResponse
from pyrunner.server.jobs import JobBook
from pyrunner.server.raw_job import RawJob
from pyrunner.server.tokens import new_job_token


def complete(job: JobResponse, book: JobBook, maximum_timeout: int) -> None:
    """Fill in a missing token, token and file of dependencies that have an archive, and the runner's time limit.

    `maximum_timeout` is in seconds; 0 is no limit.
    """
    if isinstance(job, RawJob):
        _complete_raw(job, book, maximum_timeout)
        return
    job.token = job.token or new_job_token()
    if maximum_timeout > 0 and not 0 < job.runner_info.timeout <= maximum_timeout:
        job.runner_info = msgspec.structs.replace(job.runner_info, timeout=maximum_timeout)
    for dependency in job.dependencies:
        known = _archive(book, dependency.id)
        if known is not None:
            dependency.token = dependency.token or known.token
            if not dependency.artifacts_file.filename:
                dependency.artifacts_file = known.artifacts_file


def _complete_raw(job: RawJob, book: JobBook, maximum_timeout: int) -> None:
    """The same for a payload as JSON; one that is no such thing is not touched, the runner shall see it."""
    try:
        content = msgspec.json.decode(job.body)
    except msgspec.DecodeError:
        return
    if not isinstance(content, dict):
        return
    changed = _limit(content, maximum_timeout)
    dependencies = content.get("dependencies")
    for dependency in dependencies if isinstance(dependencies, list) else ():
        changed = (isinstance(dependency, dict) and _fill(dependency, book)) or changed
    if changed:
        job.body = msgspec.json.encode(content)


def _limit(content: dict[str, Any], maximum_timeout: int) -> bool:
    info = content.get("runner_info", {})
    if maximum_timeout <= 0 or not isinstance(info, dict):
        return False
    timeout = info.get("timeout", 0)
    if isinstance(timeout, int) and not 0 < timeout <= maximum_timeout:
        content["runner_info"] = {**info, "timeout": maximum_timeout}
        return True
    return False


def _fill(dependency: dict[str, Any], book: JobBook) -> bool:
    number = dependency.get("id")
    known = _archive(book, number) if isinstance(number, int) else None
    if known is None or dependency.get("artifacts_file", {}) not in ({}, None):
        return False
    dependency["token"] = dependency.get("token") or known.token
    dependency["artifacts_file"] = msgspec.to_builtins(known.artifacts_file)
    return True


def _archive(book: JobBook, job_id: int) -> Dependency | None:
    record = book.find(job_id)
    archive = record.artifacts.get("archive") if record else None
    if record is None or archive is None:
        return None
    file = ArtifactsFile(filename=archive.filename, size=archive.size)
    return Dependency(id=job_id, token=record.token, artifacts_file=file)
