"""The manager is killed while its docker jobs run: the next one removes everything that was left."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.config.system_id import FILE_NAME
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import opened
from pyrunner.executors.docker.ledger import Belongings, is_reusable
from pyrunner.testing.docker_images import TestImages, test_images
from pyrunner.testing.docker_runner import docker_entry
from pyrunner.testing.docker_scope import DockerScope, host_address, why_no_engine
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerProcess, write_config

JOBS = 10
#: Seconds within which nothing may be left.
LIMIT = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def images() -> TestImages:
    if reason := why_no_engine():
        pytest.skip(reason)
    return test_images()


@pytest.fixture
def scope(images: TestImages) -> Iterator[DockerScope]:
    with DockerScope(images=images).checked() as scope:
        yield scope


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1, host=host_address()) as server:
        yield server


def config_of(gitlab: FakeGitLab, scope: DockerScope, directory: Path) -> Path:
    path = directory / "config.toml"
    entry = docker_entry(gitlab, scope, directory, volumes=["/cache"], wait_for_services_timeout=-1)
    entry["request_concurrency"] = JOBS
    write_config(path, [entry], concurrent=JOBS, check_interval=1, shutdown_timeout=20)
    (directory / FILE_NAME).write_text(scope.system_id)
    return path


def submit_all(gitlab: FakeGitLab, scope: DockerScope) -> list[int]:
    """Jobs with everything that can be left: services, networks of their own, temporary volumes."""
    service = {"name": scope.images.build, "alias": "web", "command": ["sleep", "1000"]}
    plain = {"services": [service]}
    apart = job_payload(["sleep 1000"], variables={"FF_NETWORK_PER_BUILD": "true"}) | plain
    return [gitlab.submit(apart if number % 2 else job_payload(["sleep 1000"]) | plain) for number in range(JOBS)]


def left_of(scope: DockerScope) -> Belongings:
    with opened(EngineAddress()) as engine:
        return scope.belongings(engine).only(lambda item: not is_reusable(item))


def wait_for_containers(scope: DockerScope, count: int, timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while len(left_of(scope).containers) < count:
        assert time.monotonic() < deadline, [item.name for item in left_of(scope)]
        time.sleep(0.1)


def restart_and_count(gitlab: FakeGitLab, jobs: list[int], path: Path, scope: DockerScope) -> None:
    """Start the manager again, and wait until nothing is left."""
    for job in jobs:
        # one that had not been taken yet would bring containers of its own
        gitlab.cancel(job, force=True)
    begin = time.monotonic()
    with RunnerProcess(["run", "-c", str(path)], path.parent / "log-again") as process:
        while left := left_of(scope):
            assert time.monotonic() - begin < LIMIT, [item.name for item in left]
            time.sleep(0.2)
        process.signal(signal.SIGTERM)
        process.wait()
        assert "Traceback" not in process.log, process.log


@pytest.mark.parametrize("containers", [1, 8, 30])
def test_killed_with_ten_jobs_at_several_moments(
    gitlab: FakeGitLab, scope: DockerScope, tmp_path: Path, containers: int
) -> None:
    path = config_of(gitlab, scope, tmp_path)
    jobs = submit_all(gitlab, scope)
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        wait_for_containers(scope, containers)
        process.signal(signal.SIGKILL)
        process.wait()
    assert left_of(scope)
    restart_and_count(gitlab, jobs, path, scope)


@pytest.mark.parametrize(
    "point",
    ["docker.network-created", "docker.volume-created", "docker.container-created:4", "docker.container-started:7"],
)
def test_killed_at_a_named_place(gitlab: FakeGitLab, scope: DockerScope, tmp_path: Path, point: str) -> None:
    path = config_of(gitlab, scope, tmp_path)
    jobs = submit_all(gitlab, scope)
    environment = {"PYRUNNER_KILL_POINT": point}
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log", environment) as process:
        assert process.wait(60) == -signal.SIGKILL
    restart_and_count(gitlab, jobs, path, scope)


def test_killed_while_it_cleans_up(gitlab: FakeGitLab, scope: DockerScope, tmp_path: Path) -> None:
    path = config_of(gitlab, scope, tmp_path)
    jobs = [gitlab.submit(job_payload(["true"], variables={"FF_NETWORK_PER_BUILD": "true"}))]
    with RunnerProcess(
        ["run", "-c", str(path)], tmp_path / "log", {"PYRUNNER_KILL_POINT": "docker.containers-removed"}
    ) as process:
        assert process.wait(60) == -signal.SIGKILL
    assert left_of(scope).networks
    restart_and_count(gitlab, jobs, path, scope)


def test_living_manager_of_the_same_installation_keeps_its_jobs(
    gitlab: FakeGitLab, scope: DockerScope, tmp_path: Path
) -> None:
    path = config_of(gitlab, scope, tmp_path)
    job = gitlab.submit(job_payload(["echo begun", "sleep 4", "echo all done"]))
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as first:
        gitlab.wait_for_trace(job, b"begun", 40)
        with RunnerProcess(["run", "-c", str(path)], tmp_path / "log2") as second:
            second.wait_for_log("Initializing executor providers")
            done = gitlab.wait_for(job, ("success", "failed"), 40)
            second.signal(signal.SIGTERM)
            second.wait()
        assert done.state == "success", done.trace.decode()
        assert "Removing leftover" not in second.log
        first.signal(signal.SIGTERM)
        first.wait()


def test_end_of_the_manager_in_order_leaves_nothing(gitlab: FakeGitLab, scope: DockerScope, tmp_path: Path) -> None:
    path = config_of(gitlab, scope, tmp_path)
    submit_all(gitlab, scope)
    with RunnerProcess(["run", "-c", str(path)], tmp_path / "log") as process:
        wait_for_containers(scope, 12)
        process.signal(signal.SIGTERM)
        process.wait(60)
        assert not re.search("Traceback", process.log), process.log
    assert not left_of(scope)
