"""Where jobs run when not here: SSH hosts, virtual machines, docker-machine, fleeting instances, custom executors
(facts/config-toml.md 7, 9 to 12)."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Duration, Free, Key, camel_case
from pyrunner.config.table import Table, fresh


class SshConfig(Table):
    """`[runners.ssh]`."""

    user: Annotated[str, Key("login")] = ""
    password: Annotated[str, Key("password", secret=True)] = ""
    host: Annotated[str, Key("host")] = ""
    port: Annotated[str, Key("port; default 22")] = ""
    identity_file: Annotated[str, Key("path of the private key")] = ""
    disable_strict_host_key_checking: Annotated[
        bool | None, Key("accept unknown host keys", env="DISABLE_STRICT_HOST_KEY_CHECKING")
    ] = None
    known_hosts_file: Annotated[str, Key("default ~/.ssh/known_hosts", env="KNOWN_HOSTS_FILE")] = ""


class ParallelsConfig(Table):
    """`[runners.parallels]`."""

    base_name: Annotated[str, Key("VM to clone", always=True)] = ""
    template_name: Annotated[str, Key("name of the linked template")] = ""
    disable_snapshots: Annotated[bool, Key("use no snapshots", always=True)] = False
    time_server: Annotated[str, Key("default time.apple.com")] = ""
    allowed_images: Annotated[list[str], Key("regular expressions of VMs a job may choose")] = []


class VirtualBoxConfig(Table):
    """`[runners.virtualbox]`."""

    base_name: Annotated[str, Key("VM to clone", always=True)] = ""
    base_snapshot: Annotated[str, Key("name or UUID of the snapshot to clone")] = ""
    base_folder: Annotated[str, Key("folder of the clone", always=True)] = ""
    disable_snapshots: Annotated[bool, Key("use no snapshots", always=True)] = False
    allowed_images: Annotated[list[str], Key("regular expressions of VMs a job may choose")] = []
    start_type: Annotated[str, Key("front end; default headless", always=True)] = ""


class MachineAutoscaling(Table, rename=camel_case):
    """`[[runners.machine.autoscaling]]`: the last entry whose period matches replaces all four values."""

    periods: Annotated[list[str], Key("cron expressions of 7 fields")] = []
    timezone: Annotated[str, Key("default Local", always=True)] = ""
    idle_count: Annotated[int, Key("idle machines to keep", always=True)] = 0
    idle_scale_factor: Annotated[float, Key("idle machines per machine in use", always=True)] = 0.0
    idle_count_min: Annotated[int, Key("least idle machines with the factor", always=True)] = 0
    idle_time: Annotated[int, Key("seconds idle before removal", always=True)] = 0


def _machine_name(attribute: str) -> str:
    return attribute if attribute == "autoscaling" else camel_case(attribute)


class MachineConfig(Table, rename=_machine_name):
    """`[runners.machine]`: docker+machine."""

    max_growth_rate: Annotated[int, Key("machines created at once; 0 = unlimited")] = 0
    idle_count: Annotated[
        int, Key("idle machines to keep", always=True, flag="machine-idle-nodes", env="MACHINE_IDLE_COUNT")
    ] = 0
    idle_scale_factor: Annotated[float, Key("idle machines per machine in use; 0 = always IdleCount", always=True)] = (
        0.0
    )
    idle_count_min: Annotated[int, Key("least idle machines with the factor", always=True)] = 0
    idle_time: Annotated[int, Key("seconds idle before removal")] = 0
    max_builds: Annotated[int, Key("jobs per machine; 0 = unlimited")] = 0
    machine_driver: Annotated[str, Key("driver of docker-machine", always=True, env="MACHINE_DRIVER")] = ""
    machine_name: Annotated[str, Key("name template, contains %s", always=True, env="MACHINE_NAME")] = ""
    machine_options: Annotated[list[str], Key("driver options", env="MACHINE_OPTIONS", secret=True)] = []
    machine_options_with_name: Annotated[
        list[str], Key("driver options that contain %s", env="MACHINE_OPTIONS_WITH_NAME", secret=True)
    ] = []
    max_removal_attempts: Annotated[int, Key("tries to remove a machine; 0 = 30")] = 0
    off_peak_periods: Annotated[list[str], Key("removed, no effect")] = []
    off_peak_timezone: Annotated[str, Key("removed, no effect")] = ""
    off_peak_idle_count: Annotated[int, Key("removed, no effect")] = 0
    off_peak_idle_time: Annotated[int, Key("removed, no effect")] = 0
    autoscaling: Annotated[list[MachineAutoscaling], Key("values by time of day", flag="")] = []


class ConnectorConfig(Table):
    """`connector_config`: how an instance is reached."""

    os: Annotated[str, Key("operating system")] = ""
    arch: Annotated[str, Key("architecture")] = ""
    protocol: Annotated[str, Key("default by os", choices=("ssh", "winrm", "winrm+https"))] = ""
    protocol_port: Annotated[int, Key("default by protocol", always=True)] = 0
    username: Annotated[str, Key("login")] = ""
    password: Annotated[str, Key("password", secret=True)] = ""
    key_path: Annotated[str, Key("path of the private key")] = ""
    use_static_credentials: Annotated[bool, Key("do not ask the plugin for credentials")] = False
    keepalive: Annotated[Duration, Key("keep-alive interval", always=True)] = 0.0
    timeout: Annotated[Duration, Key("connection timeout", always=True)] = 0.0
    use_external_addr: Annotated[bool, Key("connect to the external address")] = False


class AutoscalerPolicy(Table):
    """`[[runners.autoscaler.policy]]`: the last one whose period matches wins."""

    periods: Annotated[list[str], Key("cron expressions of 5 fields; empty = always")] = []
    timezone: Annotated[str, Key("default Local")] = ""
    idle_count: Annotated[int, Key("idle job capacity, not instances", always=True)] = 0
    idle_time: Annotated[Duration, Key("how long an instance may be idle; at least 1s", always=True)] = 0.0
    scale_factor: Annotated[float, Key("idle capacity per capacity in use", always=True)] = 0.0
    scale_factor_limit: Annotated[int, Key("most capacity by scale_factor", always=True)] = 0
    preemptive_mode: Annotated[bool | None, Key("ask for jobs only with capacity; absent = idle_count > 0")] = None


class ScaleThrottle(Table):
    """`[runners.autoscaler.scale_throttle]`."""

    limit: Annotated[int, Key("new instances per second; 0 = 100, -1 = unlimited", always=True)] = 0
    burst: Annotated[int, Key("new instances at once; 0 = max_instances or limit", always=True)] = 0


class VmIsolation(Table):
    """`[runners.autoscaler.vm_isolation]`."""

    enabled: Annotated[bool, Key("run jobs in VMs on the instance")] = False
    nesting_host: Annotated[str, Key("address of the nesting daemon")] = ""
    nesting_config: Annotated[Free, Key("given to nesting as JSON")] = {}
    image: Annotated[str, Key("default VM image")] = ""
    connector_config: Annotated[ConnectorConfig | None, Key("how a VM is reached")] = None


class StateStorage(Table):
    """`[runners.autoscaler.state_storage]`."""

    enabled: Annotated[bool, Key("keep the state of instances over restarts")] = False
    dir: Annotated[str, Key("default .taskscaler beside the config file")] = ""
    keep_instance_with_acquisitions: Annotated[bool, Key("keep instances that ran a job at the stop")] = False


class AutoscalerConfig(Table):
    """`[runners.autoscaler]`: fleeting instances (executors instance and docker-autoscaler)."""

    capacity_per_instance: Annotated[int, Key("parallel jobs per instance, at least 1", always=True)] = 0
    max_use_count: Annotated[int, Key("jobs an instance may ever run; 0 = unlimited", always=True)] = 0
    max_instances: Annotated[int, Key("instances in any state; 0 = unlimited", always=True)] = 0
    plugin: Annotated[str, Key("fleeting plugin: name, path or OCI reference")] = ""
    plugin_config: Annotated[Free, Key("given to the plugin as JSON", secret=True)] = {}
    connector_config: Annotated[ConnectorConfig | None, Key("how an instance is reached")] = None
    policy: Annotated[list[AutoscalerPolicy], Key("scaling by time of day")] = []
    instance_ready_command: Annotated[str, Key("must succeed on a new instance")] = ""
    instance_acquire_timeout: Annotated[Duration, Key("0 = 15m", always=True)] = 0.0
    update_interval: Annotated[Duration, Key("0 = 1m", always=True)] = 0.0
    update_interval_when_expecting: Annotated[Duration, Key("0 = 2s", always=True)] = 0.0
    deletion_retry_interval: Annotated[Duration, Key("0 = 1m", always=True)] = 0.0
    shutdown_deletion_interval: Annotated[Duration, Key("0 = 10s", always=True)] = 0.0
    shutdown_deletion_retries: Annotated[int, Key("0 = 3", always=True)] = 0
    failure_threshold: Annotated[int, Key("0 = 3", always=True)] = 0
    scale_throttle: Annotated[ScaleThrottle | None, Key("speed limit of growth")] = None
    reservation_throttling: Annotated[bool | None, Key("absent = true")] = None
    log_internal_ip: Annotated[bool, Key("print the internal address to the job log")] = False
    log_external_ip: Annotated[bool, Key("print the external address to the job log")] = False
    delete_instances_on_shutdown: Annotated[bool, Key("default false")] = False
    vm_isolation: Annotated[VmIsolation | None, Key("jobs in VMs on the instance")] = None
    state_storage: Annotated[StateStorage | None, Key("state over restarts")] = None
    instance_operation_time_buckets: Annotated[list[float], Key("histogram buckets of the next four")] = []
    instance_creation_time_buckets: Annotated[list[float], Key("histogram buckets")] = []
    instance_is_running_time_buckets: Annotated[list[float], Key("histogram buckets")] = []
    instance_deletion_time_buckets: Annotated[list[float], Key("histogram buckets")] = []
    instance_readiness_time_buckets: Annotated[list[float], Key("histogram buckets")] = []
    instance_life_duration_buckets: Annotated[list[float], Key("histogram buckets")] = []


class InstanceConfig(Table):
    """`[runners.instance]`."""

    allowed_images: Annotated[list[str], Key("VM images a job may choose")] = []
    use_common_build_dir: Annotated[bool, Key("one build directory for all jobs")] = False


class CustomConfig(Table):
    """`[runners.custom]`: programs that prepare, run and clean up a job."""

    config_exec: Annotated[str, Key("executable that prints JSON overrides")] = ""
    config_args: Annotated[list[str], Key("its arguments", env="")] = []
    config_exec_timeout: Annotated[int | None, Key("seconds; default 3600")] = None
    prepare_exec: Annotated[str, Key("executable")] = ""
    prepare_args: Annotated[list[str], Key("its arguments", env="")] = []
    prepare_exec_timeout: Annotated[int | None, Key("seconds; default 3600")] = None
    run_exec: Annotated[str, Key("executable; gets script path and stage", always=True)] = ""
    run_args: Annotated[list[str], Key("its arguments", env="")] = []
    cleanup_exec: Annotated[str, Key("executable")] = ""
    cleanup_args: Annotated[list[str], Key("its arguments", env="")] = []
    cleanup_exec_timeout: Annotated[int | None, Key("seconds; default 3600")] = None
    graceful_kill_timeout: Annotated[int | None, Key("seconds after SIGTERM; default 600")] = None
    force_kill_timeout: Annotated[int | None, Key("seconds after SIGKILL; default 10")] = None


class ShutdownDrain(Table):
    """`[machine.shutdown_drain]`."""

    enabled: Annotated[bool, Key("remove idle machines when the process stops")] = False
    concurrency: Annotated[int, Key("parallel removals; 0 = 3", always=True)] = 0
    max_retries: Annotated[int, Key("per machine; 0 = 3", always=True)] = 0
    retry_backoff: Annotated[Duration, Key("base back-off; 0 = 5s", always=True)] = 0.0


class MachineGlobals(Table):
    """`[machine]`."""

    shutdown_drain: Annotated[ShutdownDrain, Key("idle machines at the stop", always=True)] = fresh(
        default_factory=ShutdownDrain
    )
