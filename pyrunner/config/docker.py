"""`[runners.docker]` (facts/config-toml.md 8)."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Duration, Key, Policies
from pyrunner.config.table import Table

PULL_POLICIES = ("always", "if-not-present", "never")


class ServiceConfig(Table):
    """`[[runners.docker.services]]` and `[[runners.kubernetes.services]]`."""

    name: Annotated[str, Key("image; job variables are expanded", always=True)] = ""
    alias: Annotated[str, Key("host names, separated by space or comma")] = ""
    command: Annotated[list[str], Key("command of the container")] = []
    entrypoint: Annotated[list[str], Key("entrypoint of the container")] = []
    environment: Annotated[list[str], Key("variables KEY=value", secret=True)] = []
    suspend_data_path: Annotated[str, Key("mount path of the data that survives a suspend")] = ""


class CacheVolumesConfig(Table):
    """`[runners.docker.cache_volumes]`: ours alone; how much the engine's cache volumes may take."""

    budget: Annotated[str, Key("size of all cache volumes, e.g. 20GB; the least recently used go", flag="", env="")] = (
        ""
    )
    unused_for: Annotated[Duration, Key("cache volumes that no job has used for so long go", flag="", env="")] = 0.0


class DockerConfig(Table):
    """`[runners.docker]`: the engine, the containers of a job, and what a job may choose."""

    host: Annotated[str, Key("daemon address; empty = environment, then the default socket")] = ""
    tls_cert_path: Annotated[
        str, Key("directory with ca.pem, cert.pem, key.pem", flag="docker-cert-path", env="DOCKER_CERT_PATH")
    ] = ""
    tls_verify: Annotated[bool, Key("verify the daemon", always=True, flag="docker-tlsverify")] = False

    hostname: Annotated[str, Key("container host name")] = ""
    image: Annotated[str, Key("default job image", always=True)] = ""
    runtime: Annotated[str, Key("OCI runtime")] = ""
    memory: Annotated[str, Key("memory limit, <n>[b,k,m,g]")] = ""
    memory_swap: Annotated[str, Key("limit of memory and swap")] = ""
    memory_reservation: Annotated[str, Key("soft memory limit")] = ""
    cgroup_parent: Annotated[str, Key("parent cgroup; a slot template wins if enabled")] = ""
    cpuset_cpus: Annotated[str, Key("CPU set")] = ""
    cpuset_mems: Annotated[str, Key("memory node set")] = ""
    cpus: Annotated[str, Key('number of CPUs, e.g. "1.5"')] = ""
    cpu_shares: Annotated[int, Key("relative CPU weight")] = 0
    dns: Annotated[list[str], Key("DNS servers")] = []
    dns_search: Annotated[list[str], Key("DNS search domains")] = []
    privileged: Annotated[bool, Key("privileged job containers", always=True)] = False
    services_privileged: Annotated[
        bool | None, Key("privileged services; absent = as privileged", flag="docker-services_privileged")
    ] = None
    disable_entrypoint_overwrite: Annotated[
        bool, Key("ignore the image entrypoint that the job gives", always=True)
    ] = False
    user: Annotated[str, Key("default user")] = ""
    allowed_users: Annotated[
        list[str],
        Key("users a job may pick; empty = only user, or any when that is empty too", flag="docker-allowed_users"),
    ] = []
    group_add: Annotated[list[str], Key("additional groups")] = []
    userns_mode: Annotated[str, Key("user namespace", flag="docker-userns")] = ""
    cap_add: Annotated[list[str], Key("capabilities to add")] = []
    cap_drop: Annotated[list[str], Key("capabilities to drop")] = []
    oom_kill_disable: Annotated[bool, Key("do not kill when out of memory", always=True)] = False
    oom_score_adjust: Annotated[int, Key("OOM score")] = 0
    security_opt: Annotated[list[str], Key("security options, key:value")] = []
    services_security_opt: Annotated[list[str], Key("security options of services")] = []
    devices: Annotated[list[str], Key("host devices of the job container")] = []
    device_cgroup_rules: Annotated[list[str], Key("device rules, e.g. c 42:* rmw")] = []
    gpus: Annotated[str, Key("GPUs, as for docker run --gpus")] = ""
    services_devices: Annotated[
        dict[str, list[str]], Key("image pattern → host devices of services", flag="docker-services_devices")
    ] = {}
    disable_cache: Annotated[bool, Key("no automatic cache volumes", always=True)] = False
    volumes: Annotated[list[str], Key("volume specifications")] = []
    volume_keep: Annotated[bool, Key("keep volumes on removal", always=True)] = False
    volume_driver: Annotated[str, Key("driver of created volumes")] = ""
    volume_driver_ops: Annotated[dict[str, str], Key("options of the volume driver")] = {}
    cache_dir: Annotated[str, Key("cache directory on the host or in the container")] = ""
    extra_hosts: Annotated[list[str], Key("additional hosts, name:ip")] = []
    volumes_from: Annotated[list[str], Key("containers to inherit volumes from")] = []
    network_mode: Annotated[str, Key("network; disables per-job networks")] = ""
    pid_mode: Annotated[str, Key("PID namespace")] = ""
    ipcmode: Annotated[str, Key("IPC namespace", env="DOCKER_IPC_MODE")] = ""
    mac_address: Annotated[str, Key("MAC address")] = ""
    links: Annotated[list[str], Key("container links")] = []
    services: Annotated[list[ServiceConfig], Key("services of every job", flag="")] = []
    services_limit: Annotated[int | None, Key("services per job; absent or -1 = unlimited")] = None
    service_memory: Annotated[str, Key("memory limit of services")] = ""
    service_memory_swap: Annotated[str, Key("limit of memory and swap of services")] = ""
    service_memory_reservation: Annotated[str, Key("soft memory limit of services")] = ""
    service_cgroup_parent: Annotated[str, Key("parent cgroup of services")] = ""
    service_slot_cgroup_template: Annotated[str, Key("slot cgroup template of services")] = ""
    service_cpuset_cpus: Annotated[str, Key("CPU set of services")] = ""
    service_cpus: Annotated[str, Key("number of CPUs of services")] = ""
    service_cpu_shares: Annotated[int, Key("relative CPU weight of services")] = 0
    service_gpus: Annotated[str, Key("GPUs of services", flag="docker-service_gpus")] = ""
    wait_for_services_timeout: Annotated[int, Key("seconds; 0 = 30, negative = do not wait")] = 0
    allowed_images: Annotated[list[str], Key("patterns of images a job may use; empty = any")] = []
    allowed_privileged_images: Annotated[list[str], Key("patterns of images that may be privileged")] = []
    allowed_privileged_services: Annotated[list[str], Key("patterns of services that may be privileged")] = []
    allowed_pull_policies: Annotated[
        list[str], Key("policies a job may name; empty = those of pull_policy", choices=PULL_POLICIES)
    ] = []
    allowed_services: Annotated[list[str], Key("patterns of services a job may use; empty = any")] = []
    pull_policy: Annotated[
        Policies, Key("always (default), if-not-present, never; several = fallbacks", choices=PULL_POLICIES)
    ] = []
    isolation: Annotated[str, Key("isolation on Windows", choices=("default", "hyperv", "process"))] = ""
    shm_size: Annotated[int, Key("size of /dev/shm in bytes", always=True)] = 0
    tmpfs: Annotated[dict[str, str], Key("path → mount options of tmpfs mounts")] = {}
    services_tmpfs: Annotated[dict[str, str], Key("path → mount options of tmpfs mounts of services")] = {}
    sysctls: Annotated[dict[str, str], Key("kernel parameters")] = {}
    helper_image: Annotated[str, Key("helper image; variables are expanded")] = ""
    helper_image_flavor: Annotated[str, Key("alpine (default), alpine3.x, alpine-latest, ubuntu, ubi-fips")] = ""
    container_labels: Annotated[dict[str, str], Key("container labels, values expanded", env="")] = {}
    enable_ipv6: Annotated[bool, Key("IPv6 on per-job networks", env="")] = False
    ulimit: Annotated[dict[str, str], Key("name → soft[:hard]")] = {}
    network_mtu: Annotated[int, Key("MTU of per-job networks", always=True, env="")] = 0
    log_options: Annotated[dict[str, str], Key("json-file log options, only env and labels")] = {}
    cache_volumes: Annotated[CacheVolumesConfig | None, Key("how much cache volumes may take", flag="")] = None
