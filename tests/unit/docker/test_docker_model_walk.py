"""Every key of ``[runners.docker]`` and of its services, and what reaches the engine of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Image, JobInfo, JobResponse, JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import ConfigError, SystemFailure
from pyrunner.config.docker import CacheVolumesConfig, DockerConfig, ServiceConfig
from pyrunner.config.keys import names_of
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.docker.context import docker_job
from pyrunner.executors.docker.engine.address import engine_address
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.docker.session import DockerSession
from pyrunner.executors.docker.volumes.eviction import CachePolicy, cache_policy
from pyrunner.executors.protocol import JobPlace, PrepareOptions
from pyrunner.testing.executor_contract import RecordingTrace
from pyrunner.testing.memory_engine import MadeContainer, MemoryEngine


@dataclass(kw_only=True)
class Seen:
    """What an engine saw of one job with one service."""

    engine: MemoryEngine
    log: str

    @property
    def build(self) -> MadeContainer:
        return self.engine.of_type(ObjectType.BUILD)

    @property
    def helper(self) -> MadeContainer:
        return self.engine.of_type(ObjectType.HELPER)

    @property
    def service(self) -> MadeContainer:
        return self.engine.of_type(ObjectType.SERVICE)

    @property
    def wait(self) -> MadeContainer:
        return self.engine.of_type(ObjectType.WAIT)


def run_job(
    docker: dict[str, Any],
    *,
    flags: tuple[str, ...] = (),
    image: Image | None = None,
    services: tuple[Image, ...] = (Image(name="redis"),),
    variables: dict[str, str] | None = None,
    api: tuple[int, int] = (1, 44),
    runner: dict[str, Any] | None = None,
    data: object = None,
) -> Seen:
    """Prepare a job and clean up behind it."""
    engine, trace, token = MemoryEngine(api=api), RecordingTrace(), CancelToken()
    items = {"WHO": "world", **dict.fromkeys(flags, "true"), **(variables or {})}
    options = PrepareOptions(
        config=RunnerConfig(token="glrt-walk", executor="docker", docker=DockerConfig(**docker), **(runner or {})),
        data=data,
        job=JobResponse(id=7, job_info=JobInfo(project_id=3), image=image, services=list(services)),
        variables=Variables([]),
        trace=trace,
        token=token,
    )
    place = JobPlace(
        project_dir="/builds/group/project",
        temp_dir="/builds/group/project.tmp",
        git_strategy="fetch",
        variables=Variables([JobVariable(key=key, value=value, public=True) for key, value in items.items()]),
    )
    config = options.config.docker or DockerConfig()
    session = DockerSession(engine, docker_job(options, config, place, "/builds"))
    try:
        session.prepare(image.name if image else config.image or "alpine", "bash")
    finally:
        session.cleanup()
        token.close()
    return Seen(engine=engine, log=trace.data.decode())


Check = Callable[[Seen], object]


def in_host(key: str, value: object, *roles: str) -> Check:
    """`value` stands under `key` of ``HostConfig`` in the containers `roles`, and in no other."""

    def check(seen: Seen) -> None:
        for role in ("build", "helper", "service"):
            found = getattr(seen, role).host.get(key)
            assert (found == value) is (role in roles), (role, key, found)

    return check


JOB = ("build", "helper")
ALL = ("build", "helper", "service")
DEVICE = [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}]
GPU = [{"Driver": "", "Count": -1, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}]


AS_ROOT = Image(name="a", executor_opts={"docker": {"user": "root"}})
PER_BUILD = {"job": {"flags": ("FF_NETWORK_PER_BUILD",)}}


def refuses(text: str, **job: Any) -> Check:
    def check(seen: Seen) -> None:
        raise AssertionError("only for refusals")

    check.refused = (text, job)  # type: ignore[attr-defined]
    return check


def equal(what: Callable[[Seen], object], expected: object) -> Check:
    def check(seen: Seen) -> None:
        assert what(seen) == expected

    return check


def only_volume(seen: Seen) -> tuple[str, dict[str, str]]:
    (volume,) = seen.engine.made_volumes.values()
    return volume.driver, dict(volume.options)


#: Key → a value, the check of what the engine saw, and more of config and job that the key needs to show.
WALK: dict[str, tuple[object, Check, dict[str, Any]]] = {
    "hostname": ("h", equal(lambda seen: (seen.build.body["Hostname"], seen.helper.body["Hostname"]), ("h", "h")), {}),
    "image": ("busybox", equal(lambda seen: seen.build.body["Image"], "sha256:busybox:latest"), {}),
    "runtime": ("runsc", in_host("Runtime", "runsc", *ALL), {}),
    "memory": ("512m", in_host("Memory", 512 << 20, *JOB), {}),
    "memory_swap": ("1g", in_host("MemorySwap", 1 << 30, *JOB), {}),
    "memory_reservation": ("64m", in_host("MemoryReservation", 64 << 20, *JOB), {}),
    "cgroup_parent": ("jobs", in_host("CgroupParent", "jobs", *JOB), {}),
    "cpuset_cpus": ("0,1", in_host("CpusetCpus", "0,1", *JOB), {}),
    "cpuset_mems": ("0", in_host("CpusetMems", "0", *JOB), {}),
    "cpus": ("1.5", in_host("NanoCpus", 1_500_000_000, *JOB), {}),
    "cpu_shares": (512, in_host("CpuShares", 512, *JOB), {}),
    "dns": (["1.1.1.1"], in_host("Dns", ["1.1.1.1"], *ALL), {}),
    "dns_search": (["example"], in_host("DnsSearch", ["example"], *ALL), {}),
    "privileged": (True, in_host("Privileged", True, *ALL), {}),
    "services_privileged": (True, in_host("Privileged", True, "service"), {}),
    "disable_entrypoint_overwrite": (
        True,
        equal(lambda seen: "Entrypoint" in seen.build.body, False),
        {"job": {"image": Image(name="a", entrypoint=["/x"])}},
    ),
    "user": ("1000", equal(lambda seen: (seen.build.body["User"], seen.helper.body.get("User")), ("1000", None)), {}),
    "allowed_users": (
        ["1000"],
        refuses('user "root" is not an allowed user', image=AS_ROOT),
        {},
    ),
    "group_add": (["audio"], in_host("GroupAdd", ["audio"], *JOB), {}),
    "userns_mode": ("host", in_host("UsernsMode", "host", *ALL), {}),
    "cap_add": (["NET_ADMIN"], in_host("CapAdd", ["NET_ADMIN"], *JOB), {}),
    "cap_drop": (["ALL"], in_host("CapDrop", ["ALL"], *JOB), {}),
    "oom_kill_disable": (True, in_host("OomKillDisable", True, *JOB), {}),
    "oom_score_adjust": (500, in_host("OomScoreAdj", 500, *JOB), {}),
    "security_opt": (["no-new-privileges"], in_host("SecurityOpt", ["no-new-privileges"], *JOB), {}),
    "services_security_opt": (["label:disable"], in_host("SecurityOpt", ["label:disable"], "service"), {}),
    "devices": (["/dev/fuse"], in_host("Devices", DEVICE, *JOB), {}),
    "device_cgroup_rules": (["c 42:* rmw"], in_host("DeviceCgroupRules", ["c 42:* rmw"], *JOB), {}),
    "gpus": ("all", in_host("DeviceRequests", GPU, *JOB), {}),
    "services_devices": ({"red*": ["/dev/fuse"], "other": ["/x"]}, in_host("Devices", DEVICE, "service"), {}),
    "disable_cache": (
        True,
        equal(lambda seen: seen.engine.made_volumes, {}),
        {"volumes": ["/cache"]},
    ),
    "volumes": (
        ["/host:/in:ro"],
        lambda seen: [in_binds(seen, role, "/host:/in:ro") for role in ALL],
        {},
    ),
    "volume_keep": (True, equal(lambda seen: seen.build.removed_volumes, False), {}),
    "volume_driver": ("nfs", equal(only_volume, ("nfs", {})), {}),
    "volume_driver_ops": ({"o": "rw"}, equal(only_volume, ("", {"o": "rw"})), {}),
    "cache_dir": (
        "/srv/cache",
        lambda seen: [in_binds(seen, role, "/srv/cache/runner-", ":/builds") for role in ALL],
        {},
    ),
    "extra_hosts": (["a:1.2.3.4"], lambda seen: [in_hosts(seen, role, "a:1.2.3.4") for role in ALL], {}),
    "volumes_from": (["data"], in_host("VolumesFrom", ["data"], *JOB), {}),
    "network_mode": ("mine", in_host("NetworkMode", "mine", *ALL), {}),
    "pid_mode": ("host", in_host("PidMode", "host", "build"), {}),
    "ipcmode": ("host", in_host("IpcMode", "host", *JOB), {}),
    "mac_address": (
        "02:42:ac:11:00:02",
        equal(
            lambda seen: list(seen.build.body["NetworkingConfig"]["EndpointsConfig"].values())[0]["MacAddress"],
            "02:42:ac:11:00:02",
        ),
        {},
    ),
    "links": (["db:db"], in_host("Links", ["db:db"], *JOB), {}),
    "services": (
        [ServiceConfig(name="redis:$WHO", alias="a,b c", command=["x"], entrypoint=["y"], environment=["K=$WHO"])],
        lambda seen: service_of_the_config(seen),
        {"job": {"services": ()}},
    ),
    "services_limit": (0, refuses("too many services requested: 1, only 0 allowed"), {}),
    "service_memory": ("128m", in_host("Memory", 128 << 20, "service"), {}),
    "service_memory_swap": ("-1", in_host("MemorySwap", -1, "service"), {}),
    "service_memory_reservation": ("64m", in_host("MemoryReservation", 64 << 20, "service"), {}),
    "service_cgroup_parent": ("sv", in_host("CgroupParent", "sv", "service"), {}),
    "service_cpuset_cpus": ("0", in_host("CpusetCpus", "0", "service"), {}),
    "service_cpus": ("3/4", in_host("NanoCpus", 750_000_000, "service"), {}),
    "service_cpu_shares": (7, in_host("CpuShares", 7, "service"), {}),
    "service_gpus": ("all", in_host("DeviceRequests", GPU, "service"), {}),
    "wait_for_services_timeout": (
        -1,
        equal(lambda seen: (len(seen.engine.made), "Waiting for services" in seen.log), (3, False)),
        {},
    ),
    "allowed_images": (["ruby:*"], refuses("disallowed image", image=Image(name="alpine")), {}),
    "allowed_privileged_images": (["x/*"], in_host("Privileged", True, "service"), {"privileged": True}),
    "allowed_privileged_services": (["x/*"], in_host("Privileged", True, *JOB), {"privileged": True}),
    "allowed_pull_policies": (
        ["never"],
        refuses("is not one of the allowed_pull_policies"),
        {"pull_policy": ["always"]},
    ),
    "allowed_services": (["ruby:*"], refuses("disallowed image"), {}),
    "pull_policy": (
        ["never"],
        equal(lambda seen: "Using effective pull policy of [never] for container redis:latest" in seen.log, True),
        {},
    ),
    "isolation": ("default", in_host("Isolation", "default", *ALL), {}),
    "shm_size": (1 << 26, in_host("ShmSize", 1 << 26, *ALL), {}),
    "tmpfs": ({"/t": "rw"}, in_host("Tmpfs", {"/t": "rw"}, *JOB), {}),
    "services_tmpfs": ({"/t": "rw"}, in_host("Tmpfs", {"/t": "rw"}, "service"), {}),
    "sysctls": ({"net.core.somaxconn": "7"}, in_host("Sysctls", {"net.core.somaxconn": "7"}, *JOB), {}),
    "helper_image": (
        "mine:$WHO",
        equal(lambda seen: (seen.helper.body["Image"], seen.wait.body["Image"]), ("sha256:mine:world",) * 2),
        {},
    ),
    "helper_image_flavor": ("ubuntu", equal(lambda seen: ":ubuntu-x86_64-" in seen.helper.body["Image"], True), {}),
    "container_labels": (
        {"team": "$WHO"},
        equal(lambda seen: [getattr(seen, role).body["Labels"].get("team") for role in ALL], ["world"] * 3),
        {},
    ),
    "enable_ipv6": (True, equal(lambda seen: network(seen)["EnableIPv6"], True), PER_BUILD),
    "ulimit": (
        {"nofile": "1024:2048", "core": "0"},
        in_host(
            "Ulimits",
            [{"Name": "nofile", "Soft": 1024, "Hard": 2048}, {"Name": "core", "Soft": 0, "Hard": 0}],
            *JOB,
        ),
        {},
    ),
    "network_mtu": (
        1400,
        equal(lambda seen: network(seen)["Options"], {"com.docker.network.driver.mtu": "1400"}),
        PER_BUILD,
    ),
    "log_options": (
        {"env": "CI_JOB_ID", "labels": "x"},
        in_host("LogConfig", {"Type": "json-file", "Config": {"env": "CI_JOB_ID", "labels": "x"}}, *ALL),
        {},
    ),
}  # fmt: skip

#: Where the engine is, slots of autoscaled instances, what happens between jobs: each has a test of its own.
ELSEWHERE = {"host", "tls_cert_path", "tls_verify", "service_slot_cgroup_template", "cache_volumes"}


def in_binds(seen: Seen, role: str, start: str, end: str = "") -> None:
    binds = getattr(seen, role).host["Binds"]
    assert any(bind.startswith(start) and bind.endswith(end) for bind in binds), (role, binds)


def in_hosts(seen: Seen, role: str, entry: str) -> None:
    assert entry in getattr(seen, role).host["ExtraHosts"]


def network(seen: Seen) -> Any:
    (made,) = seen.engine.made_networks.values()
    return made.body


def service_of_the_config(seen: Seen) -> None:
    body = seen.service.body
    assert body["Image"] == "sha256:redis:world"
    assert (body["Cmd"], body["Entrypoint"]) == (["x"], ["y"])
    assert "K=world" in body["Env"]
    hosts = seen.build.host["ExtraHosts"]
    assert {host.partition(":")[0] for host in hosts} >= {"redis", "a", "b", "c"}


def test_walk_knows_every_key_of_the_model() -> None:
    assert set(WALK) | ELSEWHERE == set(names_of(DockerConfig))
    assert not set(WALK) & ELSEWHERE


def test_walk_knows_every_key_of_a_service() -> None:
    # the last one is for Kubernetes alone
    known = {"name", "alias", "command", "entrypoint", "environment", "suspend_data_path"}
    assert set(names_of(ServiceConfig)) == known


@pytest.mark.parametrize("key", sorted(WALK))
def test_key_reaches_the_engine(key: str) -> None:
    value, check, more = WALK[key]
    keys = {name: setting for name, setting in more.items() if name != "job"}
    job = more.get("job", {})
    refused = getattr(check, "refused", None)
    if refused:
        text, fields = refused
        with pytest.raises(SystemFailure, match=text) as caught:
            run_job({**keys, key: value}, **fields)
        assert caught.value.reason == "runner_configuration_error"
        assert not caught.value.retriable
        run_job({name: setting for name, setting in keys.items() if name != "pull_policy"}, **fields)
        return
    check(run_job({**keys, key: value}, **job))
    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        # the check is about this key: without it, it fails
        check(run_job(keys, **job))


def test_engine_keys_lead_to_the_engine() -> None:
    address = engine_address(DockerConfig(host="tcp://h:1", tls_cert_path="/certs", tls_verify=True), {})
    assert (address.host, address.tls_directory, address.tls_verify) == ("tcp://h:1", "/certs", True)


def test_cache_volumes_have_a_policy() -> None:
    assert cache_policy(DockerConfig()) is None
    assert cache_policy(DockerConfig(cache_volumes=CacheVolumesConfig())) is None
    policy = cache_policy(DockerConfig(cache_volumes=CacheVolumesConfig(budget="2GB", unused_for=60.0)))
    assert policy == CachePolicy(budget=2 * 10**9, unused_for=60.0)
    with pytest.raises(ConfigError, match=r'\[runners.docker.cache_volumes\] budget: "much" is no size'):
        cache_policy(DockerConfig(cache_volumes=CacheVolumesConfig(budget="much")))


class Slot:
    slot = 3


def test_slot_of_an_instance_chooses_the_cgroup() -> None:
    template = {"service_slot_cgroup_template": "sv-${slot}", "cgroup_parent": "p", "service_cgroup_parent": "p"}
    seen = run_job(template, runner={"use_slot_cgroups": True}, data=Slot())
    parents = [getattr(seen, role).host["CgroupParent"] for role in ALL]
    assert parents == ["gitlab-runner/slot-3", "gitlab-runner/slot-3", "sv-3"]
    seen = run_job(template, runner={"use_slot_cgroups": True, "slot_cgroup_template": "x/$slot"}, data=Slot())
    assert seen.build.host["CgroupParent"] == "x/3"
    seen = run_job(template, runner={"use_slot_cgroups": True})
    assert {getattr(seen, role).host["CgroupParent"] for role in ALL} == {"p"}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"memory": "12x"}, "Error parsing docker memory: invalid size: '12x'"),
        ({"memory": "nan"}, "Error parsing docker memory: invalid size: 'nan'"),
        ({"service_memory_swap": "-2"}, "Error parsing docker service_memory_swap: invalid size: '-2'"),
        ({"cpus": "two"}, "failed to parse two as a rational number"),
        ({"cpus": "1/0"}, "failed to parse 1/0 as a rational number"),
        ({"cpus": "1e999999999"}, "failed to parse 1e999999999 as a rational number"),
        ({"service_cpus": "nan"}, "failed to parse nan as a rational number"),
        ({"ulimit": {"nofile": "many"}}, "invalid soft limit value: nofile"),
        ({"ulimit": {"nofile": "1:many"}}, "invalid hard limit value: nofile"),
        ({"ulimit": {"nofile": "9:1"}}, "invalid hard limit value: nofile = 9:1: below the soft limit"),
        (
            {"log_options": {"max-size": "1m", "env": "x"}},
            r'invalid log options: only \["env" "labels"\] are allowed, but found: \["max-size"\]',
        ),
        ({"devices": ["a:b:c:d"]}, 'failed to parse device string "a:b:c:d"'),
        ({"gpus": "colour=red"}, 'gpus: unexpected key "colour"'),
        ({"gpus": "count=x"}, 'gpus: invalid count "x"'),
        ({"isolation": "vm"}, 'isolation "vm" is not known'),
        ({"security_opt": ["seccomp=/no/such.json"]}, "cannot load the seccomp profile: No such file"),
        ({"volumes": ["/a", "/a"]}, 'volume for container path "/a" is already defined'),
        ({"volumes": ["/"]}, "build directory needs to be a non-root path"),
    ],
)
def test_wrong_value_is_named_and_not_tried_again(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(SystemFailure, match=text) as caught:
        run_job(keys)
    assert caught.value.reason == "runner_configuration_error"
    assert not caught.value.retriable


def test_seccomp_profile_goes_as_its_content(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text('{ "defaultAction": "SCMP_ACT_ALLOW" }\n')
    options = [f"seccomp={profile}", "seccomp=unconfined", "apparmor=x"]
    seen = run_job({"security_opt": options, "services_security_opt": [f"seccomp:{profile}"]})
    content = 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}'
    assert seen.build.host["SecurityOpt"] == [content, "seccomp=unconfined", "apparmor=x"]
    assert seen.service.host["SecurityOpt"] == [content]


def test_gpus_as_the_docker_command_takes_them() -> None:
    request = run_job({"gpus": '"device=0,2","capabilities=utility,gpu",driver=nvidia'}).build.host["DeviceRequests"]
    expected = {"Driver": "nvidia", "DeviceIDs": ["0", "2"], "Capabilities": [["gpu", "utility"]], "Count": 0}
    assert request == [{**expected, "Options": {}}]
    assert run_job({"gpus": "2"}).build.host["DeviceRequests"][0]["Count"] == 2


def test_mac_address_needs_a_newer_engine() -> None:
    seen = run_job({"mac_address": "02:42:ac:11:00:02"}, api=(1, 43))
    assert "NetworkingConfig" not in seen.build.body
    assert "mac_address" in seen.log


def test_init_is_for_build_and_services() -> None:
    seen = run_job({}, flags=("FF_USE_INIT_WITH_DOCKER_EXECUTOR",))
    assert [getattr(seen, role).host.get("Init") for role in ALL] == [True, None, True]


def test_no_container_is_ever_restarted_by_the_engine() -> None:
    seen = run_job({})
    assert {made.host["RestartPolicy"]["Name"] for made in seen.engine.made.values()} == {"no"}
