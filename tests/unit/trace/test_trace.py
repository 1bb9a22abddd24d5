"""The trace as a whole, with a client that remembers."""

from __future__ import annotations

import re
import threading
import time
import zlib

import pytest

from pyrunner.api.outcomes import PatchAnswer, PatchState, UpdateAnswer, UpdateState
from pyrunner.api.wire import Info, JobUpdate
from pyrunner.base.cancel import CancelToken
from pyrunner.job.trace import JobTrace, plan


class Client:
    """Takes everything in; `patch_states` and `update_states` are answered first."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.updates: list[JobUpdate] = []
        self.stored = bytearray()
        self.patch_states: list[PatchState] = []
        self.update_states: list[UpdateState] = []
        self.cancel_requested = False
        self.interval: float | None = None
        self.changed = threading.Condition()

    def update_job(self, job_id: int, update: JobUpdate, cancel: CancelToken | None = None) -> UpdateAnswer:
        with self.changed:
            self.calls.append(f"PUT {update.state}")
            self.updates.append(update)
            self.changed.notify_all()
        state = self.update_states.pop(0) if self.update_states else UpdateState.SUCCEEDED
        return UpdateAnswer(state=state, cancel_requested=self.cancel_requested, interval=self.interval)

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
        state = self.patch_states.pop(0) if self.patch_states else PatchState.SUCCEEDED
        with self.changed:
            self.calls.append(f"PATCH {start}-{start + len(content) - 1}")
            if state is PatchState.SUCCEEDED:
                self.stored[start:] = content
            self.changed.notify_all()
        return PatchAnswer(state=state, offset=start, cancel_requested=self.cancel_requested, interval=self.interval)

    def wait_for_calls(self, number: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.calls) >= number, timeout=20)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals that a test can wait for."""
    monkeypatch.setattr(plan.Progress, "interval", 0.01)
    monkeypatch.setattr(plan.Progress.__init__, "__defaults__", (0, 0.01, 0.0, False))
    monkeypatch.setattr(plan, "FIRST_INTERVAL", 0.01)
    monkeypatch.setattr(plan, "FIRST_BACKOFF", 0.01)


def ignore() -> None:
    """A hook that must not matter."""


def test_short_job_is_one_patch_and_one_put(client: Client) -> None:
    trace = JobTrace(client, 7, "token", masks=["s3cret"], info=Info(name="n"))
    trace.start(ignore, ignore)
    trace.section_start("prepare_executor")
    trace.runner.plain("Hello")
    trace.script.write(b"a s3cret\n")
    trace.section_end("prepare_executor")
    trace.runner.info("Job succeeded")
    size, checksum = trace.size, trace.checksum
    assert trace.finish("failed", "script_failure", 3)
    assert client.calls == [f"PATCH 0-{size - 1}", "PUT failed"]
    (update,) = client.updates
    assert (update.failure_reason, update.exit_code, update.token) == ("script_failure", 3, "token")
    assert update.checksum == update.output.checksum == checksum  # type: ignore[union-attr]
    assert update.output.bytesize == size == len(client.stored)  # type: ignore[union-attr]
    assert checksum == f"crc32:{zlib.crc32(client.stored):08x}"
    assert b"s3cret" not in client.stored


def test_lines_have_gitlab_runners_form(client: Client) -> None:
    trace = JobTrace(None, 1, "t")
    trace.runner.plain("plain")
    trace.runner.info("info")
    trace.runner.warning("warning")
    trace.runner.error("error")
    assert trace.read(0, 1000) == (
        b"\x1b[0Kplain\x1b[0;m\n"
        b"\x1b[32;1minfo\x1b[0;m\n"
        b"\x1b[0;33mWARNING: warning\x1b[0;m\n"
        b"\x1b[31;1mERROR: error\x1b[0;m\n"
    )


def test_sections_only_when_the_server_knows_them() -> None:
    with_sections, without = JobTrace(None, 1, "t"), JobTrace(None, 1, "t", sections=False)
    for trace in (with_sections, without):
        trace.section_start("get_sources")
        trace.section_end("get_sources")
    assert re.fullmatch(
        rb"section_start:\d+:get_sources\r\x1b\[0Ksection_end:\d+:get_sources\r\x1b\[0K", with_sections.read(0, 500)
    )
    assert without.size == 0


def test_timestamped_trace_looks_like_a_captured_one() -> None:
    trace = JobTrace(None, 1, "t", timestamps=True)
    trace.section_start("prepare_executor")
    trace.runner.plain("Preparing")
    trace.script.write(b"Running on vm...\nunfinished")
    trace.section_end("prepare_executor")
    trace.section_start("get_sources")
    stamp = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z "
    entries = [re.sub(rb"\d{10}", b"T", re.sub(stamp, b"", line)) for line in trace.read(0, 9999).split(b"\n")]
    assert entries == [
        b"00O section_start:T:prepare_executor\r\x1b[0K",
        b"00O+\x1b[0KPreparing\x1b[0;m",
        b"01O Running on vm...",
        b"01O unfinished",
        b"00O section_end:T:prepare_executor\r\x1b[0K",
        b"00O+section_start:T:get_sources\r\x1b[0K",
        b"",
    ]


def test_unfinished_secret_at_a_stages_end_comes_before_what_follows() -> None:
    trace = JobTrace(None, 1, "t", masks=["password"], sections=False)
    trace.script.write(b"pass")
    trace.section_end("step_script")
    trace.runner.plain("next")
    assert trace.read(0, 99) == b"pass\x1b[0Knext\x1b[0;m\n"


def test_masks_of_later_secrets_cover_both_streams() -> None:
    trace = JobTrace(None, 1, "t")
    trace.add_masks(["  late\n", ""])
    trace.runner.plain("late")
    trace.script.write(b"la")
    trace.script.write(b"te glpat-abc\n")
    trace.script.flush()
    assert trace.read(0, 99) == b"\x1b[0K[MASKED]\x1b[0;m\n[MASKED] glpat-[MASKED]\n"


def test_nothing_follows_the_limit(client: Client) -> None:
    trace = JobTrace(client, 1, "t", limit_bytes=100)
    trace.script.write(b"x" * 99 + "é".encode() + b"y" * 100)
    trace.runner.info("Job succeeded")
    trace.finish("success")
    assert client.stored.startswith(b"x" * 99 + b"\n\x1b[33;1mJob's log exceeded limit of 100 bytes.\n")
    assert b"succeeded" not in client.stored


@pytest.mark.usefixtures("fast")
def test_running_job_sends_as_it_goes(client: Client) -> None:
    trace = JobTrace(client, 1, "t")
    trace.start(ignore, ignore)
    trace.script.write(b"one\n")
    client.wait_for_calls(1)
    trace.script.write(b"two\n")
    client.wait_for_calls(2)
    trace.finish("success")
    assert client.calls == ["PATCH 0-3", "PATCH 4-7", "PUT success"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("kind", ["abort", "cancel"])
def test_hooks_are_called_once(client: Client, kind: str) -> None:
    called: list[str] = []
    seen = threading.Event()

    def hook(name: str) -> None:
        called.append(name)
        seen.set()

    if kind == "abort":
        client.patch_states = [PatchState.ABORT] * 1000
    client.cancel_requested = kind == "cancel"
    trace = JobTrace(client, 1, "t")
    trace.start(lambda: hook("abort"), lambda: hook("cancel"))
    trace.script.write(b"one\n")
    assert seen.wait(20)
    trace.script.write(b"two\n")
    client.wait_for_calls(3 if kind == "abort" else 2)
    client.patch_states.clear()
    trace.finish("failed")
    assert called == [kind]


@pytest.mark.usefixtures("fast")
def test_verdict_is_tried_again_until_taken(client: Client) -> None:
    client.update_states = [UpdateState.FAILED, UpdateState.ACCEPTED, UpdateState.TRACE_VALIDATION_FAILED]
    trace = JobTrace(client, 1, "t")
    trace.script.write(b"one\n")
    assert trace.finish("success")
    assert client.calls == ["PATCH 0-3", "PUT success", "PUT success", "PUT success", "PATCH 0-3", "PUT success"]


@pytest.mark.usefixtures("fast")
def test_undeliverable_verdict_is_reported(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.update_states = [UpdateState.FAILED] * 100
    trace = JobTrace(client, 1, "t", retry_limit=2)
    assert not trace.finish("success")
    assert client.calls == ["PUT success"] * 2
    assert "Could not deliver the job's final state" in caplog.text


def test_stop_ends_a_long_pause(client: Client) -> None:
    client.update_states = [UpdateState.ACCEPTED] * 100
    trace = JobTrace(client, 1, "t")
    stop = CancelToken()
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(trace.finish("success", stop=stop)))
    started = time.monotonic()
    thread.start()
    client.wait_for_calls(1)
    stop.cancel(InterruptedError())
    thread.join()
    assert done == [False]
    assert time.monotonic() - started < 2


def test_lost_job_sends_nothing(client: Client) -> None:
    trace = JobTrace(client, 1, "t")
    trace.start(ignore, ignore)
    trace.script.write(b"x")
    trace.disable_sending()
    assert not trace.finish("failed")
    assert client.calls == []


def test_close_without_finish_leaves_no_thread(client: Client) -> None:
    trace = JobTrace(client, 1, "t")
    trace.start(ignore, ignore)
    trace.close()
    trace.close()


def test_many_writers_lose_no_byte() -> None:
    trace = JobTrace(None, 1, "t", masks=["secret"], limit_bytes=10**8)
    streams = [trace.runner, trace.script]

    def write(stream: int) -> None:
        for _ in range(200):
            streams[stream % 2].write(b"%d" % stream * 100)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.runner.flush()
    trace.script.flush()
    data = trace.read(0, 10**8)
    assert [data.count(b"%d" % number) for number in range(4)] == [20_000] * 4
    trace.close()
