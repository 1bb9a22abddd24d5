"""``[runners.docker]`` → ``HostConfig`` of a container, one role at a time (facts/executors.md 6.5). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from typing import Any

from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig


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
        "Isolation": docker.isolation,
        "ShmSize": docker.shm_size,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "json-file", "Config": dict(docker.log_options)},
    }
    own = _of_service(docker) if role is Role.SERVICE else _of_job(docker)
    if role is Role.BUILD:
        own = {**own, "PidMode": docker.pid_mode}
    if role is not Role.HELPER and around.use_init:
        own = {**own, "Init": True}
    return {key: value for key, value in {**common, **own}.items() if value not in ("", 0, False, None, [], {})}


def _of_job(docker: DockerConfig) -> dict[str, Any]:
    return {
        "Memory": memory("memory", docker.memory),
        "MemorySwap": memory("memory_swap", docker.memory_swap),
        "MemoryReservation": memory("memory_reservation", docker.memory_reservation),
        "NanoCpus": nano_cpus("cpus", docker.cpus),
        "CpuShares": docker.cpu_shares,
        "CpusetCpus": docker.cpuset_cpus,
        "CpusetMems": docker.cpuset_mems,
        "CgroupParent": docker.cgroup_parent,
        "Privileged": docker.privileged,
        "CapAdd": list(docker.cap_add),
        "CapDrop": list(docker.cap_drop),
        "GroupAdd": list(docker.group_add),
        "OomKillDisable": docker.oom_kill_disable,
        "OomScoreAdj": docker.oom_score_adjust,
        "SecurityOpt": list(docker.security_opt),
        "Tmpfs": dict(docker.tmpfs),
        "Sysctls": dict(docker.sysctls),
        "VolumesFrom": list(docker.volumes_from),
        "Links": list(docker.links),
        "IpcMode": docker.ipcmode,
        "VolumeDriver": docker.volume_driver,
    }


def _of_service(docker: DockerConfig) -> dict[str, Any]:
    privileged = docker.privileged if docker.services_privileged is None else docker.services_privileged
    return {
        "Memory": memory("service_memory", docker.service_memory),
        "MemorySwap": memory("service_memory_swap", docker.service_memory_swap),
        "MemoryReservation": memory("service_memory_reservation", docker.service_memory_reservation),
        "NanoCpus": nano_cpus("service_cpus", docker.service_cpus),
        "CpuShares": docker.service_cpu_shares,
        "CpusetCpus": docker.service_cpuset_cpus,
        "CgroupParent": docker.service_cgroup_parent,
        "Privileged": privileged,
        "SecurityOpt": list(docker.services_security_opt),
        "Tmpfs": dict(docker.services_tmpfs),
    }


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def memory(key: str, text: str) -> int:
    """Bytes of ``512m``; 0 for no text, -1 stays (unlimited swap).

    Raises:
        SystemFailure: it is no size.
    """
    lowered = text.strip().lower().removesuffix("b") if text.strip().lower() != "b" else ""
    number = lowered.rstrip("kmgtp").removesuffix("i")
    unit = lowered[len(lowered.rstrip("kmgtp")) :]
    try:
        return int(Decimal(number) * _UNITS[unit]) if text.strip() else 0
    except (InvalidOperation, KeyError, ValueError, OverflowError) as error:
        raise _bad(key, text, 'a size such as "512m"') from error


def nano_cpus(key: str, text: str) -> int:
    """Billionths of a CPU for ``1.5``; 0 for no text.

    Raises:
        SystemFailure: it is no number.
    """
    if not text.strip():
        return 0
    try:
        top, _, bottom = text.partition("/")
        value = Decimal(top.strip()) / Decimal(bottom.strip() or "1")
        return int(value * 1_000_000_000)
    except (ArithmeticError, ValueError) as error:
        raise _bad(key, text, 'a number of CPUs such as "1.5"') from error


def _bad(key: str, text: str, expected: str) -> SystemFailure:
    return SystemFailure(f'[runners.docker] {key} = "{text}": expected {expected}', reason="runner_configuration_error")
