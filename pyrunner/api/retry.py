"""When a request is made again, and after how long (facts/runner-api.md 1.5). Pure: the clock is a parameter."""

from __future__ import annotations

import random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_RETRIABLE = frozenset((408, 429, 500, 502, 503, 504))


def is_retriable(status: int) -> bool:
    """Whether an answer with `status` is worth another attempt."""
    return status in _RETRIABLE or status >= 512


class RetryPolicy:
    """How often and how long; the defaults are the rules of the API.

    Args:
        attempts: in total, the first included.
        minimum: seconds of the shortest exponential pause.
        maximum: seconds of the longest exponential pause; what a server asks for is not bounded by it.
        jitter: a number from the first to the second argument.
    """

    __slots__ = ("attempts", "jitter", "maximum", "minimum")

    def __init__(
        self,
        attempts: int = 5,
        minimum: float = 0.1,
        maximum: float = 60.0,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.attempts = attempts
        self.minimum = minimum
        self.maximum = maximum
        self.jitter = jitter

    def delay(self, attempt: int, header: Callable[[str], str], now: datetime | None = None) -> float:
        """Seconds to wait after the failed attempt number `attempt` (1, 2, …), whose answer had these headers."""
        reset = header("RateLimit-ResetTime")
        if reset and (until_reset := _seconds_until(reset, now)) > 0:
            return until_reset
        after = header("Retry-After").strip()
        # huge numbers would overflow the wait; nobody waits longer than the job request's hour anyway
        if after.isascii() and after.isdigit() and int(after[:9]) > 0:
            return float(after[:9])
        step = min(self.maximum, self.minimum * 2.0 ** min(attempt - 1, 30))
        return self.jitter(self.minimum, step)


def _seconds_until(date: str, now: datetime | None) -> float:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - (now or datetime.now(UTC))).total_seconds()
