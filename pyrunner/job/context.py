"""What one job runs with: the manager's setting, and everything that follows from it and the payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyrunner.api.tokens import short_token
from pyrunner.api.variables import Variables
from pyrunner.api.wire import Features, JobResponse, JobVariable
from pyrunner.base.errors import JobError
from pyrunner.base.host import goarch, goos
from pyrunner.base.version import GITLAB_RUNNER_VERSION, REVISION
from pyrunner.config import feature_flags
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import Environment, ExecutorProvider, JobPlace, ShellScriptInfo
from pyrunner.job.directories import Directories, Place, resolve_directories
from pyrunner.job.inputs import interpolated
from pyrunner.job.patience import PATIENCE
from pyrunner.job.settings import Limits, Settings, read_settings
from pyrunner.job.variables import Paths, TlsFiles, VariableSources, job_variables
from pyrunner.shells.protocol import ScriptContext

_FLAG_NAMES = frozenset(feature_flags.FEATURE_FLAGS)
#: Pause between two tries to prepare an executor (facts/job-lifecycle.md 3.1).
PREPARE_PAUSE = 3.0


@dataclass(frozen=True, kw_only=True)
class JobSetting:
    """What the manager decides about a job before it runs."""

    config: RunnerConfig
    provider: ExecutorProvider
    system_id: str = ""
    concurrent_id: int = 0
    concurrent_project_id: int = 0
    #: OS user of shell jobs (``run --user``).
    user: str = ""
    #: What the provider's `acquire` returned.
    data: object = None
    #: Of the job request; goes to git as ``X-Gitaly-Correlation-ID``.
    correlation_id: str = ""
    tls: TlsFiles = TlsFiles()
    #: Home of stage logs and exit codes that survive the manager; empty = none.
    state_dir: str = ""
    #: Seconds between tries to prepare the executor.
    prepare_pause: float = PREPARE_PAUSE
    #: Seconds that the end of a stopped job is waited for.
    patience: float = PATIENCE
    #: When the job was taken, RFC 3339.
    started_at: str = ""


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """A job with its resolved flags, settings and variables, before the executor is prepared."""

    job: JobResponse
    setting: JobSetting
    flags: Mapping[str, bool]
    #: One line per setting that was ignored or corrected.
    warnings: tuple[str, ...]
    settings: Settings
    sources: VariableSources
    #: Expanded; without those that need directories.
    variables: Variables
    #: Why the job cannot run as it is, known before it begins.
    refusal: JobError | None = None

    @property
    def timeout(self) -> float:
        """Seconds that the job may take."""
        return self.settings.timeouts.job

    def with_full_chain(self, complete: Callable[[str], str]) -> JobContext:
        """The job with the server's certificates up to the root, where its flag asks for that."""
        if not self.sources.tls.ca or not self.flags["FF_RESOLVE_FULL_TLS_CHAIN"]:
            return self
        sources = replace(self.sources, tls=replace(self.sources.tls, ca=complete(self.sources.tls.ca)))
        return replace(self, sources=sources, variables=job_variables(sources))

    def with_secrets(self, secrets: Sequence[JobVariable]) -> JobContext:
        """The job with its resolved secrets among the variables."""
        sources = replace(self.sources, secrets=secrets)
        return replace(self, sources=sources, variables=job_variables(sources))


@dataclass(frozen=True, kw_only=True)
class PreparedJob:
    """Where a prepared job runs and what its scripts are made of."""

    directories: Directories
    script: ScriptContext
    shell_info: ShellScriptInfo = field(repr=False)


def job_context(job: JobResponse, setting: JobSetting) -> JobContext:
    """Resolve flags, settings and variables of a job; pure but for the provider's feature list."""
    config = setting.config
    by_key = {variable.key: variable.value for variable in job.variables}
    flags, flag_warnings = feature_flags.resolve(config.feature_flags, by_key.get)
    features = Features()
    setting.provider.get_features(features)
    job, refusal = _with_inputs(job, flags)
    timeout = job.runner_info.timeout
    sources = VariableSources(
        flags=flags,
        flag_names=_FLAG_NAMES,
        job=job.variables,
        image=job.image.name if job.image else "",
        short_token=short_token(config.token),
        environment=config.environment,
        concurrent_id=setting.concurrent_id,
        concurrent_project_id=setting.concurrent_project_id,
        job_timeout=timeout if timeout > 0 else Settings().timeouts.job,
        tls=setting.tls,
        shared_environment=features.shared,
        runner_version=GITLAB_RUNNER_VERSION,
        runner_revision=REVISION,
        executable_arch=f"{goos()}/{goarch()}",
    )
    variables = job_variables(sources)
    settings = read_settings(
        variables.get,
        Limits(
            job_timeout=timeout,
            prepare_timeout=config.prepare_timeout,
            get_sources_timeout=config.get_sources_timeout,
            allow_git_fetch=job.allow_git_fetch,
            debug_trace_disabled=config.debug_trace_disabled,
        ),
    )
    return JobContext(
        job=job,
        setting=setting,
        flags=flags,
        warnings=(*settings.warnings, *flag_warnings),
        settings=settings,
        sources=sources,
        variables=variables,
        refusal=refusal,
    )


def _with_inputs(job: JobResponse, flags: Mapping[str, bool]) -> tuple[JobResponse, JobError | None]:
    if not flags["FF_ENABLE_JOB_INPUTS_INTERPOLATION"]:
        return job, None
    try:
        return interpolated(job), None
    except JobError as error:
        return job, error


def job_place(context: JobContext, environment: Environment) -> JobPlace:
    """Directories and final variables, for an executor that is still being prepared.

    Raises:
        SystemFailure: the directories are not configured or not allowed (``runner_configuration_error``).
    """
    directories = resolve_directories(_place(context, environment))
    return JobPlace(
        project_dir=directories.project_dir,
        temp_dir=directories.temp_dir,
        git_strategy=context.settings.git_strategy,
        variables=job_variables(context.sources, _paths(directories)).plus(environment.variables),
    )


def prepared_job(context: JobContext, environment: Environment, shell_info: ShellScriptInfo) -> PreparedJob:
    """Directories, final variables and script context of a job whose executor is prepared.

    Raises:
        SystemFailure: the directories are not configured or not allowed (``runner_configuration_error``).
    """
    directories = resolve_directories(_place(context, environment))
    config, settings = context.setting.config, context.settings
    clean = config.clean_git_config
    safe = config.safe_directory_checkout
    script = ScriptContext(
        job=context.job,
        config=config,
        variables=job_variables(context.sources, _paths(directories)),
        flags=dict(context.flags),
        executor=config.executor,
        builds_dir=directories.builds_dir,
        cache_dir=directories.cache_dir,
        project_dir=directories.project_dir,
        temp_dir=directories.temp_dir,
        project_cache_dir=directories.project_cache_dir,
        runner_command=shell_info.runner_command,
        via_host=environment.via_host,
        shared_environment=environment.shared_environment,
        git_strategy=settings.git_strategy,
        correlation_id=context.setting.correlation_id,
        safe_directory=environment.safe_directory if safe is None else safe,
        clean_git_config=(config.executor != "shell" and settings.git_strategy != "none" if clean is None else clean),
        debug_trace=settings.debug_trace,
        short_token=context.sources.short_token,
        runner_name=config.name,
        started_at=context.setting.started_at,
    )
    return PreparedJob(directories=directories, script=script, shell_info=shell_info)


def _paths(directories: Directories) -> Paths:
    return Paths(builds_dir=directories.builds_dir, project_dir=directories.project_dir, temp_dir=directories.temp_dir)


def _place(context: JobContext, environment: Environment) -> Place:
    setting, job = context.setting, context.job
    custom = setting.config.custom_build_dir
    enabled = custom.enabled if custom is not None else None
    clone_path = ""
    if context.variables.get("GIT_CLONE_PATH"):
        # it is usually `$CI_BUILDS_DIR/…`, known only now
        known = job_variables(context.sources, Paths(builds_dir=environment.builds_dir))
        clone_path = known.get("GIT_CLONE_PATH")
    return Place(
        builds_dir=environment.builds_dir,
        cache_dir=environment.cache_dir,
        shared=environment.shared_builds_dir,
        short_token=context.sources.short_token,
        concurrent_project_id=setting.concurrent_project_id,
        repo_url=job.git_info.repo_url,
        project_id=job.job_info.project_id,
        git_strategy=context.settings.git_strategy,
        custom_allowed=environment.custom_build_dir if enabled is None else enabled,
        clone_path=clone_path,
    )
