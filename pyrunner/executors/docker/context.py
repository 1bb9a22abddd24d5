"""What all rooms of the docker executor know of the job; made once, never changed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyrunner.api.variables import Variables, expand
from pyrunner.api.wire import JobResponse, JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.config.docker import DockerConfig
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.docker.labels import JobFacts, Labels
from pyrunner.executors.docker.names import Names
from pyrunner.executors.docker.owner import this_process
from pyrunner.executors.protocol import JobPlace, PrepareOptions, TraceWriter

NETWORK_PER_BUILD = "FF_NETWORK_PER_BUILD"
_SLOT_CGROUP = "gitlab-runner/slot-${slot}"
_DEFAULT_TIMEOUT = 7200.0


@dataclass(frozen=True, kw_only=True)
class DockerJob:
    """A job on its way into containers."""

    config: RunnerConfig
    docker: DockerConfig
    job: JobResponse
    #: All variables, directories included.
    variables: Variables
    builds_dir: str
    project_dir: str
    git_strategy: str
    names: Names
    labels: Labels
    #: Lines for the user.
    trace: TraceWriter
    #: Of the preparation.
    token: CancelToken
    #: ``run --user``: whose home has the credentials; empty = the runner's own user.
    os_user: str = ""
    #: A stream of the log for a service's output; None: there is no log that has one.
    service_trace: Callable[[], TraceWriter] | None = None
    #: Of the autoscaled instance; -1 = there are none.
    slot: int = -1

    def flag(self, name: str) -> bool:
        """A feature flag: all of them are among the variables."""
        return self.variables.flag(name)

    @property
    def own_variables(self) -> tuple[JobVariable, ...]:
        """Variables that this executor adds to those of the job."""
        if not self.flag(NETWORK_PER_BUILD) or self.docker.network_mode:
            return ()
        return (JobVariable(key="CI_BUILD_NETWORK_NAME", value=self.names.network, public=True),)

    def slot_cgroup(self, *, service: bool = False) -> str:
        """Parent cgroup by the slot of the instance; empty without ``use_slot_cgroups`` or slots."""
        if not self.config.use_slot_cgroups or self.slot < 0:
            return ""
        own = self.docker.service_slot_cgroup_template if service else ""
        template = own or self.config.slot_cgroup_template or _SLOT_CGROUP
        return expand(template, lambda name: str(self.slot) if name == "slot" else "")

    def environment(self) -> list[str]:
        """``KEY=value`` of all variables, file variables as their paths: for build and helper (6.4)."""
        variables = self.variables.plus(self.own_variables)
        return [f"{item.key}={variables.value(item.key)}" for item in variables.last()]

    @property
    def hostname(self) -> str:
        """Of build and helper."""
        return self.docker.hostname or self.names.unique


def docker_job(options: PrepareOptions, docker: DockerConfig, place: JobPlace, builds_dir: str) -> DockerJob:
    """The job of these options at this place."""
    config, job = options.config, options.job
    facts = _facts(options, place)
    return DockerJob(
        config=config,
        docker=docker,
        job=job,
        variables=place.variables,
        builds_dir=builds_dir,
        project_dir=place.project_dir,
        git_strategy=place.git_strategy,
        names=Names(
            token=config.token,
            short_token=facts.short_token,
            system_id=facts.system_id,
            rand=facts.run,
            project_id=facts.project_id,
            concurrent_project_id=facts.concurrent_project_id,
            job_id=facts.job_id,
        ),
        labels=Labels(facts, _expanded(docker.container_labels, place.variables)),
        trace=options.trace,
        token=options.token,
        os_user=options.user,
        service_trace=options.service_trace,
        slot=getattr(options.data, "slot", -1),
    )


def _facts(options: PrepareOptions, place: JobPlace) -> JobFacts:
    job = options.job
    timeout = job.runner_info.timeout
    return JobFacts(
        job_id=job.id,
        job_url=place.variables.get("CI_JOB_URL"),
        sha=job.git_info.sha,
        before_sha=job.git_info.before_sha,
        ref=job.git_info.ref,
        timeout=float(timeout) if timeout > 0 else _DEFAULT_TIMEOUT,
        project_id=job.job_info.project_id,
        concurrent_id=options.concurrent_id,
        concurrent_project_id=options.concurrent_project_id,
        pipeline_id=str(job.job_info.pipeline_id or "") or place.variables.get("CI_PIPELINE_ID"),
        short_token=options.config.short_token,
        system_id=options.system_id,
        owner=str(this_process()),
        run=secrets.token_hex(8),
    )


def _expanded(labels: Mapping[str, str], variables: Variables) -> dict[str, str]:
    return {key: variables.expand(value) for key, value in labels.items()}
