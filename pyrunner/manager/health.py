"""Which runners are left alone for a while because the server refuses them (facts/runner-api.md 9.4). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Health(Enum):
    """May this runner be polled?"""

    HEALTHY = auto()
    #: Its pause is over: it may be polled once, and whoever asks says so in the log.
    FORCED = auto()
    UNHEALTHY = auto()


@dataclass
class _Record:
    failures: int
    last_healthy: float


class HealthBook:
    """Consecutive unhealthy requests by runner (its URL and short token). Times are monotonic seconds."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def check(self, key: str, limit: int, interval: float, now: float) -> Health:
        """Whether the runner may be polled; asking after the pause ends it."""
        record = self._records.get(key)
        if record is None or record.failures < limit:
            return Health.HEALTHY
        if now - record.last_healthy <= interval:
            return Health.UNHEALTHY
        record.failures = 0
        record.last_healthy = now
        return Health.FORCED

    def record(self, key: str, limit: int, now: float, *, healthy: bool) -> bool:
        """Take in the result of a request; whether the runner is disabled now."""
        record = self._records.setdefault(key, _Record(0, now))
        if healthy:
            record.failures, record.last_healthy = 0, now
            return False
        record.failures += 1
        return record.failures >= limit

    def clear(self) -> None:
        """Forget everything (after a reload)."""
        self._records.clear()
