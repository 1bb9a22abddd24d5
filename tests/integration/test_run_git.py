"""Whole jobs with everything: sources over HTTP, artifacts from job to job, a cache."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerService


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    (tmp_path / "git").mkdir()
    return GitRepository(tmp_path / "git", files={"hello.txt": "hello\n", "sub/file": "x"})


@pytest.fixture
def gitlab(repository: GitRepository) -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1, git_root=repository.root) as server:
        yield server


@pytest.fixture
def runner(gitlab: FakeGitLab, tmp_path: Path) -> Iterator[RunnerService]:
    with RunnerService(gitlab, tmp_path, concurrent=1) as service:
        yield service


def run(gitlab: FakeGitLab, repository: GitRepository, *script: str, **fields: Any) -> FakeJob:
    variables = fields.pop("variables", None)
    job = job_payload(script, git_info=repository.git_info(gitlab.url), variables=variables, **fields)
    return gitlab.wait_for(gitlab.submit(job), ("success", "failed"))


def test_sources_are_fetched_and_fetched_again(
    gitlab: FakeGitLab, runner: RunnerService, repository: GitRepository
) -> None:
    first = run(gitlab, repository, "cat hello.txt", "touch left-over", "git status --porcelain")
    assert first.state == "success", first.trace.decode()
    assert b"Created fresh repository." in first.trace
    assert b"Fetching changes with git depth set to 20..." in first.trace
    repository.commit({"hello.txt": "changed\n"})
    second = run(gitlab, repository, "cat hello.txt", "test ! -e left-over")
    assert second.state == "success", second.trace.decode()
    assert b"Created fresh repository." not in second.trace
    assert b"changed\n" in second.trace
    assert first.token.encode() not in first.trace


def test_commit_that_is_not_there_fails_before_the_script(
    gitlab: FakeGitLab, runner: RunnerService, repository: GitRepository, tmp_path: Path
) -> None:
    info = {**repository.git_info(gitlab.url), "sha": "1" * 40}
    job = job_payload([f"touch {tmp_path}/ran"], git_info=info)
    found = gitlab.wait_for(gitlab.submit(job), ("success", "failed"))
    assert found.state == "failed"
    assert b"step_script" not in found.trace
    assert b"cleanup_file_variables" in found.trace
    assert not (tmp_path / "ran").exists()


def test_fetch_is_tried_again_with_a_clean_work_tree(
    gitlab: FakeGitLab, repository: GitRepository, tmp_path: Path
) -> None:
    from pyrunner.testing.faults import status

    settings = {"feature_flags": {"FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY": False}}
    gitlab.inject("GET", r"info/refs$", status(500), times=1)
    with RunnerService(gitlab, tmp_path, settings, concurrent=1):
        job = run(gitlab, repository, "cat hello.txt", variables={"GET_SOURCES_ATTEMPTS": "3"})
    assert job.state == "success", job.trace.decode()
    assert b"WARNING: Retrying..." in job.trace
    assert b"Deleting all tracked and untracked files due to source fetch failure" in job.trace


def test_artifacts_go_from_job_to_job_and_a_cache_stays(
    gitlab: FakeGitLab, runner: RunnerService, repository: GitRepository
) -> None:
    artifacts = [{"name": "made", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip"}]
    cache = [{"key": "k-$CI_JOB_NAME", "paths": ["cached"], "policy": "pull-push"}]
    script = ["mkdir out", "echo made > out/file", "mkdir -p cached; echo kept >> cached/file"]
    first = run(gitlab, repository, *script, artifacts=artifacts, cache=cache, variables={"CI_JOB_NAME": "n"})
    assert first.state == "success", first.trace.decode()
    with zipfile.ZipFile(first.artifacts["archive"]) as archive:
        assert archive.read("out/file") == b"made\n"
    second = run(
        gitlab,
        repository,
        "cat out/file",
        "cat cached/file",
        dependencies=[{"id": first.id, "name": "first"}],
        cache=cache,
        variables={"CI_JOB_NAME": "n"},
    )
    assert second.state == "success", second.trace.decode()
    assert b"Downloading artifacts for first" in second.trace
    assert b"Successfully extracted cache" in second.trace


def test_failing_job_uploads_its_failure_artifacts_only(
    gitlab: FakeGitLab, runner: RunnerService, repository: GitRepository
) -> None:
    artifacts = [
        {"name": "good", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip"},
        {
            "name": "bad",
            "paths": ["out/file"],
            "artifact_type": "junit",
            "artifact_format": "gzip",
            "when": "on_failure",
        },
    ]
    job = run(gitlab, repository, "mkdir out", "echo x > out/file", "exit 1", artifacts=artifacts)
    assert job.state == "failed"
    assert set(job.artifacts) == {"junit"}
    assert b"Uploading artifacts for failed job" in job.trace
