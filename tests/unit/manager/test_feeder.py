from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrunner.manager.feeder import FeedPlan


def test_runners_take_turns_a_part_of_the_interval_apart() -> None:
    plan = FeedPlan("abc", 3.0, now=10.0)
    fed = []
    now = 10.0
    for _ in range(7):
        feed = plan.due(now)
        fed.append((now, feed.runner))
        now += feed.pause
    assert fed == [(10, "a"), (11, "b"), (12, "c"), (13, "a"), (14, "b"), (15, "c"), (16, "a")]


def test_early_look_gives_nothing_and_the_time_that_is_left() -> None:
    plan = FeedPlan("a", 3.0, now=0.0)
    assert plan.due(0.0).runner == "a"
    feed = plan.due(1.0)
    assert feed.runner is None
    assert feed.pause == 2.0


def test_no_runners() -> None:
    feed = FeedPlan("", 3.0, now=0.0).due(5.0)
    assert (feed.runner, feed.pause) == (None, 3.0)


def test_a_suspended_machine_does_not_poll_in_a_burst() -> None:
    plan = FeedPlan("a", 3.0, now=0.0)
    plan.due(0.0)
    assert plan.due(1000.0).runner == "a"
    polls = sum(1 for tick in range(31) if plan.due(1000.0 + tick / 10).runner)
    assert polls <= 2


def test_reload_begins_at_once_with_the_first() -> None:
    plan = FeedPlan("ab", 3.0, now=0.0)
    plan.due(0.0)
    plan.reload("xy", 3.0, 0.5)
    assert plan.due(0.5).runner == "x"


@given(st.integers(1, 20), st.floats(0.1, 60), st.lists(st.floats(0, 100), max_size=50))
def test_pace_is_never_exceeded(count: int, interval: float, delays: list[float]) -> None:
    plan = FeedPlan(range(count), interval, now=0.0)
    now, feeds = 0.0, 0
    for delay in delays:
        feed = plan.due(now)
        assert feed.pause >= 0
        feeds += feed.runner is not None
        now += delay
    assert feeds <= now / (interval / count) + 2
