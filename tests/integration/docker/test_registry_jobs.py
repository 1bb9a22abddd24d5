"""Jobs whose image comes from the real registry program, with its password from every place that can have it."""

from __future__ import annotations

import json
import lzma
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import opened
from pyrunner.executors.docker.images.helper_image import REPOSITORY, official_helper_image
from pyrunner.testing.docker_images import TestImages
from pyrunner.testing.docker_rootfs import tar_of
from pyrunner.testing.docker_runner import DockerRunner
from pyrunner.testing.fake_gitlab import FakeJob
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.registry_program import PASSWORD, USERNAME, RegistryProgram, auth_config, why_no_registry

POLICIES = ["never", "always", "if-not-present"]
FEATURES = {"trace_sections": True, "failure_reasons": ["runner_configuration_error", "image_pull_failure"]}
PLAIN = re.compile(r"\x1b\[[0-9;]*[mK]|^\S+Z 0[01][OE][ +]|section_\w+:\d+:\w+(?:\[[^]]*\])?\r", re.MULTILINE)


def text(job: FakeJob) -> str:
    """The log as a person reads it."""
    return PLAIN.sub("", job.trace.decode())


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProgram]:
    """With a password."""
    if reason := why_no_registry():
        pytest.skip(reason)
    with RegistryProgram(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="module")
def pinned(registry: RegistryProgram, docker_images: TestImages) -> str:
    """A build image in the registry, by its digest; its tag is ``1``."""
    return registry.push(docker_images.build, "group/build:1")


@pytest.fixture
def name(registry: RegistryProgram, pinned: str) -> str:
    """The same by its tag."""
    return f"{registry.host}/group/build:1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the runner's user; empty."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def docker_keys() -> dict[str, Any]:
    return {"allowed_pull_policies": POLICIES}


def job_with(image: str, *script: str, policy: str = "always", **fields: Any) -> dict[str, Any]:
    options = fields.pop("options", {})
    definition = {"name": image, "pull_policy": [policy], "executor_opts": {"docker": options}}
    return job_payload(script or ("echo it runs",), image=definition, features=FEATURES, **fields)


def reason(job: FakeJob) -> str:
    assert job.verdict is not None
    return job.verdict.failure_reason


def write_config(home: Path, content: str) -> Path:
    path = home / ".docker/config.json"
    path.parent.mkdir()
    path.write_text(content)
    return path


# --- where the password comes from --------------------------------------------------------------------------------


def test_variable_of_the_job_opens_the_registry(runner: DockerRunner, registry: RegistryProgram, name: str) -> None:
    job = runner.finished(job_with(name, variables={"DOCKER_AUTH_CONFIG": auth_config(registry.host)}))
    assert job.state == "success", text(job)
    expected = (
        f"Using effective pull policy of [always] for container {name}\n"
        "Authenticating with credentials from $DOCKER_AUTH_CONFIG\n"
        f"Pulling docker image {name} ...\n"
        "Using docker image sha256:"
    )
    assert expected in text(job)
    assert PASSWORD not in job.trace.decode()


def test_config_of_the_runners_user_opens_the_registry(
    runner: DockerRunner, registry: RegistryProgram, name: str, home: Path
) -> None:
    path = write_config(home, auth_config(registry.host))
    job = runner.finished(job_with(name))
    assert job.state == "success", text(job)
    assert f"Authenticating with credentials from {path}\n" in text(job)


def test_old_config_of_the_runners_user_opens_the_registry(
    runner: DockerRunner, registry: RegistryProgram, name: str, home: Path
) -> None:
    entries = json.loads(auth_config(registry.host))["auths"]
    (home / ".dockercfg").write_text(json.dumps(entries))
    job = runner.finished(job_with(name))
    assert job.state == "success", text(job)
    assert f"Authenticating with credentials from {home}/.dockercfg\n" in text(job)


@pytest.mark.parametrize("kind", ["credsStore", "credHelpers"])
def test_credential_helper_opens_the_registry(
    runner: DockerRunner, registry: RegistryProgram, name: str, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    program = home / "bin/docker-credential-vault"
    program.parent.mkdir()
    answer = json.dumps({"ServerURL": registry.host, "Username": USERNAME, "Secret": PASSWORD})
    listed = json.dumps({registry.host: USERNAME})
    program.write_text(f"#!/bin/sh\n[ $1 = list ] && echo '{listed}' || echo '{answer}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    path = write_config(home, json.dumps({kind: "vault" if kind == "credsStore" else {registry.host: "vault"}}))
    job = runner.finished(job_with(name))
    assert job.state == "success", text(job)
    assert f"Authenticating with credentials from {path}\n" in text(job)


def payload_credentials(registry: RegistryProgram, password: str = PASSWORD) -> list[dict[str, str]]:
    return [
        {"type": "other", "url": registry.host, "username": "x", "password": "y"},
        {"type": "registry", "url": registry.host, "username": USERNAME, "password": password},
    ]


def test_credentials_of_the_job_open_the_registry(runner: DockerRunner, registry: RegistryProgram, name: str) -> None:
    job = runner.finished(job_with(name, credentials=payload_credentials(registry)))
    assert job.state == "success", text(job)
    assert "Authenticating with credentials from job payload (GitLab Registry)\n" in text(job)


def test_variable_comes_before_file_before_job(
    runner: DockerRunner, registry: RegistryProgram, name: str, home: Path
) -> None:
    wrong = auth_config(registry.host, password="wrong")
    path = write_config(home, wrong)
    variables = {"DOCKER_AUTH_CONFIG": auth_config(registry.host)}
    both = runner.finished(job_with(name, variables=variables, credentials=payload_credentials(registry)))
    assert both.state == "success", text(both)
    assert "from $DOCKER_AUTH_CONFIG\n" in text(both)
    file = runner.finished(job_with(name, credentials=payload_credentials(registry)))
    assert file.state == "failed"
    assert f"from {path}\n" in text(file)


def test_broken_variable_warns_and_the_next_source_is_used(
    runner: DockerRunner, registry: RegistryProgram, name: str
) -> None:
    variables = {"DOCKER_AUTH_CONFIG": "{not json"}
    job = runner.finished(job_with(name, variables=variables, credentials=payload_credentials(registry)))
    assert job.state == "success", text(job)
    assert "WARNING: $DOCKER_AUTH_CONFIG: no valid JSON" in text(job)
    assert "from job payload (GitLab Registry)\n" in text(job)


def test_helper_name_with_a_path_fails_the_job(runner: DockerRunner, name: str) -> None:
    variables = {"DOCKER_AUTH_CONFIG": json.dumps({"credsStore": "../../tmp/evil"})}
    job = runner.finished(job_with(name, variables=variables))
    assert (job.state, reason(job)) == ("failed", "runner_configuration_error")
    assert "the name must not contain a path separator" in text(job)


class TestEnvironmentOfTheRunner:
    """``environment`` of the config."""

    @pytest.fixture
    def runner_keys(self, registry: RegistryProgram) -> dict[str, Any]:
        return {"environment": [f"DOCKER_AUTH_CONFIG={auth_config(registry.host)}"]}

    def test_opens_the_registry_and_the_jobs_own_variable_comes_first(
        self, runner: DockerRunner, registry: RegistryProgram, name: str
    ) -> None:
        job = runner.finished(job_with(name))
        assert job.state == "success", text(job)
        assert "Authenticating with credentials from $DOCKER_AUTH_CONFIG\n" in text(job)
        wrong = {"DOCKER_AUTH_CONFIG": auth_config(registry.host, password="wrong")}
        assert runner.finished(job_with(name, variables=wrong)).state == "failed"


def test_wrong_password_is_an_error_of_the_configuration_and_said_once(
    runner: DockerRunner, registry: RegistryProgram, name: str
) -> None:
    job = runner.finished(job_with(name, credentials=payload_credentials(registry, "wrong")))
    assert (job.state, reason(job)) == ("failed", "runner_configuration_error")
    log = text(job)
    assert log.count("Pulling docker image") == 1
    assert f'failed to pull image "{name}" with specified policies [always]: ' in log
    assert "Preparation failed" not in log


# --- what a job may use -------------------------------------------------------------------------------------------


def test_image_by_digest_runs(runner: DockerRunner, registry: RegistryProgram, pinned: str) -> None:
    job = runner.finished(job_with(pinned, credentials=payload_credentials(registry)))
    assert job.state == "success", text(job)
    assert "Using docker image sha256:" in text(job)
    assert f" for {pinned} with digest {pinned} ...\n" in text(job)


def test_user_and_platform_of_the_job_reach_the_container(runner: DockerRunner) -> None:
    options = {"user": 1000, "platform": "linux/amd64"}
    job = runner.finished(job_with(runner.scope.images.build, "echo uid=$(id -u)", policy="never", options=options))
    assert job.state == "success", text(job)
    assert "\nuid=1000\n" in text(job)


def test_policy_that_is_not_allowed_fails_at_once(runner: DockerRunner) -> None:
    job = runner.finished(job_payload(image={"name": "ruby", "pull_policy": ["sometimes"]}, features=FEATURES))
    assert reason(job) == "runner_configuration_error"
    assert 'unsupported pull_policy config: "sometimes"' in text(job)


class TestAllowedLists:
    """``allowed_*`` of the config."""

    @pytest.fixture
    def docker_keys(self) -> dict[str, Any]:
        return {
            "allowed_images": ["ruby:*", "reg.example/**/*"],
            "allowed_services": ["redis:*"],
            "allowed_users": ["1000"],
        }

    def test_other_images_are_refused_before_anything_is_pulled(self, runner: DockerRunner) -> None:
        job = runner.finished(job_payload(image={"name": "python:3"}, features=FEATURES))
        assert reason(job) == "runner_configuration_error"
        expected = (
            'The "python:3" image is not present on list of allowed images:\n- ruby:*\n- reg.example/**/*\n\n'
            "Please check runner's configuration: "
        )
        assert expected in text(job)
        assert "disallowed image" in text(job)
        assert "Pulling" not in text(job)

    def test_image_of_the_config_is_allowed_whatever_the_list_says(self, runner: DockerRunner) -> None:
        assert runner.finished(job_payload(features=FEATURES)).state == "success"

    def test_other_services_are_refused_by_the_name_that_the_job_gave(self, runner: DockerRunner) -> None:
        job = runner.finished(job_payload(services=[{"name": "postgres"}], features=FEATURES))
        assert reason(job) == "runner_configuration_error"
        assert 'The "postgres" image is not present on list of allowed services:\n- redis:*\n' in text(job)

    def test_other_users_are_refused(self, runner: DockerRunner) -> None:
        image = {"name": runner.scope.images.build, "executor_opts": {"docker": {"user": "root"}}}
        job = runner.finished(job_payload(image=image, features=FEATURES))
        assert reason(job) == "runner_configuration_error"
        assert 'user "root" is not an allowed user: [1000]' in text(job)


class TestPoliciesOfTheConfig:
    """Without ``allowed_pull_policies`` a job may name those of ``pull_policy``."""

    @pytest.fixture
    def docker_keys(self) -> dict[str, Any]:
        return {}

    def test_other_policy_is_refused(self, runner: DockerRunner) -> None:
        job = runner.finished(job_with("ruby:3"))
        assert reason(job) == "runner_configuration_error"
        expected = (
            'invalid pull policy for image "ruby:3": pull_policy ([always]) defined in GitLab pipeline config '
            "is not one of the allowed_pull_policies ([never])"
        )
        assert expected in text(job)


class TestHelperImage:
    """The official one, when the config names none."""

    @pytest.fixture
    def docker_keys(self, docker_images: TestImages) -> Iterator[dict[str, Any]]:
        with opened(EngineAddress()) as engine:
            official = official_helper_image(engine.facts, "alpine3.21")
            engine.tag_image(docker_images.helper, REPOSITORY, official.tag)
            yield {"helper_image": "", "helper_image_flavor": "alpine3.21"}
            engine.remove_image(official.name)

    def test_present_one_is_used_without_a_word(self, runner: DockerRunner) -> None:
        job = runner.finished(job_payload())
        assert job.state == "success", text(job)
        assert "helper" not in text(job)


class TestPrebuiltHelperImage:
    """An archive where packages put it, and nothing else."""

    @pytest.fixture
    def docker_keys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
        flavor = f"test{time.time_ns()}"
        with opened(EngineAddress()) as engine:
            official = official_helper_image(engine.facts, flavor)
            archive = tmp_path / "lib/gitlab-runner/helper-images" / f"{official.archive}.tar.xz"
            archive.parent.mkdir(parents=True)
            archive.write_bytes(lzma.compress(tar_of({"/marker": b"helper"}), preset=0))
            monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin/pyrunner")])
            yield {"helper_image": "", "helper_image_flavor": flavor}
            engine.remove_image(official.name)

    def test_is_loaded_in_place_of_a_pull(self, runner: DockerRunner) -> None:
        job = runner.finished(job_payload(features=FEATURES))
        # the archive of this test holds no programs: its entrypoint cannot be started
        assert job.state == "failed"
        assert "dumb-init" in text(job)
        assert "Pulling" not in text(job)


def test_helper_image_of_the_config_is_told_with_the_official_one(runner: DockerRunner) -> None:
    job = runner.finished(job_payload())
    helper = runner.scope.images.helper
    line = f"Using helper image:  {helper}  (overridden, default would be  {REPOSITORY}:x86_64-v19.4.0 )\n"
    assert line in text(job)
