"""Networks and volumes on a real engine (facts/executors.md 6.6, 6.7)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.wire import Cache, GitInfo, Image
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.docker_stage import DockerStages

PER_BUILD = {"FF_NETWORK_PER_BUILD": "true"}


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def inspected(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(docker(*arguments))[0]
    return found


@pytest.fixture
def named_network(scope: DockerScope) -> Iterator[str]:
    name = f"pyrunner-test-{scope.system_id}"
    docker("network", "create", name)
    yield name
    docker("network", "rm", name)


def test_network_of_the_job_has_mtu_labels_and_a_name_in_the_variables(scope: DockerScope) -> None:
    with DockerStages(scope, variables=PER_BUILD, network_mtu=1400) as job:
        (network,) = scope.belongings(job.engine).networks
        found = inspected("network", "inspect", network.name)
        assert found["Options"] == {"com.docker.network.driver.mtu": "1400"}
        assert found["EnableIPv6"] is False
        assert job.run("echo $CI_BUILD_NETWORK_NAME; cat /sys/class/net/eth0/mtu\n") == f"{network.name}\n1400\n"
        assert job.run("ping -c 1 -W 2 build >/dev/null && echo found\n", helper=True) == "found\n"


def test_other_containers_on_the_network_of_a_job_go_with_it(scope: DockerScope) -> None:
    job = DockerStages(scope, variables=PER_BUILD)
    with job:
        (network,) = scope.belongings(job.engine).networks
        stranger = docker("run", "-d", "--network", network.name, scope.images.build, "sleep", "1000")
    told = subprocess.run(["docker", "inspect", stranger], check=False, capture_output=True)
    assert told.returncode != 0


def test_named_network_is_used_and_kept(scope: DockerScope, named_network: str) -> None:
    service = Image(name=scope.images.build, alias="web", command=["sleep", "1000"])
    stages = DockerStages(
        scope, services=[service], variables=PER_BUILD, network_mode=named_network, wait_for_services_timeout=-1
    )
    with stages as job:
        assert not scope.belongings(job.engine).networks
        assert job.run("echo x$CI_BUILD_NETWORK_NAME\n") == "x\n"
        found = inspected("inspect", job.container(ObjectType.BUILD).id)
        assert list(found["NetworkSettings"]["Networks"]) == [named_network]
    assert inspected("network", "inspect", named_network)["Name"] == named_network


def test_cache_volume_is_named_labelled_writable_and_kept_for_the_next_job(scope: DockerScope) -> None:
    image = Image(name=scope.images.build, executor_opts={"docker": {"user": "tester"}})
    names = []
    for expected in ("1", "2"):
        with DockerStages(scope, image=image, volumes=["/cache", "relative"]) as job:
            job.run(":\n", helper=True)
            assert job.run("echo x >> /cache/count; wc -l < /cache/count\n") == f"{expected}\n"
            assert job.run("ls -d /builds/project-3/relative\n") == "/builds/project-3/relative\n"
            volumes = {
                item.labels["com.gitlab.gitlab-runner.destination"]: item
                for item in scope.belongings(job.engine).volumes
            }
            kept = volumes["/cache"]
            names.append(kept.name)
            labels = {key.rpartition(".")[2]: value for key, value in kept.labels.items()}
            assert (labels["type"], labels["protected"], labels["reusable"]) == ("cache", "false", "true")
            assert volumes["/builds"].labels["com.gitlab.gitlab-runner.reusable"] == "false"
    assert names[0] == names[1]
    assert names[0].startswith("runner-")


@pytest.mark.parametrize(
    ("job", "suffix"),
    [
        ({"git_info": GitInfo(protected=True)}, True),
        ({"git_info": GitInfo(protected=False)}, False),
        ({"cache": [Cache(key="a-protected")]}, True),
        ({"cache": [Cache(key="a-non_protected")]}, False),
    ],
)
def test_protected_refs_have_caches_of_their_own(scope: DockerScope, job: dict[str, Any], suffix: bool) -> None:
    with DockerStages(scope, job=job, volumes=["/cache"]) as stages:
        names = [item.name for item in scope.belongings(stages.engine).volumes if item.name.startswith("runner-")]
        assert {name.endswith("-protected") for name in names} == {suffix}


def test_binds_with_modes_reach_every_container(scope: DockerScope, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host\n")
    volumes = [f"{tmp_path}:/in:ro", f"{tmp_path}:/$WHERE"]
    service = Image(name=scope.images.build, alias="web", command=["sleep", "1000"])
    stages = DockerStages(
        scope, services=[service], variables={"WHERE": "there"}, volumes=volumes, wait_for_services_timeout=-1
    )
    with stages as job:
        for helper in (False, True):
            assert job.run("cat /in/file; touch /in/x 2>/dev/null || echo refused\n", helper=helper) == (
                "of the host\nrefused\n"
            )
        job.run("touch /there/new\n")
        binds = inspected("inspect", job.container(ObjectType.SERVICE).id)["HostConfig"]["Binds"]
        assert binds[:2] == [f"{tmp_path}:/in:ro", f"{tmp_path}:/there"]
    assert (tmp_path / "new").exists()


def test_caches_below_a_directory_of_the_host(scope: DockerScope, tmp_path: Path) -> None:
    for expected in ("1", "2"):
        with DockerStages(scope, cache_dir=str(tmp_path), volumes=["/cache"]) as job:
            assert job.run("echo x >> /cache/count; wc -l < /cache/count\n") == f"{expected}\n"
            found = [item.name for item in scope.belongings(job.engine).volumes]
            assert not [name for name in found if name.startswith("runner-") and "concurrent" not in name]
    subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)


def test_without_cache_every_volume_goes_with_the_job(scope: DockerScope) -> None:
    with DockerStages(scope, disable_cache=True, volumes=["/cache"]) as job:
        job.run("echo x >> /cache/count\n")
        assert len(scope.belongings(job.engine).volumes) == 2
    with DockerStages(scope, disable_cache=True, volumes=["/cache"]) as job:
        assert job.run("ls /cache\n") == ""
