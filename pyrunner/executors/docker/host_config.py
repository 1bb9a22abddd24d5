"""``[runners.docker]`` → ``HostConfig`` of a container, one role at a time (facts/executors.md 6.5). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pyrunner.config.docker import DockerConfig
from pyrunner.executors.docker.images.allowed import matches_any
from pyrunner.executors.docker.limits import devices, gpus, isolation, log_config, memory, nano_cpus, ulimits
from pyrunner.executors.docker.security import is_privileged, security_options


class Role(Enum):
    """Which of a job's containers; keys of the config hold for some of them only."""

    BUILD = auto()
    HELPER = auto()
    SERVICE = auto()


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a container gets beside the settings of the config."""

    binds: Sequence[str] = ()
    network_mode: str = ""
    #: ``name:ip`` of services; the config's come first.
    extra_hosts: Sequence[str] = ()
    #: Name without registry rules, for patterns of the config.
    image: str = ""
    use_init: bool = False
    #: From the slot of an autoscaled instance; empty = the one of the config.
    cgroup_parent: str = ""
    #: The engine shall keep the output, although it goes to the job's log as well.
    keep_output: bool = False


def host_config(docker: DockerConfig, role: Role, around: Surroundings) -> dict[str, Any]:
    """The ``HostConfig``; keys without a value are left out.

    Raises:
        SystemFailure: ``runner_configuration_error`` for a value that cannot be read.
    """
    common = {
        "Binds": list(around.binds),
        "NetworkMode": around.network_mode,
        "ExtraHosts": [*docker.extra_hosts, *around.extra_hosts],
        "Dns": list(docker.dns),
        "DnsSearch": list(docker.dns_search),
        "Runtime": docker.runtime,
        "UsernsMode": docker.userns_mode,
        "Isolation": isolation(docker.isolation),
        "ShmSize": docker.shm_size,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": _log_config(docker, role, around),
    }
    own = _of_service(docker, around) if role is Role.SERVICE else _of_job(docker, around)
    if role is Role.BUILD:
        own = {**own, "PidMode": docker.pid_mode}
    if role is not Role.HELPER and around.use_init:
        own = {**own, "Init": True}
    return {key: value for key, value in {**common, **own}.items() if value not in ("", 0, False, None, [], {})}


def _of_job(docker: DockerConfig, around: Surroundings) -> dict[str, Any]:
    return {
        "Memory": memory("memory", docker.memory),
        "MemorySwap": memory("memory_swap", docker.memory_swap),
        "MemoryReservation": memory("memory_reservation", docker.memory_reservation),
        "NanoCpus": nano_cpus(docker.cpus),
        "CpuShares": docker.cpu_shares,
        "CpusetCpus": docker.cpuset_cpus,
        "CpusetMems": docker.cpuset_mems,
        "CgroupParent": around.cgroup_parent or docker.cgroup_parent,
        "Privileged": is_privileged(docker.privileged, around.image, docker.allowed_privileged_images),
        "Devices": devices(docker.devices),
        "DeviceCgroupRules": list(docker.device_cgroup_rules),
        "DeviceRequests": gpus("gpus", docker.gpus),
        "CapAdd": list(docker.cap_add),
        "CapDrop": list(docker.cap_drop),
        "GroupAdd": list(docker.group_add),
        "OomKillDisable": docker.oom_kill_disable,
        "OomScoreAdj": docker.oom_score_adjust,
        "SecurityOpt": security_options(docker.security_opt),
        "Tmpfs": dict(docker.tmpfs),
        "Sysctls": dict(docker.sysctls),
        "Ulimits": ulimits(docker.ulimit),
        "VolumesFrom": list(docker.volumes_from),
        "Links": list(docker.links),
        "IpcMode": docker.ipcmode,
        "VolumeDriver": docker.volume_driver,
    }


def _of_service(docker: DockerConfig, around: Surroundings) -> dict[str, Any]:
    privileged = docker.privileged if docker.services_privileged is None else docker.services_privileged
    return {
        "Memory": memory("service_memory", docker.service_memory),
        "MemorySwap": memory("service_memory_swap", docker.service_memory_swap),
        "MemoryReservation": memory("service_memory_reservation", docker.service_memory_reservation),
        "NanoCpus": nano_cpus(docker.service_cpus),
        "CpuShares": docker.service_cpu_shares,
        "CpusetCpus": docker.service_cpuset_cpus,
        "CgroupParent": around.cgroup_parent or docker.service_cgroup_parent,
        "Privileged": is_privileged(privileged, around.image, docker.allowed_privileged_services),
        "Devices": _service_devices(docker, around.image),
        "DeviceRequests": gpus("service_gpus", docker.service_gpus),
        "SecurityOpt": security_options(docker.services_security_opt),
        "Tmpfs": dict(docker.services_tmpfs),
    }


def _log_config(docker: DockerConfig, role: Role, around: Surroundings) -> dict[str, Any]:
    # The engine's own file holds a job back to a quarter of its speed, and keeps secrets that our log masks.
    if role is Role.BUILD and not docker.log_options and not around.keep_output:
        return {"Type": "none"}
    return log_config(docker.log_options)


def _service_devices(docker: DockerConfig, image: str) -> list[dict[str, str]]:
    patterns = docker.services_devices.items()
    return [device for pattern, texts in patterns if matches_any([pattern], image) for device in devices(texts)]
