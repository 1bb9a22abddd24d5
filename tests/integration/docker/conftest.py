"""Tests with a real engine: images once per machine, a corner of the engine per test, checked for leftovers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.executors import loader
from pyrunner.testing.docker_images import TestImages, test_images
from pyrunner.testing.docker_runner import DockerRunner, docker_entry
from pyrunner.testing.docker_scope import DockerScope, host_address, why_no_engine
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.runner_service import RunnerService, service_options


@pytest.fixture(scope="session")
def docker_images() -> TestImages:
    """The images; a test without an engine is skipped."""
    if reason := why_no_engine():
        pytest.skip(reason)
    return test_images()


@pytest.fixture(autouse=True)
def scope(docker_images: TestImages) -> Iterator[DockerScope]:
    """This test's corner of the engine; a container, volume or network that stays in it fails the test."""
    with DockerScope(images=docker_images).checked() as scope:
        yield scope


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """What jobs with sources fetch."""
    (tmp_path / "git").mkdir()
    return GitRepository(tmp_path / "git", files={"hello.txt": "hello\n", "sub/file": "x"})


@pytest.fixture
def gitlab(repository: GitRepository) -> Iterator[FakeGitLab]:
    """A server that containers can reach."""
    with FakeGitLab(update_interval=1, host=host_address(), git_root=repository.root) as server:
        yield server


@pytest.fixture
def docker_keys() -> dict[str, Any]:
    """Keys of ``[runners.docker]``; tests override it."""
    return {}


@pytest.fixture
def runner_keys() -> dict[str, Any]:
    """Keys of ``[[runners]]`` itself; tests override it."""
    return {}


@pytest.fixture
def runner(
    gitlab: FakeGitLab,
    scope: DockerScope,
    tmp_path: Path,
    docker_keys: dict[str, Any],
    runner_keys: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[DockerRunner]:
    """A manager with a docker runner in this test's corner of the engine."""
    monkeypatch.setitem(loader.BUILT_IN, "docker", "pyrunner.executors.docker:provider")
    entry = {**docker_entry(gitlab, scope, tmp_path, **docker_keys), **runner_keys}
    options = service_options(system_id=scope.system_id)
    with RunnerService(gitlab, tmp_path, runners=[entry], options=options) as service:
        yield DockerRunner(gitlab, scope, service)
