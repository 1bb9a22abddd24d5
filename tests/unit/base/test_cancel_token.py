"""`CancelToken`: one cause, children, deadlines, callbacks."""

from __future__ import annotations

import threading
import time

import pytest

from pyrunner.base.cancel import CancelToken


def test_the_first_cause_stays() -> None:
    token = CancelToken()
    assert token.cancel(ValueError("first"))
    assert not token.cancel(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        token.raise_if_cancelled()


def test_a_child_ends_with_its_parent_but_not_the_other_way_round() -> None:
    parent = CancelToken()
    child, other = parent.child(), parent.child()
    child.cancel(ValueError("mine"))
    assert not parent.cancelled
    assert not other.cancelled
    parent.cancel(KeyError("all"))
    assert isinstance(other.cause, KeyError)
    assert isinstance(child.cause, ValueError)


def test_a_child_of_a_cancelled_token_is_born_cancelled() -> None:
    parent = CancelToken()
    parent.cancel(ValueError("late"))
    assert isinstance(parent.child().cause, ValueError)


def test_a_deadline_cancels_with_its_own_cause() -> None:
    token = CancelToken().child(timeout=0.02, expired=TimeoutError("too long"))
    assert token.wait(5)
    assert str(token.cause) == "too long"
    assert token.remaining() == 0


def test_the_nearest_of_two_deadlines_wins_whatever_their_order() -> None:
    token = CancelToken()
    token.expire_in(60, ValueError("far"))
    token.expire_in(0.02, ValueError("near"))
    assert token.wait(5)
    assert str(token.cause) == "near"


def test_a_child_inherits_the_deadline_of_its_parent() -> None:
    parent = CancelToken()
    parent.expire_in(50, ValueError("x"))
    remaining = parent.child(timeout=100).remaining()
    assert remaining is not None
    assert 40 < remaining <= 50
    parent.close()


def test_a_closed_token_keeps_no_deadline_and_no_parent() -> None:
    parent = CancelToken()
    child = parent.child(timeout=0.05)
    child.close()
    parent.cancel(ValueError("x"))
    time.sleep(0.1)
    assert not child.cancelled


def test_callbacks_run_once_and_can_be_taken_back() -> None:
    token, seen = CancelToken(), []
    token.on_cancel(lambda: seen.append("kept"))
    token.on_cancel(lambda: seen.append("taken back"))()
    token.cancel(ValueError("x"))
    token.cancel(ValueError("y"))
    assert seen == ["kept"]
    token.on_cancel(lambda: seen.append("late"))
    assert seen == ["kept", "late"]


def test_cancel_from_another_thread_wakes_a_waiter_at_once() -> None:
    token = CancelToken()
    thread = threading.Timer(0.05, token.cancel, [ValueError("x")])
    thread.start()
    started = time.monotonic()
    assert token.wait(10)
    assert time.monotonic() - started < 5
    thread.join()


def test_urgency_reaches_children_made_before_and_after_and_nobody_above() -> None:
    parent = CancelToken()
    middle = parent.child()
    early = middle.child()
    seen: list[str] = []
    early.urgency.on_cancel(lambda: seen.append("early"))
    middle.urgency.cancel(ValueError("now"))
    assert seen == ["early"]
    assert middle.child().urgency.cancelled
    assert not parent.urgency.cancelled
    assert not middle.cancelled


def test_a_closed_token_hears_nothing_of_its_parents_urgency() -> None:
    parent = CancelToken()
    child = parent.child()
    assert not child.urgency.cancelled
    child.close()
    parent.urgency.cancel(ValueError("now"))
    assert not child.urgency.cancelled
    assert parent.urgency._callbacks == {}


def test_many_finished_jobs_leave_no_deadlines_behind() -> None:
    from pyrunner.base import cancel

    for _ in range(1000):
        CancelToken().child(timeout=3600).close()
    assert len(cancel._clock._heap) < 200
