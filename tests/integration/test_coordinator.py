"""The coordinator as a process, with its commands, and a runner that speaks the API."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.api_caller import Caller

PYRUNNER = [sys.executable, "-m", "pyrunner"]


class Coordinator:
    """A coordinator process and its commands."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        words = ["coordinator", "serve", "--port", "0", "--data-dir", str(self.data_dir)]
        self.process = subprocess.Popen(PYRUNNER + words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.greeting = "".join(iter(self.process.stdout.readline, "then run it and give it work:\n"))
        self.url = (self.data_dir / "address").read_text().strip()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        code = process.wait(10)
        assert process.stdout is not None
        process.stdout.close()
        return code

    def __call__(self, *words: str, code: int = 0) -> str:
        environment = {**os.environ, "PYRUNNER_COORDINATOR_DATA_DIR": str(self.data_dir)}
        done = subprocess.run(
            [*PYRUNNER, "coordinator", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environment,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    def job_file(self, **fields: Any) -> str:
        path = self.directory / "job.json"
        job = {"job_info": {"name": "hello"}, "steps": [{"name": "script", "script": ["true"]}], **fields}
        path.write_text(json.dumps(job))
        return str(path)


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    one = Coordinator(tmp_path)
    one.start()
    yield one
    one.stop()


def test_a_job_from_file_to_artifacts(coordinator: Coordinator, tmp_path: Path) -> None:
    token = coordinator("runner", "create", "--description", "mine", "--quiet").strip()
    assert "Job 1\n" in coordinator("submit", coordinator.job_file())
    with Caller(coordinator.url) as runner:
        job = runner.take(token)
        runner.commit(job)
        followed: list[str] = []
        follower = threading.Thread(target=lambda: followed.append(coordinator("log", "1", "--follow")))
        follower.start()
        runner.patch(job, b"one\n")
        runner.patch(job, b"two\n", 4)
        assert runner.upload(job, [b"PK-content"]) == 201
        assert runner.finish(job, "success", b"one\ntwo\n")[0] == 200
        follower.join(30)
    assert followed == ["one\ntwo\n"]
    assert coordinator("log", "1") == "one\ntwo\n"
    (listed,) = json.loads(coordinator("jobs", "--output", "json"))
    assert (listed["state"], listed["name"], listed["artifacts"]) == ("success", "hello", {"archive": 10})
    target = tmp_path / "got.zip"
    coordinator("artifacts", "1", "--output", str(target))
    assert target.read_bytes() == b"PK-content"
    assert coordinator("artifacts", "1", "--output", "-") == "PK-content"
    assert "mine" in coordinator("runner", "list")
    coordinator("runner", "delete", "1")
    assert json.loads(coordinator("runner", "list", "--output", "json")) == []


def test_a_killed_coordinator_goes_on_where_it_was(coordinator: Coordinator) -> None:
    token = coordinator("runner", "create", "--quiet").strip()
    coordinator("submit", coordinator.job_file())
    coordinator("submit", coordinator.job_file(), "--tag-list", "elsewhere")
    with Caller(coordinator.url) as runner:
        job = runner.take(token)
        runner.commit(job)
        runner.patch(job, b"before ")
    coordinator.stop(signal.SIGKILL)
    assert "does not answer" in coordinator("jobs", code=1)
    coordinator.start()
    assert [job["state"] for job in json.loads(coordinator("jobs", "--output", "json"))] == ["running", "pending"]
    with Caller(coordinator.url) as runner:
        assert runner.patch(job, b"after", 7)[0] == 202
        assert runner.finish(job, "success", b"before after")[0] == 200
    assert coordinator("log", "1") == "before after"


def test_cancel_before_and_while_a_runner_has_the_job(coordinator: Coordinator) -> None:
    token = coordinator("runner", "create", "--quiet").strip()
    for _ in range(2):
        coordinator("submit", coordinator.job_file())
    assert coordinator("cancel", "1") == "Job 1 is canceled\n"
    assert "job 1 is canceled" in coordinator("cancel", "1", code=1)
    with Caller(coordinator.url) as runner:
        job = runner.take(token)
        assert job["id"] == 2
        runner.commit(job)
        assert coordinator("cancel", "2") == "Job 2 is canceling\n"
        assert runner.patch(job, b"x")[1]["job-status"] == "canceling"
        runner.finish(job, "failed", b"x")
    assert json.loads(coordinator("jobs", "--output", "json"))[1]["state"] == "canceled"


PIPELINE = """
build:
  stage: build
  script: [mkdir out, echo "built $WHAT" > out/a.txt]
  artifacts: {paths: [out]}
test:
  stage: test
  script: [cat out/a.txt committed.txt uncommitted.txt]
"""


def test_a_registered_runner_runs_a_pipeline_of_the_work_tree(coordinator: Coordinator, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / ".gitlab-ci.yml").write_text(PIPELINE)
    (repository / "committed.txt").write_text("committed\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run(["git", "-C", repository, *words], check=True)
    (repository / "uncommitted.txt").write_text("uncommitted\n")
    config = tmp_path / "config.toml"
    registration_token = (coordinator.data_dir / "registration_token").read_text().strip()
    register = ["--config", str(config), "--url", coordinator.url, "--registration-token", registration_token]
    register += ["--executor", "shell", "--builds-dir", str(tmp_path / "builds")]
    subprocess.run([*PYRUNNER, "register", "--non-interactive", *register], check=True, capture_output=True)
    with subprocess.Popen([*PYRUNNER, "run", "--config", config], cwd=tmp_path, stderr=subprocess.PIPE) as service:
        try:
            said = coordinator("submit", str(repository / ".gitlab-ci.yml"), "--variable", "WHAT=it")
            assert said == "Pipeline 1, jobs ready: 1 (build)\n"
            coordinator("log", "1", "--follow")
            deadline = time.monotonic() + 20
            while len(json.loads(coordinator("jobs", "--output", "json"))) < 2:
                assert time.monotonic() < deadline
            log = coordinator("log", "2", "--follow")
        finally:
            service.send_signal(signal.SIGQUIT)
            _, errors = service.communicate(timeout=30)
    assert service.returncode == 0, errors.decode()
    for line in ("built it", "committed", "uncommitted", "Job succeeded"):
        assert line in log
    assert [job["state"] for job in json.loads(coordinator("jobs", "--output", "json"))] == ["success", "success"]


def test_a_pipeline_that_is_wrong_says_where(coordinator: Coordinator, tmp_path: Path) -> None:
    path = tmp_path / "ci.yml"
    path.write_text("job:\n  script: x\n  bogus: 1\n")
    assert f"{path}:3" in coordinator("submit", str(path), code=1)
    path.write_text("job:\n  script: x\n")
    assert "not a git repository" in coordinator("submit", str(path), code=1)
    assert "expected K=V" in coordinator("submit", str(path), "--variable", "x", code=1)


def test_stopping_is_quick_and_leaves_nothing_open(coordinator: Coordinator) -> None:
    token = coordinator("runner", "create", "--quiet").strip()
    with Caller(coordinator.url) as runner:
        _, headers, _ = runner.ask(token)

        def poll() -> None:
            # whether the server goes before the request, in it or after it is not the point here
            with contextlib.suppress(OSError, http.client.HTTPException):
                runner.ask(token, last_update=headers["x-gitlab-last-update"])

        polling = threading.Thread(target=poll)
        polling.start()
        began = time.monotonic()
        assert coordinator.stop() == 0
        assert time.monotonic() - began < 3
        polling.join(5)
    assert "no coordinator serves" in coordinator("jobs", code=1)


def test_secrets_are_their_owners_only(coordinator: Coordinator) -> None:
    coordinator("submit", coordinator.job_file())
    for path in [coordinator.data_dir, *coordinator.data_dir.rglob("*")]:
        assert not path.stat().st_mode & 0o077, path
    with Caller(coordinator.url) as anyone:
        assert anyone("GET", "coordinator/jobs")[0] == 401
        assert anyone("GET", "coordinator/jobs", None, {"PRIVATE-TOKEN": "guess"})[0] == 401


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["submit", "/nowhere.json"], "/nowhere.json"),
        (["submit"], "which file"),
        (["log", "77"], "there is no job 77"),
        (["log", "x"], '"x" is no id of a job'),
        (["cancel"], "which job"),
        (["artifacts", "77"], "there is no job 77"),
        (["runner", "delete", "5"], "404"),
        (["runner"], "subcommand is missing"),
        (["serve", "--port", "0"], "another coordinator uses this directory"),
        (["serve", "--port", "99999"], "expected 0 to 65535"),
        (["nonsense"], "not found"),
    ],
)
def test_mistakes_give_one_clear_line(coordinator: Coordinator, words: list[str], says: str) -> None:
    assert says in coordinator(*words, code=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not a job"),
        ("{}", "not a job"),
        ('{"steps": [{"name": 3}]}', "$.steps[0].name"),
        ('{"steps": [{}], "tags": "x"}', "tags must be a list"),
        ('{"steps": [{}], "git_info": {"depth": "many"}}', "$.git_info.depth"),
    ],
)
def test_bad_payloads_are_refused_with_the_field(coordinator: Coordinator, content: str, says: str) -> None:
    path = coordinator.directory / "bad.json"
    path.write_text(content)
    assert says in coordinator("submit", str(path), code=1)
