"""The job book: states, two-phase acceptance, trace ranges and verification, on a clock that we move."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyrunner.api.wire import JobUpdate, TraceOutput
from pyrunner.server.jobs import (
    ACCEPTANCE_SECONDS,
    SILENCE_SECONDS,
    VERIFICATION_SECONDS,
    Answer,
    Canceling,
    DropTrace,
    Finished,
    JobBook,
    JobRecord,
    Returned,
    Started,
    parse_content_range,
)
from pyrunner.server.source import Verdict
from pyrunner.server.states import FINAL_STATES, JobState

TOKEN = "token"


def taken(*, two_phase: bool = True, graceful: bool = True, now: float = 0.0) -> JobBook:
    book = JobBook()
    record = JobRecord(id=1, token=TOKEN, cancel_gracefully=graceful)
    book.reserve(record, two_phase=two_phase, now=now)
    return book


def put(book: JobBook, state: str, now: float = 1.0, **fields: object) -> Answer:
    return book.update(1, TOKEN, JobUpdate(state=state, **fields), now)  # type: ignore[arg-type]


def patch(book: JobBook, content: bytes, start: int, now: float = 1.0) -> Answer:
    answer = book.check_patch(1, TOKEN, f"{start}-{start + len(content) - 1}", len(content), now)
    return book.patched(1, content) if answer.status == 202 else answer


def output(content: bytes) -> TraceOutput:
    return TraceOutput(checksum=f"crc32:{zlib.crc32(content):08x}", bytesize=len(content))


def test_two_phase_waits_for_the_commit() -> None:
    book = taken()
    record = book.find(1)
    assert record is not None
    assert record.state is JobState.RESERVED
    assert record.state.wire == "pending"
    answer = put(book, "running")
    assert (answer.status, answer.job_status, answer.actions) == (200, "running", (Started(job_id=1),))
    assert put(book, "running").actions == ()


def test_without_the_feature_the_job_runs_at_once() -> None:
    book = JobBook()
    actions = book.reserve(JobRecord(id=1, token=TOKEN), two_phase=False, now=0)
    assert actions == [Started(job_id=1)]


def test_keep_alives_renew_the_two_minutes() -> None:
    book = taken()
    assert put(book, "pending", now=ACCEPTANCE_SECONDS - 1).status == 200
    assert book.expire(ACCEPTANCE_SECONDS + 1) == []
    assert book.expire(2 * ACCEPTANCE_SECONDS) == [Returned(job_id=1)]


def test_a_keep_alive_for_a_running_job_is_refused() -> None:
    book = taken()
    put(book, "running")
    assert put(book, "pending").status == 400


def test_after_two_silent_minutes_the_token_is_dead() -> None:
    book = taken()
    assert book.next_deadline() == ACCEPTANCE_SECONDS
    assert book.expire(ACCEPTANCE_SECONDS) == [Returned(job_id=1)]
    assert put(book, "running").status == 403
    assert patch(book, b"x", 0).status == 403


def test_a_silent_running_job_is_lost() -> None:
    book = taken()
    put(book, "running", now=1)
    lost = Verdict(state="failed", failure_reason="stuck_or_timeout_failure")
    assert book.expire(SILENCE_SECONDS + 1) == [Finished(job_id=1, verdict=lost)]


def test_unknown_job_and_wrong_token() -> None:
    book = taken()
    assert book.update(2, TOKEN, JobUpdate(state="running"), 0).status == 404
    assert book.update(1, "other", JobUpdate(state="running"), 0).status == 403
    assert book.update(1, "", JobUpdate(state="running"), 0).status == 403


def test_a_commit_after_the_end_is_a_conflict() -> None:
    book = taken()
    put(book, "running")
    put(book, "success")
    assert put(book, "running").status == 409
    assert put(book, "success").status == 403
    assert put(book, "success").job_status == "success"


def test_a_commit_for_a_canceled_job_is_forbidden() -> None:
    book = taken()
    actions = book.cancel(1, 1)
    assert actions == [Started(job_id=1), Finished(job_id=1, verdict=Verdict(state="canceled"))]
    answer = put(book, "running")
    assert (answer.status, answer.job_status) == (403, "canceled")


def test_graceful_cancel_ends_as_canceled_whatever_the_verdict() -> None:
    book = taken()
    put(book, "running")
    assert book.cancel(1, 1) == [Canceling(job_id=1)]
    assert book.cancel(1, 1) == []
    assert put(book, "running").job_status == "canceling"
    answer = put(book, "success")
    assert answer.job_status == "canceled"
    assert answer.actions == (Finished(job_id=1, verdict=Verdict(state="canceled")),)


def test_cancel_without_the_feature_or_by_force_is_immediate() -> None:
    book = taken(graceful=False, two_phase=False)
    assert book.cancel(1, 1) == [Finished(job_id=1, verdict=Verdict(state="canceled"))]
    book = taken(two_phase=False)
    book.cancel(1, 1)
    assert book.cancel(1, 1, force=True) == [Finished(job_id=1, verdict=Verdict(state="canceled"))]
    assert patch(book, b"x", 0).job_status == "canceled"


@pytest.mark.parametrize("start", [0, 3, 5])
def test_a_patch_elsewhere_is_told_the_size(start: int) -> None:
    book = taken(two_phase=False)
    assert patch(book, b"abcd", 0).trace_size == 4
    answer = patch(book, b"xy", start)
    assert (answer.status, answer.trace_size) == (416, 4)
    assert patch(book, b"xy", 4).trace_size == 6


@pytest.mark.parametrize("header", ["", "0-", "-3", "bytes 0-3", "0-2", "4-0", "0-3/4", "٠-٣", "0--3"])
def test_a_patch_without_a_right_range_is_refused(header: str) -> None:
    book = taken(two_phase=False)
    assert book.check_patch(1, TOKEN, header, 4, 0).status == 400


def test_a_wrong_trace_is_sent_again() -> None:
    book = taken(two_phase=False)
    patch(book, b"abxd", 0)
    answer = put(book, "success", output=output(b"abcd"))
    assert (answer.status, answer.actions) == (412, (DropTrace(job_id=1),))
    assert patch(book, b"abcd", 0).status == 202
    answer = put(book, "success", output=output(b"abcd"))
    assert answer.actions == (Finished(job_id=1, verdict=Verdict(state="success")),)


def test_a_trace_that_never_fits_ends_after_some_time() -> None:
    book = taken(two_phase=False)
    assert put(book, "success", now=10, output=output(b"abcd")).status == 412
    answer = put(book, "success", now=10 + VERIFICATION_SECONDS, output=output(b"abcd"))
    assert answer.status == 200
    record = book.find(1)
    assert record is not None
    assert record.trace_matches is False


def test_a_final_update_waits_for_a_patch_on_its_way() -> None:
    book = taken(two_phase=False)
    record = book.find(1)
    assert record is not None
    record.open_patches = 1
    assert put(book, "success").status == 202
    record.open_patches = 0
    assert put(book, "success").status == 200


def test_an_old_runner_that_sends_only_the_deprecated_checksum_is_verified() -> None:
    book = taken(two_phase=False)
    patch(book, b"abcd", 0)
    assert put(book, "success", checksum="crc32:00000000").status == 412


def test_a_restart_gives_everyone_the_whole_time_again() -> None:
    book = JobBook([JobRecord(id=1, token=TOKEN, state=JobState.RESERVED, last_seen=5)])
    book.resume(1000)
    assert book.expire(1000 + ACCEPTANCE_SECONDS - 1) == []


@given(st.text(max_size=20))
def test_content_ranges_never_raise(text: str) -> None:
    bounds = parse_content_range(text)
    assert bounds is None or 0 <= bounds[0] <= bounds[1]


class BookMachine(RuleBasedStateMachine):
    """Whatever comes in whatever order: one end at most per try, and the trace is what was accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.book = JobBook()
        self.now = 0.0
        self.trace = b""
        self.told: list[str] = []

    def note(self, actions: tuple[object, ...] | list[object]) -> None:
        for action in actions:
            if isinstance(action, DropTrace):
                self.trace = b""
            else:
                self.told.append(type(action).__name__)

    @precondition(lambda self: self.book.find(1) is None or self.book.find(1).state is JobState.PENDING)
    @rule(two_phase=st.booleans(), graceful=st.booleans())
    def reserve(self, two_phase: bool, graceful: bool) -> None:
        self.trace, self.told = b"", []
        record = JobRecord(id=1, token=TOKEN, cancel_gracefully=graceful)
        self.note(self.book.reserve(record, two_phase=two_phase, now=self.now))

    @rule(state=st.sampled_from(["pending", "running", "success", "failed", "nonsense"]), right=st.booleans())
    def put(self, state: str, right: bool) -> None:
        sent = output(self.trace if right else self.trace + b"!")
        answer = self.book.update(1, TOKEN, JobUpdate(state=state, output=sent), self.now)
        assert answer.status in (200, 202, 400, 403, 404, 409, 412)
        self.note(answer.actions)

    @rule(content=st.binary(min_size=1, max_size=5), off=st.sampled_from([0, 0, 0, 1]))
    def patch(self, content: bytes, off: int) -> None:
        if patch(self.book, content, len(self.trace) + off, self.now).status == 202:
            assert off == 0
            self.trace += content

    @rule(force=st.booleans())
    def cancel(self, force: bool) -> None:
        self.note(self.book.cancel(1, self.now, force=force))

    @rule(seconds=st.sampled_from([1.0, 60.0, 130.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.note(self.book.expire(self.now))

    @invariant()
    def told_in_order(self) -> None:
        assert self.told.count("Finished") + self.told.count("Returned") <= 1
        if "Finished" in self.told:
            assert self.told[0] == "Started"
            assert self.told[-1] == "Finished"
        record = self.book.find(1)
        if record is not None:
            assert ("Finished" in self.told) == (record.state in FINAL_STATES)
            assert record.trace_size == len(self.trace)


TestBookMachine = BookMachine.TestCase
TestBookMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
