"""Services on a real engine: names, variables, health, logs (facts/executors.md 6.7)."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from typing import Any

import pytest

from pyrunner.api.wire import Image, JobVariable
from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import ServiceConfig
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.docker_stage import DockerStages
from pyrunner.testing.executor_contract import RecordingTrace

SERVE = ["sh", "-c", "mkdir -p /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"]
PORT = JobVariable(key="HEALTHCHECK_TCP_PORT", value="8080")


def web(scope: DockerScope, **fields: Any) -> Image:
    """A service that answers on port 8080."""
    return Image(**{"name": scope.images.build, "alias": "web", "command": SERVE, "variables": [PORT], **fields})


def inspected(identity: str) -> dict[str, Any]:
    told = subprocess.run(["docker", "inspect", identity], check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(told)[0]
    return found


@pytest.mark.parametrize("per_build", ["false", "true"])
def test_service_is_reached_by_every_name_and_waited_for(scope: DockerScope, per_build: str) -> None:
    variables = {"FF_NETWORK_PER_BUILD": per_build}
    service = web(scope, alias="web,second third")
    with DockerStages(scope, services=[service], variables=variables) as job:
        service_id = job.container(ObjectType.SERVICE).id[:12]
        own = scope.images.build.partition(":")[0]
        for name in ("web", "second", "third", own.replace("/", "__"), own.replace("/", "-"), service_id):
            assert job.run(f"wget -q -O - http://{name}:8080/\n") == "served\n", name
            assert job.run(f"wget -q -O - http://{name}:8080/\n", helper=True) == "served\n", name
        log = job.trace.data.decode()
        assert "Waiting for services to be up and running (timeout 30 seconds)...\n" in log
        assert "probably didn't start properly" not in log
        # checks are gone as soon as they have been answered
        assert len(scope.belongings(job.engine).containers) == 3


def test_service_that_does_not_listen_is_told_of_and_the_job_goes_on(scope: DockerScope) -> None:
    command = ["sh", "-c", "echo cannot start >&2; sleep 1000"]
    with DockerStages(scope, services=[web(scope, command=command)], wait_for_services_timeout=1) as job:
        container = job.container(ObjectType.SERVICE)
        log = job.trace.data.decode()
        block = log[log.index("\n\x1b[0;33m*** WARNING:") :]
        assert f"\x1b[0;m Service {container.name} probably didn't start properly.\n\nHealth check error:\n" in block
        assert f'service "{container.name}-wait-for-service" timeout\n' in block
        assert "\nHealth check container logs:\n" in block
        assert "waiting for TCP connection to" in block
        assert "\nService container logs:\n" in block
        assert "Z cannot start\n" in block
        assert "\n\x1b[0;33m*********\x1b[0;m\n" in block
        assert job.run("echo goes on\n") == "goes on\n"


def test_service_without_ports_is_not_waited_for(scope: DockerScope) -> None:
    begin = time.monotonic()
    with DockerStages(scope, services=[web(scope, variables=[])]) as job:
        name = job.container(ObjectType.SERVICE).name
        assert f'service "{name}" has no exposed ports' in job.trace.data.decode()
    assert time.monotonic() - begin < 25


def test_nothing_is_waited_for_with_a_negative_timeout(scope: DockerScope) -> None:
    with DockerStages(scope, services=[web(scope, variables=[])], wait_for_services_timeout=-1) as job:
        log = job.trace.data.decode()
    assert "Waiting for services" not in log
    assert "WARNING" not in log


def test_service_is_labelled_with_its_name_and_version(scope: DockerScope) -> None:
    service = web(scope, command=["sleep", "1000"])
    with DockerStages(scope, services=[service], wait_for_services_timeout=-1) as job:
        found = job.container(ObjectType.SERVICE)
        assert found.labels["com.gitlab.gitlab-runner.service"] == scope.images.build.partition(":")[0]
        assert found.labels["com.gitlab.gitlab-runner.service.version"] == scope.images.build.partition(":")[2]


def test_variables_of_a_service_may_use_those_of_the_job_and_private_ones_do_not_come_along(scope: DockerScope) -> None:
    own = [JobVariable(key="OWN", value="for $WHO"), JobVariable(key="RAW", value="$WHO", raw=True)]
    service = web(scope, variables=own)
    job = DockerStages(scope, services=[service], variables={"WHO": "us"}, wait_for_services_timeout=-1)
    secret = JobVariable(key="SECRET", value="hidden")
    job.options = replace(job.options, variables=job.options.variables.plus([secret]))
    with job:
        environment = inspected(job.container(ObjectType.SERVICE).id)["Config"]["Env"]
        assert {"OWN=for us", "RAW=$WHO", "WHO=us"} <= set(environment)
        assert not [entry for entry in environment if entry.startswith("SECRET=")]


def test_taken_alias_is_skipped_and_a_service_without_any_is_not_started(scope: DockerScope) -> None:
    services = [web(scope), web(scope, alias="web"), web(scope, alias="web other")]
    with DockerStages(scope, services=services, wait_for_services_timeout=-1) as job:
        names = sorted(item.name for item in scope.belongings(job.engine).containers)
        own = scope.images.build.partition(":")[0]
        log = job.trace.data.decode()
        assert f'Skipping alias "web" for service "{own}" (services[1]): alias is already in use by another' in log
        assert [name[-2:] for name in names if "__" in name] == ["-0", "-2"]


def test_services_of_the_config_come_first_and_count_for_the_limit(scope: DockerScope) -> None:
    entry = ServiceConfig(name="$IMAGE", alias="a", command=SERVE, environment=["HEALTHCHECK_TCP_PORT=8080", "K=$WHO"])
    job = DockerStages(
        scope, services=[web(scope)], variables={"IMAGE": scope.images.build, "WHO": "us"}, services_limit=2
    )
    config = job.options.config
    assert config.docker is not None
    config.docker.services = [entry]
    with job:
        assert job.run("wget -q -O - http://a:8080/; wget -q -O - http://web:8080/\n") == "served\nserved\n"
        found = {item.name[-2:]: item for item in scope.belongings(job.engine).containers}
        assert "K=us" in inspected(found["-0"].id)["Config"]["Env"]
    config.docker.services_limit = 1
    with pytest.raises(SystemFailure, match="too many services requested: 2, only 1 allowed"):
        job.prepare()
    job.executor.cleanup()


def test_output_of_services_goes_to_a_stream_of_its_own_on_demand(scope: DockerScope) -> None:
    service = web(scope, command=["sh", "-c", "echo first; echo second; printf unfinished; sleep 1000"])
    job = DockerStages(scope, services=[service], variables={"CI_DEBUG_SERVICES": "true"}, wait_for_services_timeout=-1)
    stream = RecordingTrace()
    job.options = replace(job.options, service_trace=lambda: stream)
    with job:
        job.run("echo in between\n")
    aliases = f"{scope.images.build.partition(':')[0].replace('/', '__')}-"
    lines = stream.data.decode().splitlines()
    assert all(line.startswith(f"\x1b[0;90m[service:{aliases}") and line.endswith("\x1b[0;m") for line in lines)
    assert [line.partition("] ")[2] for line in lines] == ["first\x1b[0;m", "second\x1b[0;m", "unfinished\x1b[0;m"]


def test_services_get_their_own_limits(scope: DockerScope) -> None:
    settings: dict[str, object] = {
        "service_memory": "64m",
        "service_cpus": "0.5",
        "services_tmpfs": {"/scratch": "rw,size=1m"},
        "services_privileged": True,
        "memory": "128m",
    }
    opts = {"docker": {"user": "tester"}}
    service = web(scope, executor_opts=opts, entrypoint=["/bin/sh", "-c"], command=["sleep 900"])
    with DockerStages(scope, services=[service], wait_for_services_timeout=-1, **settings) as job:
        found = inspected(job.container(ObjectType.SERVICE).id)
        host = found["HostConfig"]
        assert (host["Memory"], host["NanoCpus"], host["Privileged"]) == (64 << 20, 500_000_000, True)
        assert host["Tmpfs"] == {"/scratch": "rw,size=1m"}
        assert (found["Config"]["User"], found["Config"]["Entrypoint"]) == ("tester", ["/bin/sh", "-c"])
        build = inspected(job.container(ObjectType.BUILD).id)["HostConfig"]
        assert (build["Memory"], build["Privileged"]) == (128 << 20, False)
