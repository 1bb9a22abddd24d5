"""Who may run and who may ask: numbers, limits and request slots (facts/runner-api.md 9, job-lifecycle.md 2).

Nothing here locks or waits: `Slots` is a pure book that its owner guards.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

_Key = TypeVar("_Key")

_GROWTH, _DECAY, _BACK_OFF = 1.1, 0.95, 0.5


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of one running job."""

    #: ``CI_CONCURRENT_ID``: smallest free one among the running jobs of the same token.
    concurrent_id: int
    #: ``CI_CONCURRENT_PROJECT_ID``: the same among those of the same project.
    concurrent_project_id: int


@dataclass(frozen=True, kw_only=True)
class AdaptiveLimit:
    """How many requests for jobs may be under way at once (9.3): grows with success, shrinks without."""

    value: float = 1.0

    def used(self, configured: int) -> int:
        """The limit in force, between 1 and `configured`."""
        return min(max(1, math.ceil(self.value)), configured)

    def after(self, *, received: bool, retried: bool, configured: int) -> AdaptiveLimit:
        """The limit after a request that got a job or met a retriable status."""
        factor = _BACK_OFF if retried else _GROWTH if received else _DECAY
        return AdaptiveLimit(value=min(max(1.0, self.value * factor), float(configured)))


class Slots:
    """Jobs and requests under way, by runner token."""

    def __init__(self) -> None:
        self._numbers: dict[str, set[int]] = {}
        self._project_numbers: dict[tuple[str, int], set[int]] = {}
        self._builds: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._adaptive: dict[str, AdaptiveLimit] = {}

    def acquire_build(self, token: str, limit: int) -> bool:
        """Reserve one of the `limit` (0 = any number of) jobs of a runner, before a job is requested."""
        if limit > 0 and self._builds[token] >= limit:
            return False
        self._builds[token] += 1
        return True

    def release_build(self, token: str) -> None:
        """Give back what `acquire_build` reserved."""
        _decrease(self._builds, token)

    def acquire_request(self, token: str, configured: int, *, adaptive: bool) -> bool:
        """Reserve a request; `configured` is ``request_concurrency``."""
        limit = self.adaptive(token).used(configured) if adaptive else configured
        if self._requests[token] >= limit:
            return False
        self._requests[token] += 1
        return True

    def release_request(self, token: str, configured: int, *, received: bool, retried: bool) -> None:
        """Give back a request and learn from how it went."""
        _decrease(self._requests, token)
        self._adaptive[token] = self.adaptive(token).after(received=received, retried=retried, configured=configured)

    def adaptive(self, token: str) -> AdaptiveLimit:
        """The adaptive limit of a runner."""
        return self._adaptive.get(token) or AdaptiveLimit()

    def start_job(self, token: str, project_id: int) -> Numbers:
        """Numbers for a job that begins now."""
        return Numbers(
            concurrent_id=_take(self._numbers.setdefault(token, set())),
            concurrent_project_id=_take(self._project_numbers.setdefault((token, project_id), set())),
        )

    def end_job(self, token: str, project_id: int, numbers: Numbers) -> None:
        """The job is over: its numbers are free."""
        _give_back(self._numbers, token, numbers.concurrent_id)
        _give_back(self._project_numbers, (token, project_id), numbers.concurrent_project_id)

    def builds(self, token: str) -> int:
        """Jobs of a runner, requested ones included."""
        return self._builds[token]

    def forget_limits(self) -> None:
        """Start the adaptive limits anew (after a reload)."""
        self._adaptive.clear()


def _take(used: set[int]) -> int:
    number = 0
    while number in used:
        number += 1
    used.add(number)
    return number


def _give_back(book: dict[_Key, set[int]], key: _Key, number: int) -> None:
    used = book[key]
    used.remove(number)
    if not used:
        del book[key]


def _decrease(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]
