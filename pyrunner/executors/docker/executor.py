"""The docker executor: who prepares what in which order (facts/executors.md 6.3), and the way of a stage."""

from __future__ import annotations

from dataclasses import replace

from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig
from pyrunner.executors.abstract import AbstractExecutor, ExecutorOptions
from pyrunner.executors.docker.cleaning import AFTER_FAILURE, AFTER_USE, CLEANER
from pyrunner.executors.docker.context import DockerJob, docker_job
from pyrunner.executors.docker.engine.address import engine_address
from pyrunner.executors.docker.engine.engine import Engine, connect
from pyrunner.executors.docker.owner import RUNS
from pyrunner.executors.docker.session import DockerSession
from pyrunner.executors.docker.volumes.plan import builds_dir_is_on_host
from pyrunner.executors.protocol import Environment, ExecutorCommand, ExecutorStage, JobPlace, PrepareOptions

DEFAULTS = ExecutorOptions(
    title="Docker",
    default_builds_dir="/builds",
    default_cache_dir="/cache",
    custom_build_dir=True,
    safe_directory=True,
    runner_command="/usr/bin/gitlab-runner-helper",
)


class DockerExecutor(AbstractExecutor):
    """Implements `Executor` with containers of an engine."""

    def __init__(self) -> None:
        super().__init__(DEFAULTS)
        self._engine: Engine | None = None
        self._job: DockerJob | None = None
        self._session: DockerSession | None = None

    def prepare(self, options: PrepareOptions) -> Environment:
        """Everything that stages need: network, volumes, services, images, the running helper container.

        Raises:
            SystemFailure: config, engine, registry or image is in the way.
            BaseException: the token's cause, when cancelled.
        """
        plain = super().prepare(options)
        options.token.raise_if_cancelled()
        docker = options.config.docker or DockerConfig()
        image = _job_image(options, docker)
        options.trace.plain(f"Using {self.defaults.title} executor with image {image} ...")
        environment = self._environment(plain, options, docker)
        place = options.locate(environment) if options.locate else _no_place(options, environment)
        self._job = job = docker_job(options, docker, place, environment.builds_dir)
        RUNS.begin(job.names.rand)
        self._engine = connect(engine_address(docker))
        self._session = DockerSession(self._engine, job)
        self._session.prepare(image, self.shell_name)
        return replace(environment, variables=job.own_variables)

    def run(self, command: ExecutorCommand) -> None:
        """Run a stage in helper or build container."""
        if self._session is None:
            raise SystemFailure("the executor is used before it is prepared")
        self.set_current_stage(ExecutorStage.RUN)
        self._session.run(command)

    def cleanup(self) -> None:
        """Remove containers, temporary volumes and the network; errors are logged."""
        super().cleanup()
        session, self._session = self._session, None
        clean = session is None or session.cleanup()
        job, self._job = self._job, None
        if job is not None:
            RUNS.end(job.names.rand)
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
            if job is not None and not clean:
                CLEANER.request(engine.address, job.names.system_id, AFTER_FAILURE)
            if job is not None and job.docker.cache_volumes is not None:
                CLEANER.request(engine.address, job.names.system_id, AFTER_USE, again=False)

    def _environment(self, plain: Environment, options: PrepareOptions, docker: DockerConfig) -> Environment:
        builds_dir = options.variables.expand(plain.builds_dir)
        return Environment(
            builds_dir=builds_dir,
            cache_dir=options.variables.expand(plain.cache_dir),
            shared_builds_dir=builds_dir_is_on_host(docker, builds_dir, options.variables.expand),
            custom_build_dir=plain.custom_build_dir,
            safe_directory=plain.safe_directory,
            via_host=_machine_name(),
        )


def _machine_name() -> str:
    import socket

    return socket.gethostname()


def _job_image(options: PrepareOptions, docker: DockerConfig) -> str:
    """The image that the job names, else the one of the config.

    Raises:
        SystemFailure: there is none.
    """
    wanted = options.job.image.name if options.job.image else ""
    name = options.variables.expand(wanted or docker.image)
    if not name:
        raise SystemFailure("no Docker image specified to run the build in", reason="runner_configuration_error")
    return name


def _no_place(options: PrepareOptions, environment: Environment) -> JobPlace:
    project_dir = f"{environment.builds_dir}/project-{options.job.job_info.project_id}"
    return JobPlace(
        project_dir=project_dir, temp_dir=f"{project_dir}.tmp", git_strategy="none", variables=options.variables
    )
