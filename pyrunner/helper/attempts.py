"""Trying again: which outcomes are worth it, how often, after what pause."""

from __future__ import annotations

import time

from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

log = Log(__name__)


class RetriableError(PyrunnerError):
    """A try failed in a way that another one may not; at most `tries` in all are worth it for this kind."""

    def __init__(self, message: str, *, tries: int = 0) -> None:
        super().__init__(message)
        self.tries = tries


class Schedule:
    """How often and how long to wait.

    Args:
        tries: in all, the first included; an error that names its own number overrides it.
        pause: seconds before the second try.
        factor: what every further pause is multiplied with.
        longest: the longest pause in seconds.
    """

    __slots__ = ("factor", "longest", "pause", "tries")

    def __init__(self, tries: int, pause: float, *, factor: float = 1.0, longest: float = 3600.0) -> None:
        self.tries = tries
        self.pause = pause
        self.factor = factor
        self.longest = longest

    def delay(self, failed: int) -> float:
        """Seconds to wait after `failed` failed tries (1, 2, …)."""
        return float(min(self.longest, self.pause * self.factor ** min(failed - 1, 64)))


def attempt(
    work: Callable[[int], T],
    schedule: Schedule,
    *,
    context: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """``work(0)``, ``work(1)`` … until one does not raise `RetriableError`, or the schedule ends.

    Raises:
        RetriableError: the last one, when the tries are used up.
    """
    number = 0
    while True:
        try:
            return work(number)
        except RetriableError as error:
            number += 1
            if number >= (error.tries or schedule.tries):
                raise
            fields: dict[str, object] = {"error": str(error)}
            if context:
                fields["context"] = context
            log.warning("Retrying...", extra=fields)
            sleep(schedule.delay(number))
