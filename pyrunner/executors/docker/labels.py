"""Labels of everything that a job creates: the ledger by which a later process finds it (facts/executors.md 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyrunner.base.durations import format_duration

PREFIX = "com.gitlab.gitlab-runner."
MANAGED = f"{PREFIX}managed"
SYSTEM_ID = f"{PREFIX}runner.system_id"
JOB_ID = f"{PREFIX}job.id"
TYPE = f"{PREFIX}type"
REUSABLE = f"{PREFIX}reusable"
JOB_TIMEOUT = f"{PREFIX}job.timeout"
DESTINATION = f"{PREFIX}destination"
#: Without the prefix: whose health a container checks.
WAIT_FOR = "wait"
#: Ours alone: the process that made the object, and its try at the job (`owner`).
OWNER = "pyrunner.owner"
RUN = "pyrunner.run"


class ObjectType(StrEnum):
    """Value of the label ``type``."""

    BUILD = "build"
    HELPER = "predefined"
    SERVICE = "service"
    WAIT = "wait"
    CACHE_INIT = "cache-init"
    CACHE = "cache"


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """What the labels tell of a job."""

    job_id: int
    job_url: str
    sha: str
    before_sha: str
    ref: str
    timeout: float
    project_id: int
    concurrent_id: int
    concurrent_project_id: int
    pipeline_id: str
    short_token: str
    system_id: str
    #: `owner.Owner` as text, and a name for this try at the job.
    owner: str = ""
    run: str = ""


class Labels:
    """Makes the labels of a job's objects; `extra` are those of ``container_labels``, already expanded."""

    def __init__(self, facts: JobFacts, extra: Mapping[str, str] | None = None) -> None:
        self._facts = facts
        self._extra = dict(extra or {})

    def of_object(self, own: Mapping[str, str] | None = None) -> dict[str, str]:
        """For volumes and networks; keys of `own` get the prefix."""
        facts = self._facts
        values = {
            "job.id": str(facts.job_id),
            "job.url": facts.job_url,
            "job.sha": facts.sha,
            "job.before_sha": facts.before_sha,
            "job.ref": facts.ref,
            "job.timeout": format_duration(facts.timeout),
            "project.id": str(facts.project_id),
            "project.runner_id": str(facts.concurrent_project_id),
            "pipeline.id": facts.pipeline_id,
            "runner.id": facts.short_token,
            "runner.local_id": str(facts.concurrent_id),
            "runner.system_id": facts.system_id,
            "managed": "true",
            **(own or {}),
        }
        ours = {OWNER: facts.owner, RUN: facts.run} if facts.owner else {}
        return {**ours, **{f"{PREFIX}{key}": value for key, value in values.items()}}

    def of_container(self, kind: ObjectType, own: Mapping[str, str] | None = None) -> dict[str, str]:
        """For containers: with ``type`` and the labels of the config."""
        extra = self._extra if kind in (ObjectType.BUILD, ObjectType.HELPER, ObjectType.SERVICE) else {}
        prefixed = extra if kind is ObjectType.SERVICE else {}
        return {**_foreign(extra), **self.of_object({**prefixed, "type": kind.value, **(own or {})})}


def _foreign(extra: Mapping[str, str]) -> dict[str, str]:
    """Without those by which we find what is ours."""
    return {key: value for key, value in extra.items() if key not in (OWNER, RUN)}
