"""`pyrunner exec --executor docker` as a real process, with a real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pyrunner.cli.exec.rooms import repository_key
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import opened
from pyrunner.executors.docker.labels import TYPE
from pyrunner.executors.docker.ledger import belongings
from pyrunner.testing.docker_images import TestImages, test_images
from pyrunner.testing.docker_scope import DockerScope, host_address, why_no_engine

PROGRAM = Path(sys.executable).parent / "pyrunner"
Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def images() -> TestImages:
    if reason := why_no_engine():
        pytest.skip(reason)
    return test_images()


class Project:
    """A git repository whose pipelines run in containers."""

    def __init__(self, path: Path, images: TestImages) -> None:
        self.path = path
        self.images = images

    def pipeline(self, text: str) -> None:
        (self.path / ".gitlab-ci.yml").write_text(dedent(text).replace("@IMAGE@", self.images.build))

    @property
    def system_id(self) -> str:
        """What all containers and volumes of its runs are labelled with."""
        return f"s_{repository_key(self.path)[:12]}"

    def command(self, *words: str) -> list[str]:
        return [str(PROGRAM), "exec", "--executor", "docker", "--helper-image", self.images.helper, *words]

    def exec(self, *words: str, env: dict[str, str] | None = None) -> Result:
        command = self.command(*words)
        environment = {**os.environ, **(env or {})}
        return subprocess.run(
            command, cwd=self.path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    def jobs(self, *words: str) -> dict[str, dict[str, object]]:
        result = self.exec("--output", "json", *words)
        assert result.stdout, result.stderr
        return {job["name"]: job for job in json.loads(result.stdout)["jobs"]}


@pytest.fixture
def project(tmp_path: Path, images: TestImages) -> Iterator[Project]:
    path = tmp_path / "project"
    path.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(path)], check=True)
    project = Project(path, images)
    # the run's own corner of the engine, which must be empty afterwards, caches aside
    with DockerScope(images=images, system_id=project.system_id).checked():
        yield project


def log_of(job: dict[str, object]) -> str:
    return Path(str(job["log"])).read_text()


def test_images_services_artifacts_and_cache(project: Project) -> None:
    project.pipeline("""
        image: "@IMAGE@"
        build:
          stage: build
          cache: {key: k, paths: [kept/]}
          artifacts: {paths: [out/]}
          script:
            - test -e /.dockerenv
            - mkdir -p kept out
            - echo run >> kept/runs
            - cp kept/runs out/runs
            - cat fresh > out/fresh
        test:
          stage: test
          cache: {key: k, paths: [kept/], policy: pull}
          services:
            - name: "@IMAGE@"
              alias: web
              command: [sh, -c, "mkdir /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"]
          script:
            - cat out/fresh
            - cmp kept/runs out/runs
            - wc -l < out/runs
            - for i in $(seq 50); do wget -q -O - http://web:8080/ && break; sleep 0.1; done
            - echo "server $CI_SERVER_URL"
    """)
    (project.path / "fresh").write_text("not committed\n")
    first = project.jobs()
    assert {name: job["status"] for name, job in first.items()} == {"build": "success", "test": "success"}, [
        log_of(job) for job in first.values()
    ]
    log = log_of(first["test"])
    assert "\nnot committed\n" in log
    assert "\nserved\n" in log
    assert f"\nserver http://{host_address()}:" in log
    again = project.jobs()
    assert "\n2\n" in log_of(again["test"])
    assert "Reinitialized existing Git repository" in log_of(again["build"])


def test_default_image_is_for_jobs_that_name_none(project: Project) -> None:
    project.pipeline("""
        with:
          # its own bridge reaches the server at the other one's gateway
          variables: {FF_NETWORK_PER_BUILD: "true"}
          script: [test -e .gitlab-ci.yml]
          image: "@IMAGE@"
        without: {script: ["false"], retry: 1}
    """)
    jobs = project.jobs("--image", project.images.build)
    assert {name: job["status"] for name, job in jobs.items()} == {"with": "success", "without": "failed"}
    assert jobs["without"]["exit_code"] == 1
    assert jobs["without"]["tries"] == 2


def test_a_job_without_an_image_is_told_before_anything_runs(project: Project) -> None:
    project.pipeline("""
        with: {script: [id], image: "@IMAGE@"}
        without: {script: [id]}
    """)
    result = project.exec()
    assert (result.returncode != 0, result.stdout) == (True, "")
    assert 'job "without" has no image: say one in the file with image:, or with --image' in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert project.exec("with").returncode == 0


def test_an_image_that_is_not_there_fails_its_job_only(project: Project) -> None:
    project.pipeline("""
        missing:
          image: {name: "pyrunner-test/none:1", pull_policy: never}
          script: [id]
        there: {script: [id], image: "@IMAGE@"}
    """)
    jobs = project.jobs()
    assert {name: job["status"] for name, job in jobs.items()} == {"missing": "failed", "there": "success"}
    assert "pyrunner-test/none:1" in log_of(jobs["missing"])


def test_interrupt_ends_containers_and_run(project: Project) -> None:
    project.pipeline("""
        endless: {script: [sleep 1000], image: "@IMAGE@"}
    """)
    command = project.command("--logs", "none")
    with subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            wait_for_container(project.system_id)
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
    assert process.returncode == 1, output
    assert b"The pipeline was canceled" in output


def wait_for_container(system_id: str) -> None:
    """Until the run's build container runs its script."""
    deadline = time.monotonic() + 60
    with opened(EngineAddress()) as engine:
        while not any(
            item.labels[TYPE] == "build" and engine.container_state(item.id).running
            for item in belongings(engine, system_id=system_id).containers
        ):
            assert time.monotonic() < deadline, "no build container"
            time.sleep(0.05)


def test_no_engine_is_one_line(project: Project, tmp_path: Path) -> None:
    project.pipeline("""
        job: {script: [id], image: "@IMAGE@"}
    """)
    result = project.exec(env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert result.returncode != 0
    assert len(result.stderr.strip().splitlines()) == 1
    assert "none.sock" in result.stderr


def test_flags_of_images_are_for_containers(project: Project) -> None:
    project.pipeline("""
        job: {script: [id]}
    """)
    command = [str(PROGRAM), "exec", "--image", project.images.build]
    result = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "--image: the shell executor has no images; --executor docker has" in result.stderr
