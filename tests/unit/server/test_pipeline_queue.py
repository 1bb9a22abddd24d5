"""Pipelines in the coordinator's queue: order, dependencies, retries, and every point at which a restart can come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pyrunner.api.wire import Info
from pyrunner.base.errors import PipelineError, UsageError
from pyrunner.pipeline.variables import RunContext
from pyrunner.server.database import Database
from pyrunner.server.jobs import JobRecord
from pyrunner.server.pipeline_queue import PipelineQueue
from pyrunner.server.raw_job import RawJob
from pyrunner.server.source import RunnerIdentity, Verdict
from pyrunner.server.states import JobState
from pyrunner.server.submit import make_order, open_order

RUNNER = RunnerIdentity(id=1, description="", system_id="", tags=frozenset({"gpu"}), run_untagged=True, info=Info())
FILE = """
build:
  stage: build
  script: make
  artifacts: {paths: [out]}
unit:
  script: test
  retry: 1
  cache: {key: {files: [lock]}, paths: [c]}
lint:
  script: lint
  tags: [gpu]
deploy:
  stage: deploy
  script: deploy
"""


class World:
    """A queue on a file, whose process can die at any moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self.database = Database(self.path)
        self.source = PipelineQueue(self.database)

    def restart(self) -> None:
        self.database.close()
        self.open()

    def take(self) -> dict[str, Any]:
        job = self.source.take(RUNNER)
        assert isinstance(job, RawJob)
        self.database.save_job(JobRecord(id=job.id, token=job.token, state=JobState.RUNNING))
        self.source.started(job.id)
        return dict(msgspec.json.decode(job.body))

    def end(self, job: dict[str, Any], state: str, *, tell: bool = True, reason: str = "") -> None:
        verdict = Verdict(state=state, failure_reason=reason)
        record = JobRecord(id=job["id"], token=job["token"], state=JobState(state), verdict=verdict)
        self.database.save_job(record)
        if tell:
            self.source.finished(job["id"], verdict)

    def pending(self) -> list[str]:
        return [job.name for job in self.source.queue.jobs() if job.state == "pending"]

    def state(self, pipeline_id: int) -> str:
        return str(self.database.query("SELECT state FROM pipelines WHERE id = ?", (pipeline_id,))[0][0])


@pytest.fixture
def world(tmp_path: Path) -> Any:
    one = World(tmp_path / "db.sqlite")
    yield one
    one.database.close()


def order(jobs: tuple[str, ...] = (), content: str = FILE) -> Any:
    context = RunContext(
        server_url="http://127.0.0.1:1", sha="a" * 40, ref="main", hash_files=lambda names: "print-" + names[0]
    )
    return make_order(content, ".gitlab-ci.yml", jobs, context)


def named(job: dict[str, Any]) -> str:
    return str(job["job_info"]["name"])


def values(job: dict[str, Any]) -> dict[str, str]:
    return {item["key"]: item.get("value", "") for item in job["variables"]}


@pytest.mark.parametrize("restarts", [False, True])
def test_stages_follow_each_other_with_dependencies(world: World, restarts: bool) -> None:
    def maybe_restart() -> None:
        if restarts:
            world.restart()

    pipeline_id = world.source.submit(order())
    assert world.pending() == ["build"]
    maybe_restart()
    build = world.take()
    assert values(build)["CI_JOB_TOKEN"] == build["token"]
    assert values(build)["CI_JOB_ID"] == str(build["id"])
    assert values(build)["CI_PIPELINE_ID"] == str(pipeline_id)
    assert f":{build['token']}@127.0.0.1" in build["git_info"]["repo_url"]
    maybe_restart()
    world.end(build, "success")
    maybe_restart()
    assert world.pending() == ["unit", "lint"]
    unit, lint = world.take(), world.take()
    assert unit["dependencies"] == [{"id": build["id"], "name": "build", "artifacts_file": {}}]
    assert unit["cache"][0]["key"] == "print-lock"
    world.end(unit, "success")
    maybe_restart()
    assert world.pending() == []
    world.end(lint, "success")
    maybe_restart()
    assert world.pending() == ["deploy"]
    assert world.state(pipeline_id) == "running"
    world.end(world.take(), "success")
    assert world.state(pipeline_id) == "success"


def test_a_death_before_the_source_heard_of_an_end_stops_nothing(world: World) -> None:
    world.source.submit(order())
    world.end(world.take(), "success", tell=False)
    world.restart()
    assert world.pending() == ["unit", "lint"]
    world.restart()
    assert world.pending() == ["unit", "lint"]


def test_a_retry_is_a_job_of_its_own(world: World) -> None:
    pipeline_id = world.source.submit(order(("unit",)))
    world.end(world.take(), "success")
    first = world.take()
    world.end(first, "failed", reason="script_failure")
    world.restart()
    second = world.take()
    assert named(second) == "unit"
    assert second["id"] != first["id"]
    world.end(second, "failed", reason="script_failure")
    assert world.pending() == []
    assert world.state(pipeline_id) == "failed"


def test_a_late_end_of_an_older_try_changes_nothing(world: World) -> None:
    world.source.submit(order(("unit",)))
    world.end(world.take(), "success")
    first = world.take()
    world.end(first, "failed", reason="script_failure")
    world.end(first, "failed", reason="script_failure")
    assert world.pending() == ["unit"]


def test_canceling_the_last_waiting_job_ends_the_pipeline(world: World) -> None:
    pipeline_id = world.source.submit(order())
    assert world.source.cancel(1)
    assert not world.source.cancel(1)
    assert world.state(pipeline_id) == "canceled"
    world.restart()
    assert world.pending() == []


def test_wrong_files_and_jobs_are_refused_before_anything_is_kept(world: World) -> None:
    with pytest.raises(PipelineError):
        order(content="job: {script: [x], bogus: 1}")
    with pytest.raises(UsageError):
        order(("nothing",))
    bad = order()
    bad.content = "]"
    with pytest.raises(PipelineError):
        world.source.submit(bad)
    bad = order()
    bad.context["depth"] = "deep"
    with pytest.raises(msgspec.ValidationError):
        world.source.submit(bad)
    assert world.database.query("SELECT * FROM pipelines") == []


def test_what_is_written_down_is_the_whole_context(world: World) -> None:
    context = RunContext(server_url="http://x", overrides={"A": "b"}, refspecs=("+a:b",), is_tag=True, depth=3)
    graph, again = open_order(make_order(FILE, "f.yml", (), context), 7)
    assert list(graph.jobs) == ["build", "unit", "lint", "deploy"]
    kept = {name: getattr(again, name) for name in RunContext.__struct_fields__ if name != "hash_files"}
    before = {name: getattr(context, name) for name in kept}
    assert kept == {**before, "pipeline_id": 7}
