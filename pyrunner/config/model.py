"""The whole of config.toml as typed structures (facts/config-toml.md 5 to 14).

`Config` is the file, `RunnerConfig` one `[[runners]]` entry. Attributes hold what the file says; what a zero or absent
value means is answered by the ``effective_…`` properties, so that saving never writes a default as if it were chosen.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pyrunner.config.cache import AzureConfig, CacheConfig, GcsConfig, S3Config
from pyrunner.config.keys import Duration, Key, dashed
from pyrunner.config.table import Table, fresh

if TYPE_CHECKING:
    from pyrunner.config.docker import DockerConfig, ServiceConfig
    from pyrunner.config.kubernetes import KubernetesConfig
    from pyrunner.config.machines import (
        AutoscalerConfig,
        ConnectorConfig,
        CustomConfig,
        InstanceConfig,
        MachineConfig,
        MachineGlobals,
        ParallelsConfig,
        SshConfig,
        VirtualBoxConfig,
    )
    from pyrunner.config.process import Experimental

from pyrunner.config.process import SessionServer
from pyrunner.config.runner_tables import (
    ArtifactConfig,
    BootVerify,
    CustomBuildDir,
    Monitoring,
    Referees,
    RunnerExperimental,
)

__all__ = [
    "ArtifactConfig",
    "AutoscalerConfig",
    "AzureConfig",
    "BootVerify",
    "CacheConfig",
    "Config",
    "ConnectorConfig",
    "CustomBuildDir",
    "CustomConfig",
    "DockerConfig",
    "GcsConfig",
    "InstanceConfig",
    "KubernetesConfig",
    "MachineConfig",
    "Monitoring",
    "ParallelsConfig",
    "Referees",
    "RunnerConfig",
    "S3Config",
    "ServiceConfig",
    "SessionServer",
    "SshConfig",
    "VirtualBoxConfig",
]

#: Tables that most files lack, and their modules: imported on first use, so that `list` does not pay for Kubernetes.
_ON_USE = {
    **dict.fromkeys(("DockerConfig", "ServiceConfig"), "docker"),
    "KubernetesConfig": "kubernetes",
    **dict.fromkeys(
        (
            "AutoscalerConfig",
            "ConnectorConfig",
            "CustomConfig",
            "InstanceConfig",
            "MachineConfig",
            "MachineGlobals",
            "ParallelsConfig",
            "SshConfig",
            "VirtualBoxConfig",
        ),
        "machines",
    ),
    "Experimental": "process",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"pyrunner.config.{_ON_USE[name]}"), name)


SHELLS = ("bash", "sh", "cmd", "pwsh", "powershell")
#: What a [[runners]] entry may name (facts/config-toml.md 6).
EXECUTORS = (
    "shell",
    "docker",
    "docker-windows",
    "docker+machine",
    "docker-autoscaler",
    "instance",
    "kubernetes",
    "ssh",
    "parallels",
    "virtualbox",
    "custom",
)
LOG_LEVELS = ("panic", "fatal", "error", "warn", "warning", "info", "debug", "trace")
LOG_FORMATS = ("runner", "text", "json")


def _runner_name(attribute: str) -> str:
    return dashed(attribute) if attribute.startswith("tls_") else attribute


class RunnerConfig(Table, rename=_runner_name):
    """One `[[runners]]` entry."""

    name: Annotated[str, Key("description", always=True, flag="name", aliases=("description",))] = ""
    limit: Annotated[int, Key("parallel jobs of this entry; 0 = no limit")] = 0
    output_limit: Annotated[int, Key("job log limit in KiB; 0 = 4096")] = 0
    request_concurrency: Annotated[int, Key("parallel job requests; 0 = 1")] = 0
    strict_check_interval: Annotated[bool | None, Key("do not ask again at once after a job")] = None
    unhealthy_requests_limit: Annotated[int, Key("failed requests before a pause; 0 = 3")] = 0
    unhealthy_interval: Annotated[Duration | None, Key("length of that pause; default 1h", env="")] = None
    job_status_final_update_retry_limit: Annotated[
        int,
        Key("tries to send the final state; 0 = 10", env="RUNNER_job_status_final_update_retry_limit"),
    ] = 0

    url: Annotated[str, Key("GitLab base URL", always=True, env="CI_SERVER_URL", aliases=("u",))] = ""
    id: Annotated[int, Key("runner id, from the server", always=True, flag="")] = 0
    token: Annotated[
        str, Key("authentication token", always=True, env="CI_SERVER_TOKEN", aliases=("t",), secret=True)
    ] = ""
    token_obtained_at: Annotated[datetime | None, Key("when the token was made", always=True, flag="")] = None
    token_expires_at: Annotated[datetime | None, Key("zero time = never", always=True, flag="")] = None
    tls_ca_file: Annotated[str, Key("CA bundle of the server", env="CI_SERVER_TLS_CA_FILE")] = ""
    tls_cert_file: Annotated[str, Key("client certificate", env="CI_SERVER_TLS_CERT_FILE")] = ""
    tls_key_file: Annotated[str, Key("client key", env="CI_SERVER_TLS_KEY_FILE")] = ""

    labels: Annotated[dict[str, str], Key("runner labels, over the global ones", flag="")] = {}
    executor: Annotated[str, Key("executor", always=True, choices=EXECUTORS)] = ""
    builds_dir: Annotated[str, Key("root of working copies inside the executor")] = ""
    cache_dir: Annotated[str, Key("root of local caches inside the executor")] = ""
    clone_url: Annotated[str, Key("replaces the server URL for clones", env="CLONE_URL")] = ""
    environment: Annotated[list[str], Key("job variable KEY=value", flag="env", env="RUNNER_ENV", secret=True)] = []
    proxy_exec: Annotated[bool | None, Key("run scripts through proxy-exec")] = None
    pre_get_sources_script: Annotated[str, Key("runs before fetching sources")] = ""
    post_get_sources_script: Annotated[str, Key("runs after fetching sources")] = ""
    pre_build_script: Annotated[str, Key("runs before before_script, in the same shell")] = ""
    post_build_script: Annotated[str, Key("runs after script, in the same shell")] = ""
    prepare_timeout: Annotated[Duration | None, Key("limit of the prepare stage")] = None
    get_sources_timeout: Annotated[Duration | None, Key("limit of the get_sources stage")] = None
    debug_trace_disabled: Annotated[bool, Key("forbid CI_DEBUG_TRACE")] = False
    safe_directory_checkout: Annotated[bool | None, Key("manage git safe.directory")] = None
    clean_git_config: Annotated[bool | None, Key("clean git config around the job")] = None
    shell: Annotated[str, Key("shell of the scripts", choices=SHELLS)] = ""
    custom_build_dir: Annotated[
        CustomBuildDir | None, Key("build directory chosen by the job", prefix="custom_build_dir")
    ] = None
    referees: Annotated[Referees | None, Key("metrics added to the job")] = None
    cache: Annotated[CacheConfig, Key("distributed cache", prefix="cache", always=True)] = fresh(
        default_factory=CacheConfig
    )
    artifact: Annotated[ArtifactConfig, Key("limits of artifact uploads")] = fresh(default_factory=ArtifactConfig)
    feature_flags: Annotated[dict[str, bool], Key("feature flag FF_NAME:true", env="FEATURE_FLAGS")] = {}
    monitoring: Annotated[Monitoring | None, Key("thresholds of metrics")] = None
    use_slot_cgroups: Annotated[bool, Key("cgroup parents by slot")] = False
    slot_cgroup_template: Annotated[str, Key("default gitlab-runner/slot-${slot}")] = ""
    instance: Annotated[InstanceConfig | None, Key("executor instance")] = None
    ssh: Annotated[SshConfig | None, Key("executor ssh and VMs", prefix="ssh")] = None
    docker: Annotated[DockerConfig | None, Key("executor docker and its kin", prefix="docker")] = None
    parallels: Annotated[ParallelsConfig | None, Key("executor parallels", prefix="parallels")] = None
    virtualbox: Annotated[VirtualBoxConfig | None, Key("executor virtualbox", prefix="virtualbox")] = None
    machine: Annotated[MachineConfig | None, Key("executor docker+machine", prefix="machine")] = None
    kubernetes: Annotated[KubernetesConfig | None, Key("executor kubernetes", prefix="kubernetes")] = None
    custom: Annotated[CustomConfig | None, Key("executor custom", prefix="custom")] = None
    autoscaler: Annotated[AutoscalerConfig | None, Key("fleet of instances")] = None
    experimental: Annotated[RunnerExperimental | None, Key("experiments")] = None
    step_runner_image: Annotated[str, Key("image with the step-runner", env="STEP_RUNNER_IMAGE")] = ""

    @property
    def short_token(self) -> str:
        """What logs may show of the token: prefix stripped, nine characters (facts/commands.md 2)."""
        from pyrunner.api.tokens import short_token

        return short_token(self.token)

    @property
    def api_url(self) -> str:
        """`url` without the ``/ci`` of old files and without a slash at the end."""
        return self.url.rstrip("/").removesuffix("/ci").rstrip("/")

    @property
    def effective_request_concurrency(self) -> int:
        """Parallel job requests, at least 1."""
        return max(self.request_concurrency, 1)

    @property
    def effective_unhealthy_requests_limit(self) -> int:
        """Failed requests before the entry is paused."""
        return self.unhealthy_requests_limit if self.unhealthy_requests_limit >= 1 else 3

    @property
    def effective_unhealthy_interval(self) -> float:
        """Seconds of that pause."""
        return 3600.0 if self.unhealthy_interval is None else self.unhealthy_interval

    @property
    def effective_final_update_retry_limit(self) -> int:
        """Tries to send the final state."""
        limit = self.job_status_final_update_retry_limit
        return limit if limit >= 1 else 10

    @property
    def effective_output_limit(self) -> int:
        """Job log limit in bytes."""
        return (self.output_limit if self.output_limit > 0 else 4096) * 1024


class Config(Table):
    """config.toml. `path` and `mtime` (0 = the file was not there) say where and when it was read."""

    listen_address: Annotated[str, Key("host:port of the metrics server; empty = off")] = ""
    session_server: Annotated[SessionServer, Key("interactive terminals", always=True)] = fresh(
        default_factory=SessionServer
    )
    labels: Annotated[dict[str, str], Key("default runner labels")] = {}
    concurrent: Annotated[int, Key("parallel jobs of the whole process", always=True)] = 1
    check_interval: Annotated[int, Key("seconds between polls; 0 = 3", always=True)] = 0
    log_level: Annotated[str | None, Key("lowest level that is logged", choices=LOG_LEVELS)] = None
    log_format: Annotated[str | None, Key("format of log lines", choices=LOG_FORMATS)] = None
    user: Annotated[str, Key("replaced by run --user")] = ""
    runners: Annotated[list[RunnerConfig], Key("the runners")] = []
    sentry_dsn: Annotated[str | None, Key("Sentry DSN; default $SENTRY_DSN", secret=True)] = None
    connection_max_age: Annotated[
        Duration | None, Key("age of kept connections to GitLab; default 15m, 0 = unlimited")
    ] = None
    machine: Annotated[MachineGlobals | None, Key("docker+machine for the whole process")] = None
    experimental: Annotated[Experimental | None, Key("experiments")] = None
    shutdown_timeout: Annotated[int, Key("seconds of a forceful stop; 0 = 30", always=True)] = 0

    path: str = ""
    mtime: float = 0.0

    def labels_of(self, runner: RunnerConfig) -> dict[str, str]:
        """The labels that `runner` sends to GitLab: the global ones overlaid by its own."""
        return {**self.labels, **runner.labels}

    @property
    def effective_check_interval(self) -> int:
        """Seconds between polls."""
        return self.check_interval if self.check_interval > 0 else 3

    @property
    def effective_shutdown_timeout(self) -> int:
        """Seconds of a forceful stop before giving up."""
        return self.shutdown_timeout if self.shutdown_timeout > 0 else 30

    @property
    def effective_connection_max_age(self) -> float:
        """Seconds a kept connection to GitLab may live; 0 or less = unlimited."""
        return 900.0 if self.connection_max_age is None else self.connection_max_age
