"""The decisions of the trace loop, against a model of the server."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.api.outcomes import CLIENT_ERROR, PatchAnswer, PatchState, UpdateAnswer, UpdateState
from pyrunner.job.trace.plan import (
    ACCEPTANCE_LIMIT,
    DEFAULT_RETRY_LIMIT,
    LARGEST_PATCH,
    LONGEST_INTERVAL,
    Done,
    FinalPlan,
    LivePlan,
    Patch,
    Progress,
    Signal,
    Update,
    Wait,
)


def patched(state: PatchState = PatchState.SUCCEEDED, offset: int = 0, **more: object) -> PatchAnswer:
    return PatchAnswer(state=state, offset=offset, **more)  # type: ignore[arg-type]


def updated(state: UpdateState = UpdateState.SUCCEEDED, **more: object) -> UpdateAnswer:
    return UpdateAnswer(state=state, **more)  # type: ignore[arg-type]


class TestLive:
    def test_first_tick_is_one_interval_after_the_start(self) -> None:
        plan = LivePlan(Progress(), now=0)
        assert plan.next(1000, 0) == Wait(3.0)
        assert plan.next(1000, 3) == Patch(0, 1000)

    def test_one_patch_per_tick_of_at_most_a_mebibyte(self) -> None:
        plan = LivePlan(Progress(), now=0)
        plan.next(0, 0)
        size = 3 * LARGEST_PATCH
        patch = plan.next(size, 3)
        assert patch == Patch(0, LARGEST_PATCH)
        plan.patched(patch, patched(), size, 3)
        assert plan.next(size, 3) == Wait(3.0)
        assert plan.next(size, 6) == Patch(LARGEST_PATCH, LARGEST_PATCH)

    def test_silent_job_is_touched_after_thirty_seconds(self) -> None:
        plan = LivePlan(Progress(), now=0)
        actions = []
        for tick in range(12):
            plan.next(0, tick * 3)
            actions.append(plan.next(0, tick * 3 + 3))
        assert actions[:10] == [Wait(3.0)] * 10
        assert Update() in actions

    def test_patch_counts_as_sign_of_life(self) -> None:
        plan = LivePlan(Progress(), now=0)
        plan.next(5, 0)
        patch = plan.next(5, 29)
        assert isinstance(patch, Patch)
        plan.patched(patch, patched(), 5, 29)
        assert isinstance(plan.next(5, 31), Wait)

    def test_failed_patch_is_not_followed_by_a_touch(self) -> None:
        plan = LivePlan(Progress(), now=0)
        plan.next(5, 0)
        patch = plan.next(5, 100)
        assert isinstance(patch, Patch)
        plan.patched(patch, patched(PatchState.FAILED), 5, 100)
        assert plan.next(5, 100) == Wait(3.0)
        assert plan.next(5, 103) == patch

    def test_mismatch_goes_where_the_server_is(self) -> None:
        plan = LivePlan(Progress(), now=0)
        plan.next(100, 0)
        plan.patched(Patch(0, 100), patched(PatchState.RANGE_MISMATCH, 40), 100, 3)
        plan.next(100, 3)
        assert plan.next(100, 6) == Patch(40, 60)

    @pytest.mark.parametrize("offset", [-5, 10**9])
    def test_impossible_offset_of_the_server_is_brought_into_range(self, offset: int) -> None:
        progress = Progress(offset=50)
        progress.mismatch(patched(PatchState.RANGE_MISMATCH, offset), 100)
        assert 0 <= progress.offset <= 100

    def test_server_sets_the_interval_within_bounds(self) -> None:
        progress = Progress()
        for asked, used in ((10.0, 10.0), (0.0, 10.0), (None, 10.0), (10**6, LONGEST_INTERVAL)):
            progress.heard(patched(interval=asked))
            assert progress.interval == used

    def test_force_send_interval_follows_the_update_interval_when_dynamic(self) -> None:
        assert Progress(interval=60).force_send_interval == 30
        assert Progress(interval=60, dynamic=True).force_send_interval == 240
        assert Progress(interval=3, dynamic=True).force_send_interval == 30
        assert Progress(interval=900, dynamic=True).force_send_interval == 1800

    @pytest.mark.parametrize(
        ("answer", "signal"),
        [
            (patched(PatchState.ABORT), Signal.ABORT),
            (patched(PatchState.NOT_FOUND), Signal.NONE),
            (patched(cancel_requested=True), Signal.CANCEL),
            (patched(PatchState.FAILED), Signal.NONE),
        ],
    )
    def test_what_a_patch_means_for_the_job(self, answer: PatchAnswer, signal: Signal) -> None:
        progress = Progress()
        assert LivePlan(progress, 0).patched(Patch(0, 5), answer, 5, 3) is signal
        assert progress.offset == (5 if answer.state is PatchState.SUCCEEDED else 0)

    @pytest.mark.parametrize(
        ("answer", "signal"),
        [
            (updated(UpdateState.ABORT), Signal.ABORT),
            (updated(UpdateState.NOT_FOUND), Signal.ABORT),
            (updated(cancel_requested=True), Signal.CANCEL),
            (updated(UpdateState.FAILED), Signal.NONE),
        ],
    )
    def test_what_a_touch_means_for_the_job(self, answer: UpdateAnswer, signal: Signal) -> None:
        assert LivePlan(Progress(), 0).updated(answer, 3) is signal


def waits(plan: FinalPlan) -> list[float]:
    found = []
    while isinstance(action := plan.next(), Wait):
        found.append(action.seconds)
    return found


class TestFinal:
    def test_short_job_needs_one_patch_and_one_update(self) -> None:
        plan = FinalPlan(Progress(), 100)
        assert plan.next() == Patch(0, 100)
        plan.patched(Patch(0, 100), patched())
        assert plan.next() == Update()
        plan.updated(updated())
        assert plan.next() == Done(delivered=True)

    def test_empty_trace_is_never_patched(self) -> None:
        assert FinalPlan(Progress(), 0).next() == Update()

    def test_accepted_waits_and_asks_again_without_patches(self) -> None:
        plan = FinalPlan(Progress(offset=5), 5)
        plan.updated(updated(UpdateState.ACCEPTED, interval=7))
        assert plan.next() == Wait(7)
        assert plan.next() == Update()

    def test_failed_validation_sends_everything_again(self) -> None:
        plan = FinalPlan(Progress(offset=5), 5)
        plan.updated(updated(UpdateState.TRACE_VALIDATION_FAILED))
        assert waits(plan) == [3.0]
        assert plan.next() == Patch(0, 5)

    def test_interval_of_the_live_phase_is_forgotten(self) -> None:
        plan = FinalPlan(Progress(interval=600), 5)
        plan.patched(Patch(0, 5), patched(PatchState.RANGE_MISMATCH))
        assert waits(plan) == [3.0]

    @pytest.mark.parametrize("state", [PatchState.ABORT, PatchState.NOT_FOUND])
    def test_refused_patch_goes_on_to_the_verdict(self, state: PatchState) -> None:
        plan = FinalPlan(Progress(), 5)
        plan.patched(Patch(0, 5), patched(state))
        assert plan.next() == Update()

    @pytest.mark.parametrize("state", [UpdateState.ABORT, UpdateState.NOT_FOUND])
    def test_refused_verdict_ends_it(self, state: UpdateState) -> None:
        plan = FinalPlan(Progress(), 0)
        plan.updated(updated(state))
        assert plan.next() == Done(delivered=True)

    def test_tries_are_limited_with_growing_pauses(self) -> None:
        plan = FinalPlan(Progress(), 0, retry_limit=4)
        pauses = []
        for _ in range(3):
            plan.updated(updated(UpdateState.FAILED))
            pauses.append(waits(plan))
            assert plan.next() == Update()
        plan.updated(updated(UpdateState.FAILED))
        assert pauses == [[3.0, 1.0], [3.0, 2.0], [3.0, 4.0]]
        assert plan.next() == Done(delivered=False)

    def test_pause_never_exceeds_an_hour(self) -> None:
        plan = FinalPlan(Progress(), 0, retry_limit=30)
        for _ in range(29):
            plan.updated(updated(UpdateState.FAILED))
            longest = waits(plan)[-1]
        assert longest == 3600

    @pytest.mark.parametrize("limit", [0, -1])
    def test_meaningless_limit_means_the_default(self, limit: int) -> None:
        plan = FinalPlan(Progress(), 0, retry_limit=limit)
        for _ in range(DEFAULT_RETRY_LIMIT):
            assert not isinstance(plan.next(), Done)
            plan.updated(updated(UpdateState.FAILED))
            waits(plan)
        assert plan.next() == Done(delivered=False)

    def test_server_that_never_agrees_does_not_hold_the_slot_for_ever(self) -> None:
        for answer in (UpdateState.TRACE_VALIDATION_FAILED, None):
            plan = FinalPlan(Progress(), 5)
            for _ in range(1000):
                action = plan.next()
                if isinstance(action, Done):
                    break
                if isinstance(action, Patch):
                    state = PatchState.SUCCEEDED if answer else PatchState.RANGE_MISMATCH
                    plan.patched(action, patched(state))
                elif isinstance(action, Update):
                    plan.updated(updated(answer or UpdateState.FAILED))
            assert plan.next() == Done(delivered=False)


class TestEndless:
    """After the slot's tries the outbox goes on with the same plan."""

    def test_goes_on_after_the_last_try_of_the_slot_with_the_next_pause(self) -> None:
        plan = FinalPlan(Progress(), 0, retry_limit=2)
        for _ in range(2):
            waits(plan)
            plan.updated(updated(UpdateState.FAILED))
        assert plan.next() == Done(delivered=False)
        plan.endless()
        assert waits(plan) == [3.0, 2.0]
        for _ in range(1000):
            plan.updated(updated(UpdateState.FAILED))
            assert waits(plan)[-1] <= 3600
        assert plan.next() == Update()

    def test_pause_that_was_cut_short_is_still_due(self) -> None:
        plan = FinalPlan(Progress(), 0)
        plan.updated(updated(UpdateState.FAILED))
        plan.endless()
        assert waits(plan) == [3.0, 1.0]

    @pytest.mark.parametrize("state", [UpdateState.ABORT, UpdateState.NOT_FOUND, UpdateState.SUCCEEDED])
    def test_ends_when_the_server_has_or_forgot_the_job(self, state: UpdateState) -> None:
        plan = FinalPlan(Progress(), 0)
        plan.endless()
        plan.updated(updated(state))
        plan.endless()
        assert plan.next() == Done(delivered=True)

    def test_server_that_answers_again_is_tried_at_once(self) -> None:
        plan = FinalPlan(Progress(), 0)
        plan.endless()
        for _ in range(8):
            waits(plan)
            plan.updated(updated(UpdateState.FAILED))
        plan.hasten()
        assert plan.next() == Update()
        plan.updated(updated(UpdateState.FAILED))
        assert waits(plan) == [3.0, 1.0]

    def test_client_that_cannot_be_made_frees_the_slot_and_is_no_word_of_the_server(self) -> None:
        plan = FinalPlan(Progress(), 0)
        plan.updated(updated(UpdateState.ABORT, status=CLIENT_ERROR))
        assert plan.next() == Done(delivered=False)
        plan.endless()
        waits(plan)
        plan.updated(updated(UpdateState.ABORT, status=CLIENT_ERROR))
        assert waits(plan)
        assert plan.next() == Update()

    @pytest.mark.parametrize("endless", [False, True])
    def test_acceptance_without_end_counts_as_failure_some_day(self, endless: bool) -> None:
        plan = FinalPlan(Progress(), 0)
        if endless:
            plan.endless()
        pauses = []
        for _ in range(ACCEPTANCE_LIMIT + 20):
            plan.updated(updated(UpdateState.ACCEPTED, interval=3))
            pauses.append(waits(plan))
        assert pauses[:ACCEPTANCE_LIMIT] == [[3.0]] * ACCEPTANCE_LIMIT
        assert pauses[ACCEPTANCE_LIMIT] == [3.0, 1.0]
        assert isinstance(plan.next(), Update if endless else Done)
        if endless:
            plan.updated(updated())
        assert plan.next() == Done(delivered=endless)


@dataclass
class ModelServer:
    """Stores a trace as GitLab does, verifies its checksum, and misbehaves as told."""

    faults: list[str]
    stored: bytearray = field(default_factory=bytearray)
    verdict: str = ""
    patches: int = 0

    def _fault(self) -> str:
        return self.faults.pop(0) if self.faults else ""

    def patch(self, content: bytes, start: int) -> PatchAnswer:
        assert content, "an empty patch was sent"
        assert len(content) <= LARGEST_PATCH
        self.patches += 1
        fault = self._fault()
        if fault == "refuse":
            return patched(PatchState.FAILED, start)
        if fault == "truncate":
            del self.stored[len(self.stored) // 2 :]
        if start != len(self.stored) and start != 0:
            return patched(PatchState.RANGE_MISMATCH, len(self.stored))
        if start == 0:
            self.stored.clear()
        self.stored += content
        if fault == "lost answer":
            return patched(PatchState.FAILED, start)
        return patched(offset=len(self.stored))

    def update(self, state: str, checksum: int) -> UpdateAnswer:
        fault = self._fault()
        if fault in ("refuse", "lost answer"):
            return updated(UpdateState.FAILED)
        if fault == "accept":
            return updated(UpdateState.ACCEPTED)
        if state != "running" and zlib.crc32(self.stored) != checksum:
            return updated(UpdateState.TRACE_VALIDATION_FAILED)
        self.verdict = state
        return updated()


FAULTS = st.lists(st.sampled_from(["", "", "refuse", "truncate", "lost answer", "accept"]), max_size=9)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.integers(0, 700_000), max_size=6), FAULTS)
def test_server_ends_with_the_whole_trace_and_the_verdict(growth: list[int], faults: list[str]) -> None:
    server = ModelServer(list(faults))
    progress = Progress()
    trace = b""
    live = LivePlan(progress, 0)
    for tick, more in enumerate(growth):
        trace += bytes([tick % 251]) * more
        while not isinstance(action := live.next(len(trace), tick * 3.0), Wait):
            if isinstance(action, Patch):
                content = trace[action.start : action.start + action.length]
                live.patched(action, server.patch(content, action.start), len(trace), tick * 3.0)
            else:
                live.updated(server.update("running", zlib.crc32(trace)), tick * 3.0)
    final = FinalPlan(progress, len(trace))
    while not isinstance(end := final.next(), Done):
        if isinstance(end, Patch):
            content = trace[end.start : end.start + end.length]
            final.patched(end, server.patch(content, end.start))
        elif isinstance(end, Update):
            final.updated(server.update("success", zlib.crc32(trace)))
    assert end.delivered
    assert server.verdict == "success"
    assert bytes(server.stored) == trace
