"""The server over real sockets: runners, long poll, artifacts, and what survives a restart."""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.server.app import EmbeddedServer, ServerSettings
from pyrunner.server.database import Database
from pyrunner.server.jobs import StoredArtifact
from pyrunner.server.queue_source import QueueSource
from pyrunner.server.source import Verdict
from pyrunner.server.states import JobState
from pyrunner.testing.api_caller import Caller
from pyrunner.testing.job_payload import job_payload


class Seen:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.states: list[tuple[int, str]] = []
        self.trace = b""
        self.artifacts: list[str] = []

    def job_changed(self, job_id: int, state: str, verdict: Verdict | None) -> None:
        self.states.append((job_id, state))

    def trace_appended(self, job_id: int, start: int, content: bytes) -> None:
        self.trace = self.trace[:start] + content

    def artifact_stored(self, job_id: int, artifact: StoredArtifact, path: str) -> None:
        self.artifacts.append(path)


class World:
    """A server with a queue whose process can be "restarted"."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.settings = ServerSettings(registration_token="reg", admin_token="admin", **settings)
        self.seen = Seen()
        self.start()

    def start(self) -> None:
        self.database = Database(self.directory / "db.sqlite")
        self.queue = QueueSource(self.database)
        self.server = EmbeddedServer(
            self.queue,
            data_dir=self.directory,
            ledger=self.database,
            observer=self.seen,
            settings=self.settings,
        )
        self.call = Caller(self.server.start())

    def stop(self) -> None:
        self.call.connection.close()
        self.server.stop()
        self.database.close()

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    worlds: list[World] = []

    def one(**settings: Any) -> World:
        worlds.append(World(tmp_path, **settings))
        return worlds[-1]

    yield one
    for world in worlds:
        world.stop()


def test_both_kinds_of_runners_register_verify_and_go(make: Callable[..., World]) -> None:
    world = make()
    call = world.call
    register = {"token": "reg", "info": {}, "description": "d", "tag_list": "a, b", "run_untagged": False}
    status, _, body = call("POST", "runners", register, {"RUNNER-TOKEN": "reg"})
    made = json.loads(body)
    assert (status, made["id"], made["token_expires_at"]) == (201, 1, None)
    assert not made["token"].startswith("glrt-")
    assert call("POST", "runners", {**register, "token": "no"})[0] == 403
    for token in (made["token"], world.server.add_runner("other")):
        status, _, body = call("POST", "runners/verify", {"token": token, "system_id": "s_1"})
        assert (status, json.loads(body)["token"]) == (200, token)
    assert call("POST", "runners/verify", {"token": "unknown"})[0] == 403
    managers = {"token": token, "system_id": "s_1"}
    assert call("DELETE", "runners/managers", managers)[0] == 204
    assert call("DELETE", "runners/managers", managers)[0] == 404
    assert call("DELETE", "runners", {"token": made["token"]})[0] == 204
    assert call("POST", "runners/verify", {"token": made["token"]})[0] == 403
    assert call("GET", "runners/router/discovery")[0] == 501


def test_a_reset_token_replaces_the_old_one_of_its_kind(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    status, _, body = world.call("POST", "runners/reset_authentication_token", {"token": token})
    new = json.loads(body)["token"]
    assert status == 201
    assert new != token
    assert new.startswith("glrt-")
    assert world.call.ask(token)[0] == 403
    assert world.call.ask(new)[0] == 204
    path = "runners/1/reset_authentication_token"
    assert world.call("POST", path, None, {"PRIVATE-TOKEN": "wrong"})[0] == 403
    assert world.call("POST", path, "null", {"PRIVATE-TOKEN": "admin"})[0] == 201


def test_tags_decide_who_gets_a_job(make: Callable[..., World]) -> None:
    world = make()
    tagged = world.server.add_runner("t", ["gpu", "big"], run_untagged=False)
    plain = world.server.add_runner("p")
    world.queue.submit(job_payload(), tags=["gpu"])
    world.queue.submit(job_payload())
    assert world.call.take(plain)["id"] == 2
    assert world.call.ask(plain)[0] == 204
    assert world.call.take(tagged)["id"] == 1


def test_a_paused_runner_gets_nothing(make: Callable[..., World]) -> None:
    world = make()
    world.queue.submit(job_payload())
    assert world.call.ask(world.server.add_runner("p", paused=True))[0] == 204


def test_a_held_request_is_served_the_moment_a_job_comes(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    _, headers, _ = world.call.ask(token)
    got: list[tuple[float, dict[str, Any]]] = []

    def poll() -> None:
        with Caller(world.server.url) as caller:
            job = caller.take(token, last_update=headers["x-gitlab-last-update"])
            got.append((time.monotonic(), job))

    thread = threading.Thread(target=poll)
    thread.start()
    wait_until(lambda: waiting(world) == 1)
    submitted = time.monotonic()
    job_id = world.queue.submit(job_payload())
    thread.join(5)
    assert got[0][1]["id"] == job_id
    assert got[0][0] - submitted < 0.5


def test_a_job_is_not_given_to_a_client_that_went_away(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    _, headers, _ = world.call.ask(token)
    gone = Caller(world.server.url, timeout=0.1)
    with pytest.raises(TimeoutError):
        gone.ask(token, last_update=headers["x-gitlab-last-update"])
    gone.connection.close()
    wait_until(lambda: waiting(world) == 0)
    job_id = world.queue.submit(job_payload())
    assert world.call.take(token)["id"] == job_id


def test_a_poll_ends_with_204_and_the_next_value(make: Callable[..., World]) -> None:
    world = make(long_poll=0.05)
    token = world.server.add_runner()
    _, headers, _ = world.call.ask(token)
    status, after, _ = world.call.ask(token, last_update=headers["x-gitlab-last-update"])
    assert status == 204
    assert after["x-gitlab-last-update"] == headers["x-gitlab-last-update"]


def test_running_jobs_survive_a_restart(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner("kept", ["x"])
    for _ in range(2):
        world.queue.submit(job_payload())
    running, reserved = world.call.take(token), world.call.take(token)
    world.call.commit(running)
    assert world.call.patch(running, b"before ")[0] == 202
    first_value = world.call.ask(token)[1]["x-gitlab-last-update"]
    world.restart()
    assert [runner.tags for runner in world.server.runners()] == [["x"]]
    assert world.call.patch(running, b"after", 7)[1]["range"] == "0-12"
    assert world.call.finish(running, "success", b"before after")[0] == 200
    world.call.commit(reserved)
    world.queue.submit(job_payload())
    assert world.call.take(token)["id"] == 3
    assert world.call.ask(token)[1]["x-gitlab-last-update"] != first_value
    world.restart()
    record = world.server.job(running["id"])
    assert record is not None
    assert (record.state, record.trace_matches) == (JobState.SUCCESS, True)
    assert [job.state for job in world.queue.jobs()] == ["done", "taken", "taken"]


def test_a_death_between_queue_and_record_loses_no_job(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    world.queue.submit(job_payload())
    world.database.change("UPDATE queue SET state = 'taken'")
    world.restart()
    assert world.call.take(token)["id"] == 1


def test_a_returned_job_gets_a_new_token_and_an_empty_trace(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    world.queue.submit(job_payload())
    first = world.call.take(token)
    world.server._call(lambda: world.server._desk.give_back(1))
    second = world.call.take(token)
    assert (first["id"], second["id"]) == (1, 1)
    assert first["token"] != second["token"]
    assert world.call("PUT", "jobs/1", {"token": first["token"], "state": "running"})[0] == 403
    assert world.seen.states == [(1, "reserved"), (1, "pending"), (1, "reserved")]


def test_artifacts_go_up_and_down_without_being_held_in_memory(make: Callable[..., World]) -> None:
    world = make()
    token = world.server.add_runner()
    world.queue.submit(job_payload())
    world.queue.submit(job_payload(dependencies=[{"id": 1, "name": "first"}]))
    job = world.call.take(token)
    piece = bytes(range(256)) * 4096
    tracemalloc.start()
    status = world.call.upload(job, [piece] * 64, "artifact_format=zip&artifact_type=archive&expire_in=1+week")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert status == 201
    assert peak < 16 << 20
    world.call.finish(job, "success")
    after = world.call.take(token)
    dependency = after["dependencies"][0]
    assert dependency["artifacts_file"] == {"filename": "artifacts.zip", "size": 64 << 20}
    path = "jobs/1/artifacts?direct_download=true"
    status, headers, body = world.call("GET", path, None, {"JOB-TOKEN": dependency["token"]})
    assert (status, headers["content-length"]) == (200, str(64 << 20))
    assert body == piece * 64
    assert world.call("GET", path, None, {"JOB-TOKEN": "wrong"})[0] == 403
    assert world.call("GET", "jobs/9/artifacts", None, {"JOB-TOKEN": "wrong"})[0] == 404
    assert world.call("GET", "jobs/2/artifacts", None, {"JOB-TOKEN": after["token"]})[0] == 404


def test_artifacts_are_refused_when_they_must_be(make: Callable[..., World]) -> None:
    world = make(artifact_limit=1000)
    token = world.server.add_runner()
    world.queue.submit(job_payload())
    job = world.call.take(token)
    assert world.call.upload({**job, "token": "wrong"}, [b"x"]) == 403
    assert world.call.upload(job, [b"x" * 1001]) == 413
    headers = {"JOB-TOKEN": job["token"]}
    assert world.call("POST", "jobs/1/artifacts", b"no form", headers)[0] == 400
    world.call.finish(job, "success")
    assert world.call.upload(job, [b"x"]) == 403
    assert not list(world.directory.glob("jobs/1/artifacts/*/*"))


def test_a_disk_that_is_full_is_a_500_and_the_same_bytes_fit_later(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    token = world.server.add_runner()
    world.queue.submit(job_payload())
    job = world.call.take(token)
    files = world.server._files
    write = files.write_trace

    def full(job_id: int, start: int, content: bytes) -> None:
        write(job_id, start, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_trace", full)
    assert world.call.patch(job, b"0123456789")[0] == 500
    monkeypatch.setattr(files, "write_trace", write)
    assert world.call.patch(job, b"0123456789")[0] == 202
    assert world.server.trace(1) == b"0123456789"


def test_a_runners_time_limit_reaches_the_job(make: Callable[..., World]) -> None:
    world = make()
    world.queue.submit(job_payload())
    assert world.call.take(world.server.add_runner(maximum_timeout=600))["runner_info"]["timeout"] == 600


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "jobs/request", b"{", 400),
        ("POST", "jobs/request", b'{"info": 3}', 400),
        ("POST", "jobs/request", b"", 400),
        ("PUT", "jobs/1", b"[]", 400),
        ("PUT", "jobs/99", b"{}", 404),
        ("PUT", "jobs/x", b"{}", 404),
        ("PATCH", "jobs/99/trace", b"x", 404),
        ("GET", "nothing", None, 404),
        ("GET", "jobs/request", None, 405),
        ("POST", "jobs/request", b"x" * (33 << 20), 413),
    ],
)
def test_bad_requests_are_answered(make: Callable[..., World], method: str, path: str, body: Any, status: int) -> None:
    assert make().call(method, path, body)[0] == status


def waiting(world: World) -> int:
    return world.server._call(lambda: len(world.server._desk._waiters))


def wait_until(condition: Callable[[], bool], timeout: float = 5.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
