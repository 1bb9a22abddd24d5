"""Whole jobs in containers: a manager, a fake GitLab that containers reach, a real engine."""

from __future__ import annotations

import re
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import opened
from pyrunner.testing.docker_runner import DockerRunner
from pyrunner.testing.fake_gitlab import FakeJob
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.job_payload import job_payload

PLAIN = re.compile(r"\x1b\[[0-9;]*[mK]|^\S+Z 0[01][OE][ +]|section_\w+:\d+:\w+(?:\[[^]]*\])?\r", re.MULTILINE)


def text(job: FakeJob) -> str:
    """The log as a person reads it."""
    return PLAIN.sub("", job.trace.decode())


def step(name: str, *script: str) -> dict[str, Any]:
    return {"name": name, "script": list(script), "timeout": 3600, "when": "on_success", "allow_failure": False}


def test_trivial_job_leaves_nothing_behind(runner: DockerRunner) -> None:
    job = runner.finished(job_payload(["echo hello from $(hostname)", "ls /.dockerenv"]))
    log = text(job)
    assert job.state == "success", log
    assert f"Using Docker executor with image {runner.scope.images.build} ...\n" in log
    assert "hello from runner-" in log
    assert "/.dockerenv" in log
    assert job.trace_matches


def test_exit_code_of_the_script_reaches_the_server(runner: DockerRunner) -> None:
    job = runner.finished(job_payload(["echo before", "exit 42"]))
    assert job.verdict is not None
    assert (job.verdict.failure_reason, job.verdict.exit_code) == ("script_failure", 42)
    assert text(job).endswith("ERROR: Job failed: exit code 42\n")


@pytest.mark.parametrize("docker_keys", [{"volumes": ["/cache"]}])
def test_sources_artifacts_and_cache_go_through_the_helper(runner: DockerRunner, repository: GitRepository) -> None:
    info = repository.git_info(runner.gitlab.url)
    artifact = {
        "name": "out",
        "paths": ["result.txt"],
        "when": "on_success",
        "artifact_type": "archive",
        "artifact_format": "zip",
    }
    cache = {"key": "k", "paths": ["cached/"], "policy": "pull-push", "when": "on_success"}
    script = ["cat hello.txt > result.txt", "mkdir -p cached", "echo once >> cached/count", "wc -l < cached/count"]
    first = runner.finished(job_payload(script, git_info=info, artifacts=[artifact], cache=[cache]))
    assert first.state == "success", text(first)
    with zipfile.ZipFile(BytesIO(Path(first.artifacts["archive"]).read_bytes())) as archive:
        assert archive.read("result.txt") == b"hello\n"
    second = runner.finished(job_payload(script, git_info=info, cache=[cache]))
    assert second.state == "success", text(second)
    assert "\n2\n" in text(second)
    assert "Reinitialized existing Git repository in /builds/group/project/.git/" in text(second)


def test_background_processes_and_files_of_the_root_do_not_reach_the_wrong_stage(runner: DockerRunner) -> None:
    script = ["echo kept > /kept", "sleep 1000 &", "echo $! > /pid"]
    steps = [step("script", *script), step("after_script", "cat /kept", 'test ! -d "/proc/$(cat /pid)/task/x"', "ps")]
    job = runner.finished(job_payload(steps=steps))
    assert job.state == "success", text(job)
    assert "\nkept\n" in text(job)
    assert "sleep 1000" not in text(job).partition("$ ps")[2]


def test_file_variables_are_there_in_both_containers(runner: DockerRunner) -> None:
    variables = [
        {"key": "GIT_STRATEGY", "value": "none"},
        {"key": "SETTINGS", "value": "content", "file": True},
    ]
    script = ['cat "$SETTINGS"', "tr '\\0' '\\n' </proc/1/environ | grep SETTINGS="]
    job = runner.finished(job_payload(script) | {"variables": variables})
    assert job.state == "success", text(job)
    assert "\ncontent" in text(job)
    assert "SETTINGS=/builds/group/project.tmp/SETTINGS" in text(job)


def test_everything_is_labelled_while_it_exists(runner: DockerRunner) -> None:
    identity = runner.gitlab.submit(job_payload(["sleep 1000"]))
    runner.gitlab.wait_for(identity, ("running",), 20)
    with opened(EngineAddress()) as engine:
        deadline = time.monotonic() + 20
        while len((found := runner.scope.belongings(engine)).containers) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        kinds = {item.labels[labels.TYPE] for item in found.containers}
        assert kinds == {"build", "predefined"}
        assert {item.labels[labels.JOB_ID] for item in (*found.containers, *found.volumes)} == {str(identity)}
        assert found.volumes
    runner.gitlab.cancel(identity)


def test_cancel_ends_the_script_and_after_script_still_runs(runner: DockerRunner) -> None:
    steps = [
        step("script", "echo started", "while sleep 0.2; do echo tick; done"),
        step("after_script", "echo $CI_JOB_STATUS after"),
    ]
    identity = runner.gitlab.submit(job_payload(steps=steps))
    runner.gitlab.wait_for_trace(identity, b"O started", 30)
    runner.gitlab.cancel(identity)
    job = runner.gitlab.wait_for(identity, ("canceled", "failed"), 40)
    assert "\ncanceled after\n" in text(job)


def test_abort_leaves_nothing_behind(runner: DockerRunner) -> None:
    identity = runner.gitlab.submit(job_payload(["echo started", "while sleep 0.2; do echo tick; done"]))
    runner.gitlab.wait_for_trace(identity, b"O started", 30)
    runner.gitlab.cancel(identity, force=True)
    runner.gitlab.wait_for(identity, ("canceled", "failed"), 40)


@pytest.mark.parametrize(("user", "owner"), [("tester", "tester"), ("root", "root"), ("", "root")])
def test_sources_belong_to_the_user_of_the_build_container_without_umask(
    runner: DockerRunner, repository: GitRepository, user: str, owner: str
) -> None:
    image = {"name": runner.scope.images.build, "executor_opts": {"docker": {"user": user}} if user else {}}
    flag = {"FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR": "true"}
    script = ["stat -c 'owner %U mode %a' hello.txt", "echo more >> hello.txt"]
    job = runner.finished(
        job_payload(script, git_info=repository.git_info(runner.gitlab.url), image=image, variables=flag)
    )
    log = text(job)
    assert job.state == "success", log
    assert "Not using umask - FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR is set!\n" in log
    assert f"owner {owner} mode 644" in log
