"""A whole runner with the docker executor against a fake GitLab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.runner_service import RunnerService, shell_runner


class DockerRunner:
    """A manager with one docker runner."""

    def __init__(self, gitlab: FakeGitLab, scope: DockerScope, service: RunnerService) -> None:
        self.gitlab = gitlab
        self.scope = scope
        self.service = service

    def finished(self, job: dict[str, Any], timeout: float = 60) -> FakeJob:
        """Run a job to its end."""
        return self.gitlab.wait_for(self.gitlab.submit(job), ("success", "failed", "canceled"), timeout)


def docker_entry(gitlab: FakeGitLab, scope: DockerScope, directory: Path, **docker: Any) -> dict[str, Any]:
    """A ``[[runners]]`` entry; `docker` are keys of its ``[runners.docker]``."""
    keys = {"image": scope.images.build, "helper_image": scope.images.helper, "pull_policy": ["never"], **docker}
    entry = shell_runner(gitlab, directory, executor="docker", docker=keys)
    return {key: value for key, value in entry.items() if key not in ("builds_dir", "cache_dir")}
