"""Settings of ``[runners.docker]`` as a real engine has taken them, and as a process in the container sees them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from pyrunner.api.wire import Image
from pyrunner.base.errors import JobFailure, SystemFailure
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.docker_stage import DockerStages


def inspected(identity: str) -> dict[str, Any]:
    told = subprocess.run(["docker", "inspect", identity], check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(told)[0]
    return found


HOST: dict[str, tuple[object, str, object]] = {
    "memory": ("64m", "Memory", 64 << 20),
    "memory_swap": ("128m", "MemorySwap", 128 << 20),
    "memory_reservation": ("32m", "MemoryReservation", 32 << 20),
    "cpus": ("0.75", "NanoCpus", 750_000_000),
    "cpuset_cpus": ("0", "CpusetCpus", "0"),
    "shm_size": (1 << 20, "ShmSize", 1 << 20),
    "ulimit": ({"nofile": "512:1024"}, "Ulimits", [{"Name": "nofile", "Soft": 512, "Hard": 1024}]),
    "sysctls": ({"net.core.somaxconn": "77"}, "Sysctls", {"net.core.somaxconn": "77"}),
    "cap_add": (["NET_ADMIN"], "CapAdd", ["CAP_NET_ADMIN"]),
    "cap_drop": (["MKNOD"], "CapDrop", ["CAP_MKNOD"]),
    "security_opt": (["no-new-privileges"], "SecurityOpt", ["no-new-privileges"]),
    "dns": (["10.9.8.7"], "Dns", ["10.9.8.7"]),
    "dns_search": (["example.test"], "DnsSearch", ["example.test"]),
    "tmpfs": ({"/scratch": "rw,size=1m"}, "Tmpfs", {"/scratch": "rw,size=1m"}),
    "userns_mode": ("host", "UsernsMode", "host"),
    "group_add": (["1234"], "GroupAdd", ["1234"]),
    "oom_score_adjust": (321, "OomScoreAdj", 321),
    "ipcmode": ("private", "IpcMode", "private"),
    "device_cgroup_rules": (["c 42:* rmw"], "DeviceCgroupRules", ["c 42:* rmw"]),
    "privileged": (True, "Privileged", True),
    "log_options": ({"env": "CI"}, "LogConfig", {"Type": "json-file", "Config": {"env": "CI"}}),
}  # fmt: skip


def settle(value: object) -> object:
    """Engines of other versions write capabilities with or without their prefix."""
    if not isinstance(value, list):
        return value
    return [text.removeprefix("CAP_") if isinstance(text, str) else text for text in value]


def test_engine_has_taken_every_setting(scope: DockerScope) -> None:
    together = {name: value for name, (value, _, _) in HOST.items() if name != "privileged"}
    with DockerStages(scope, **together) as job:
        for kind in (ObjectType.BUILD, ObjectType.HELPER):
            host = inspected(job.container(kind).id)["HostConfig"]
            for name in together:
                _, key, expected = HOST[name]
                assert settle(host[key]) == settle(expected), (kind, name)
        seen = job.run(
            "ulimit -n; cat /proc/sys/net/core/somaxconn; id -G; cat /proc/self/oom_score_adj; "
            "df -m /dev/shm | tail -n 1 | awk '{print $2}'; grep -c 10.9.8.7 /etc/resolv.conf; "
            "awk '$2 == \"/scratch\" {print $3}' /proc/mounts; grep NoNewPrivs /proc/self/status\n"
        )
        assert seen.split("\n") == ["512", "77", "0 1234", "321", "1", "1", "tmpfs", "NoNewPrivs:\t1", ""]


def test_privileges_devices_and_hosts(scope: DockerScope) -> None:
    settings: dict[str, object] = {
        "privileged": True,
        "allowed_privileged_images": ["other/*"],
        "devices": ["/dev/null:/dev/nothing:r"],
        "extra_hosts": ["far:10.1.2.3"],
        "container_labels": {"team": "t-$CI"},
        "hostname": "here",
    }
    with DockerStages(scope, variables={"CI": "true"}, **settings) as job:
        found = inspected(job.container(ObjectType.BUILD).id)
        assert found["HostConfig"]["Privileged"] is False
        assert found["Config"]["Labels"]["team"] == "t-true"
        seen = job.run("hostname; ls /dev/nothing; awk '/far/ {print $1}' /etc/hosts\n")
        assert seen == "here\n/dev/nothing\n10.1.2.3\n"


def test_user_is_for_the_build_container_alone(scope: DockerScope) -> None:
    with DockerStages(scope, user="tester") as job:
        assert job.run("id -un\n") == "tester\n"
        assert job.run("id -un\n", helper=True) == "root\n"


def test_lack_of_memory_is_named_as_the_cause(scope: DockerScope) -> None:
    with (
        DockerStages(scope, memory="16m", memory_swap="16m") as job,
        pytest.raises(JobFailure, match="lack of memory") as caught,
    ):
        job.run("head -c 200m /dev/zero | tail > /dev/null; exit 137\n")
    assert caught.value.job_exit_code == 137


def test_setting_that_the_engine_refuses_is_a_configuration_error(scope: DockerScope) -> None:
    stages = DockerStages(scope, cap_add=["NOT_A_CAPABILITY"])
    with pytest.raises(SystemFailure, match="NOT_A_CAPABILITY") as caught:
        stages.prepare()
    stages.executor.cleanup()
    assert caught.value.reason == "runner_configuration_error"


def test_entrypoint_of_the_job_is_used_unless_forbidden(scope: DockerScope) -> None:
    image = Image(name=scope.images.build, entrypoint=["/bin/sh", "-c", 'export MARK=1; exec "$@"', "sh"])
    with DockerStages(scope, image=image) as job:
        assert job.run("echo mark=$MARK\n") == "mark=1\n"
    with DockerStages(scope, image=image, disable_entrypoint_overwrite=True) as job:
        assert job.run("echo mark=$MARK\n") == "mark=\n"
