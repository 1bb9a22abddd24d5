"""The background that empties the outbox: who waits for whom, what ends a delivery, what a stop leaves."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrunner.api.outcomes import CLIENT_ERROR, NO_ANSWER, PatchAnswer, PatchState, UpdateAnswer, UpdateState
from pyrunner.api.wire import Info, JobUpdate
from pyrunner.base.cancel import CancelToken
from pyrunner.job.trace import JobTrace, plan
from pyrunner.job.trace.protocol import TraceClient
from pyrunner.manager import lane
from pyrunner.manager.post import Post
from pyrunner.store.letter import Sender
from pyrunner.store.outbox import Outbox

URL, OTHER = "http://one.invalid", "http://two.invalid"


class Server:
    """Takes patches and verdicts in unless it is told to fail."""

    def __init__(self) -> None:
        self.status = 200
        self.traces: dict[int, bytes] = {}
        self.verdicts: dict[int, list[JobUpdate]] = {}
        self.calls: list[int] = []
        self.changed = threading.Condition()
        self.gate = threading.Event()
        self.gate.set()

    def update_job(self, job_id: int, update: JobUpdate, cancel: CancelToken | None = None) -> UpdateAnswer:
        with self.changed:
            self.calls.append(job_id)
            self.changed.notify_all()
        if cancel is not None:
            cancel.on_cancel(self.gate.set)
        self.gate.wait()
        if self.status != 200 or (cancel is not None and cancel.cancelled):
            state = UpdateState.ABORT if self.status in (403, CLIENT_ERROR) else UpdateState.FAILED
            return UpdateAnswer(state=state, status=self.status)
        with self.changed:
            self.verdicts.setdefault(job_id, []).append(update)
            self.changed.notify_all()
        return UpdateAnswer(state=UpdateState.SUCCEEDED, status=200)

    def patch_trace(
        self,
        job_id: int,
        job_token: str,
        content: bytes,
        start: int,
        *,
        debug_trace: bool = False,
        cancel: CancelToken | None = None,
    ) -> PatchAnswer:
        have = self.traces.get(job_id, b"")
        if start != len(have):
            return PatchAnswer(state=PatchState.RANGE_MISMATCH, offset=len(have), status=416)
        if self.status != 200:
            state = PatchState.ABORT if self.status == 403 else PatchState.FAILED
            return PatchAnswer(state=state, offset=start, status=self.status)
        self.traces[job_id] = have + content
        return PatchAnswer(state=PatchState.SUCCEEDED, offset=start + len(content), status=202)

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout=20)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FIRST_INTERVAL", 0.01)
    monkeypatch.setattr(plan.Progress.__init__, "__defaults__", (0, 0.01, 0.0, False))
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 0.01)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def stop() -> CancelToken:
    return CancelToken()


@pytest.fixture
def office(tmp_path: Path, server: Server, stop: CancelToken) -> Iterator[Post]:
    office = make(tmp_path, {URL: server}, stop)
    yield office
    office.close()


def make(home: Path, servers: dict[str, Server], stop: CancelToken) -> Post:
    def find(sender: Sender) -> TraceClient | None:
        return servers.get(sender.url)

    return Post(Outbox(str(home), "s_1"), find, stop)


def finish(office: Post, server: Server, job_id: int, *, url: str = URL, tries: int = 1) -> bool:
    keeper = office.box(Sender(url=url, short_token="abc"))
    trace = JobTrace(
        server, job_id, "token", info=Info(name="n"), retry_limit=tries, keeper=keeper, spool_dir=office.directory
    )
    trace.script.write(b"line of %d\n" % job_id * 20_000)
    return trace.finish("failed", "script_failure", 3)


def waiting(home: Path) -> int:
    return sum(1 for path in home.glob(".pyrunner/outbox/s_1/*/*") if path.is_dir())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_delivered_verdict_leaves_nothing(tmp_path: Path, office: Post, server: Server) -> None:
    assert finish(office, server, 1)
    assert waiting(tmp_path) == 0
    assert len(server.verdicts[1]) == 1


def test_verdict_is_kept_before_anything_is_sent(tmp_path: Path, office: Post, server: Server) -> None:
    server.gate.clear()
    thread = threading.Thread(target=lambda: finish(office, server, 1))
    thread.start()
    server.wait(lambda: server.calls == [1])
    assert waiting(tmp_path) == 1
    server.gate.set()
    thread.join()


def test_background_goes_on_until_the_server_takes_it(tmp_path: Path, office: Post, server: Server) -> None:
    server.status = 500
    assert not finish(office, server, 1, tries=2)
    assert waiting(tmp_path) == 1
    server.status = 200
    server.wait(lambda: 1 in server.verdicts)
    wait_until(lambda: waiting(tmp_path) == 0)
    (update,) = server.verdicts[1]
    assert server.traces[1] == b"line of 1\n" * 20_000
    assert (update.state, update.failure_reason, update.exit_code, update.token) == (
        "failed",
        "script_failure",
        3,
        "token",
    )
    assert update.info == Info(name="n")


def test_job_that_is_gone_is_forgotten(tmp_path: Path, office: Post, server: Server) -> None:
    server.status = 500
    finish(office, server, 1)
    server.status = 403
    wait_until(lambda: waiting(tmp_path) == 0)
    assert server.verdicts == {}


def test_configuration_that_cannot_work_keeps_the_verdict(tmp_path: Path, office: Post, server: Server) -> None:
    server.traces[1] = b"line of 1\n" * 20_000
    server.status = CLIENT_ERROR
    assert not finish(office, server, 1, tries=10)
    assert server.calls == [1], "what cannot be sent is not tried ten times while the job has its slot"
    assert waiting(tmp_path) == 1
    server.status = 200
    wait_until(lambda: waiting(tmp_path) == 0)


def test_next_process_goes_on(
    tmp_path: Path, office: Post, server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 60)
    server.status = 503
    for job_id in range(1, 4):
        finish(office, server, job_id)
    office.close()
    assert "Final states of jobs wait in the outbox for the next start" in caplog.text
    assert waiting(tmp_path) == 3
    server.status = 200
    later = make(tmp_path, {URL: server}, CancelToken())
    later.start()
    wait_until(lambda: waiting(tmp_path) == 0)
    later.close()
    assert {job_id: len(updates) for job_id, updates in server.verdicts.items()} == {1: 1, 2: 1, 3: 1}


def test_server_that_hangs_does_not_hold_up_another(tmp_path: Path, stop: CancelToken) -> None:
    hanging, other = Server(), Server()
    office = make(tmp_path, {URL: hanging, OTHER: other}, stop)
    hanging.status = other.status = 500
    finish(office, hanging, 1)
    finish(office, other, 2, url=OTHER)
    hanging.gate.clear()
    hanging.status = other.status = 200
    hanging.wait(lambda: bool(hanging.calls))
    other.wait(lambda: 2 in other.verdicts)
    assert hanging.verdicts == {}
    office.close()


def test_server_that_answers_again_gets_what_waits_at_once(
    tmp_path: Path, office: Post, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 3000)
    server.status = NO_ANSWER
    for job_id in (1, 2, 3):
        finish(office, server, job_id)
    office.server_answers(OTHER)
    server.status = 200
    office.server_answers(URL)
    wait_until(lambda: len(server.verdicts) == 3)


def test_refused_verdict_is_not_hastened_by_a_server_that_answers(
    tmp_path: Path, office: Post, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 3000)
    server.traces[1] = b"line of 1\n" * 20_000
    server.status = 409
    finish(office, server, 1)
    calls = len(server.calls)
    for _ in range(100):
        office.server_answers(URL)
    time.sleep(0.05)
    assert len(server.calls) == calls


def test_haste_is_limited(tmp_path: Path, office: Post, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One job whose every update fails is not tried at each poll that succeeds."""
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 3000)
    server.traces[1] = b"line of 1\n" * 20_000
    server.status = 502
    finish(office, server, 1)
    for _ in range(50):
        office.server_answers(URL)
        time.sleep(0.002)
    assert len(server.calls) <= 2
    monkeypatch.setattr(lane, "HASTE_INTERVAL", 0)
    for _ in range(50):
        office.server_answers(URL)
        time.sleep(0.002)
    assert len(server.calls) > 2


def test_leaving_ends_the_pauses_of_a_slot(tmp_path: Path, office: Post, server: Server) -> None:
    server.status = 500
    timer = threading.Timer(0.1, office.leave)
    timer.start()
    begin = time.monotonic()
    assert not finish(office, server, 1, tries=1000)
    assert time.monotonic() - begin < 10
    assert waiting(tmp_path) == 1
    timer.join()


def test_stop_ends_a_request_of_the_background(tmp_path: Path, office: Post, server: Server, stop: CancelToken) -> None:
    server.status = 500
    finish(office, server, 1)
    server.gate.clear()
    calls = len(server.calls)
    server.status = 200
    server.wait(lambda: len(server.calls) > calls)
    stop.cancel(InterruptedError("now"))
    office.close()
    assert waiting(tmp_path) == 1
    assert server.verdicts == {}


def test_crash_of_one_delivery_is_logged_and_not_the_end(
    tmp_path: Path, office: Post, server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.status = 500
    finish(office, server, 1)
    crashed = threading.Event()

    def crash(*_: object, **__: object) -> PatchAnswer:
        crashed.set()
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(server, "patch_trace", crash)
        assert crashed.wait(10)
        wait_until(lambda: "Delivery from the outbox failed" in caplog.text)
    server.status = 200
    assert finish(office, server, 2)
    assert waiting(tmp_path) == 1


def test_log_that_vanished_is_one_line(
    tmp_path: Path, office: Post, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = 500
    finish(office, server, 1)
    (trace,) = tmp_path.glob(".pyrunner/outbox/s_1/*/*/trace")
    trace.unlink()
    wait_until(lambda: "Cannot read an entry of the outbox" in caplog.text)
    assert finish(office, server, 2) is False


def test_full_disk_costs_a_line_and_not_the_verdict(
    tmp_path: Path, office: Post, server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Outbox, "put", full)
    assert finish(office, server, 1)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "Cannot keep the end of a job in the outbox"
    ]


def test_runner_that_is_gone_is_stood_in_for(tmp_path: Path, stop: CancelToken) -> None:
    office = make(tmp_path, {}, stop)
    sender = Sender(url="http://127.0.0.1:1", short_token="abc", name="old", tls_ca_file="/ca")
    client = office._own_client(sender)
    assert client is office._own_client(sender)
    assert (client.endpoint.url, client.endpoint.short_token, client.endpoint.tls_ca_file) == (sender.url, "abc", "/ca")
    office.close()


def test_nothing_is_begun_after_the_end(tmp_path: Path, office: Post, server: Server) -> None:
    server.status = 500
    office.close()
    assert not finish(office, server, 1)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("outbox/")]
    assert waiting(tmp_path) == 1
