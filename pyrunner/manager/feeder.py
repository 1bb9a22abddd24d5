"""Which runner asks next, and when: in turn, ``check_interval / runners`` apart (facts/runner-api.md 9.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Runner = TypeVar("Runner")


@dataclass(frozen=True, kw_only=True)
class Feed(Generic[Runner]):
    """What to do now: offer `runner` (None = none yet), then come back in `pause` seconds."""

    runner: Runner | None
    pause: float


class FeedPlan(Generic[Runner]):
    """The pure schedule of polls; the clock is a parameter."""

    def __init__(self, runners: Sequence[Runner], check_interval: float, now: float) -> None:
        self._next_at = now
        self._index = 0
        self.reload(runners, check_interval, now)

    def reload(self, runners: Sequence[Runner], check_interval: float, now: float) -> None:
        """Go on with other runners: the first of them is polled at once."""
        self._runners = tuple(runners)
        self._interval = check_interval
        self._index = 0
        self._next_at = now

    def due(self, now: float) -> Feed[Runner]:
        """The runner whose turn it is at `now`, if any."""
        if not self._runners:
            return Feed(runner=None, pause=self._interval)
        if now < self._next_at:
            return Feed(runner=None, pause=self._next_at - now)
        runner = self._runners[self._index]
        self._index = (self._index + 1) % len(self._runners)
        pause = self._interval / len(self._runners)
        # from the planned time, so that small delays do not add up; after a long one (a suspended machine) from now
        self._next_at = max(self._next_at + pause, now)
        return Feed(runner=runner, pause=self._next_at - now)
