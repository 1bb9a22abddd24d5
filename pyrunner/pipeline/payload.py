"""Job → the structure that a runner gets (facts/runner-api.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrunner.api.wire import (
    Artifact,
    Cache,
    Dependency,
    GitInfo,
    Image,
    JobFeatures,
    JobInfo,
    JobResponse,
    JobVariable,
    RunnerInfo,
    Step,
)
from pyrunner.pipeline.job import Artifacts, CacheKeyFiles, Job
from pyrunner.pipeline.job import Cache as JobCache
from pyrunner.pipeline.job import Image as JobImage
from pyrunner.pipeline.variables import RunContext, file_variables, job_variables, repository_url

#: What servers of ours understand; a runner maps other reasons to ``unknown_failure``.
FAILURE_REASONS = (
    "script_failure",
    "runner_system_failure",
    "job_execution_timeout",
    "image_pull_failure",
    "unknown_failure",
    "runner_configuration_error",
    "runner_external_dependency_failure",
    "runner_interrupted",
    "job_canceled",
)
_MASKED_PREFIXES = ("glpat-", "gloas-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-")

#: A depth that takes everything from a shallow repository.
_ALL_THERE_IS = 1_000_000

#: File name and format in which each kind of report is uploaded.
_REPORTS = {
    "accessibility": ("gl-accessibility.json", "raw"),
    "api_fuzzing": ("gl-api-fuzzing-report.json", "raw"),
    "browser_performance": ("browser-performance.json", "raw"),
    "cluster_image_scanning": ("gl-cluster-image-scanning-report.json", "raw"),
    "codequality": ("gl-code-quality-report.json", "raw"),
    "container_scanning": ("gl-container-scanning-report.json", "raw"),
    "coverage_fuzzing": ("gl-coverage-fuzzing.json", "raw"),
    "cyclonedx": ("gl-sbom.cdx.json", "gzip"),
    "dast": ("gl-dast-report.json", "raw"),
    "dependency_scanning": ("gl-dependency-scanning-report.json", "raw"),
    "junit": ("junit.xml", "gzip"),
    "load_performance": ("load-performance.json", "raw"),
    "metrics": ("metrics.txt", "gzip"),
    "performance": ("performance.json", "raw"),
    "requirements": ("requirements.json", "raw"),
    "sast": ("gl-sast-report.json", "raw"),
    "secret_detection": ("gl-secret-detection-report.json", "raw"),
    "terraform": ("tfplan.json", "raw"),
}


def job_payload(
    job: Job,
    context: RunContext,
    job_id: int,
    token: str,
    dependencies: Sequence[Dependency] = (),
    moment: Mapping[str, str] | None = None,
) -> JobResponse:
    """The payload of one try of `job`.

    Args:
        job_id: number of this try.
        token: the job's token for API and git.
        dependencies: the tries whose archives it downloads; the server fills in their files.
        moment: variables that are known only now, such as those of the runner.
    """
    timeout = job.timeout or context.timeout
    variables = job_variables(job, context, job_id, token, moment)
    return JobResponse(
        id=job_id,
        token=token,
        allow_git_fetch=True,
        job_info=_job_info(job, context, job_id),
        git_info=_git_info(context, token, variables),
        runner_info=RunnerInfo(timeout=timeout),
        variables=variables,
        steps=_steps(job, timeout),
        image=_image(job.image) if job.image else None,
        services=[_image(service) for service in job.services],
        artifacts=_artifacts(job.artifacts),
        cache=[_cache(cache, context) for cache in job.cache],
        dependencies=list(dependencies),
        features=JobFeatures(
            trace_sections=True, token_mask_prefixes=list(_MASKED_PREFIXES), failure_reasons=list(FAILURE_REASONS)
        ),
    )


def _image(image: JobImage) -> Image:
    return Image(
        name=image.name,
        alias=image.alias,
        entrypoint=None if image.entrypoint is None else list(image.entrypoint),
        command=None if image.command is None else list(image.command),
        pull_policy=list(image.pull_policy),
        variables=file_variables(image.variables),
        executor_opts={key: dict(options) for key, options in image.options.items()},
    )


def _job_info(job: Job, context: RunContext, job_id: int) -> JobInfo:
    return JobInfo(
        id=job_id,
        name=job.name,
        stage=job.stage,
        pipeline_id=context.pipeline_id,
        project_id=context.project_id,
        project_name=context.project_name,
        project_full_path=context.project_path,
    )


def _git_info(context: RunContext, token: str, variables: Sequence[JobVariable]) -> GitInfo:
    given = next((item.value for item in reversed(variables) if item.key == "GIT_DEPTH"), "")
    depth = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else context.depth
    if context.shallow and depth == 0:
        # git refuses to take a shallow history over as if it were whole
        depth = _ALL_THERE_IS
    return GitInfo(
        repo_url=repository_url(context, token),
        repo_object_format="sha256" if len(context.sha) == 64 else "sha1",
        ref=context.ref_name,
        ref_type="tag" if context.is_tag else "branch",
        sha=context.sha,
        before_sha=context.before_sha,
        refspecs=list(context.refspecs),
        depth=depth,
        protected=False,
    )


def _steps(job: Job, timeout: int) -> list[Step]:
    steps = [
        Step(name="script", script=[*job.before_script, *job.script], timeout=timeout, when="on_success"),
    ]
    if job.after_script:
        steps.append(
            Step(
                name="after_script",
                script=list(job.after_script),
                timeout=timeout,
                when="always",
                allow_failure=True,
            )
        )
    return steps


def _artifacts(artifacts: Artifacts) -> list[Artifact]:
    found = []
    if artifacts.archived:
        found.append(
            Artifact(
                name=artifacts.name,
                untracked=artifacts.untracked,
                paths=list(artifacts.paths),
                exclude=list(artifacts.exclude),
                when=artifacts.when,
                artifact_type="archive",
                artifact_format="zip",
                expire_in=artifacts.expire_in,
            )
        )
    for report in artifacts.reports:
        name, style = _REPORTS[report.kind]
        found.append(
            Artifact(
                name=name,
                paths=list(report.paths),
                when="always",
                artifact_type=report.kind,
                artifact_format=style,
                expire_in=artifacts.expire_in,
            )
        )
    return found


def _cache(cache: JobCache, context: RunContext) -> Cache:
    key = cache.key
    if isinstance(key, CacheKeyFiles):
        fingerprint = context.hash_files(key.files) or "default"
        key = f"{key.prefix}-{fingerprint}" if key.prefix else fingerprint
    return Cache(
        key=key,
        untracked=cache.untracked,
        policy=cache.policy,
        paths=list(cache.paths),
        when=cache.when,
        fallback_keys=list(cache.fallback_keys),
    )
