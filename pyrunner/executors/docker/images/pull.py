"""Pulls one image, again when that may help (facts/executors.md 6.8)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.auth.book import RegistryCredentials
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError, EngineUnreachableError
from pyrunner.executors.docker.images.pull_errors import failure_reason, may_pass
from pyrunner.executors.protocol import TraceWriter

TRIES = 3
_SHORTEST_PAUSE = 2.0
_LONGEST_PAUSE = 10.0
#: Characters of a registry's message.
_LONGEST_MESSAGE = 1000
_LONGEST_SCAN = 10 * _LONGEST_MESSAGE


def pause_before(attempt: int) -> float:
    """Seconds before the try with this number (2, 3, …): 2–10, longer each time, never the same for all runners."""
    longest = min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2 ** (attempt - 1))
    return random.uniform(max(_SHORTEST_PAUSE, longest / 2), longest)  # noqa: S311 - no secret


def one_line(text: str) -> str:
    """What a registry said, fit for a line of a log: it may be anybody's."""
    printable = "".join(character if character.isprintable() else " " for character in text[:_LONGEST_SCAN])
    words = " ".join(printable.split())
    return words if len(words) <= _LONGEST_MESSAGE else f"{words[:_LONGEST_MESSAGE]}..."


class Puller:
    """Pulls images for one job; used by the job's thread.

    Args:
        pause: seconds before the try with a number.
    """

    def __init__(
        self, engine: Engine, trace: TraceWriter, token: CancelToken, pause: Callable[[int], float] = pause_before
    ) -> None:
        self._engine = engine
        self._trace = trace
        self._token = token
        self._pause = pause

    def pull(self, reference: str, credentials: RegistryCredentials | None, platform: str = "") -> None:
        """Pull `reference`, which has a tag or a digest.

        Raises:
            EngineError: with the failure reason of what the registry said; `EngineUnreachableError` without one.
            BaseException: the token's cause, when cancelled: even a registry that never answers does not hold it up.
        """
        auth = credentials.auth() if credentials is not None else None
        attempt = 1
        while True:
            try:
                self._once(reference, auth, platform)
            except EngineUnreachableError:
                raise
            except EngineError as error:
                attempt += 1
                if attempt > TRIES or not may_pass(str(error)):
                    raise
                self._wait(attempt, error)
            else:
                return

    def _wait(self, attempt: int, error: EngineError) -> None:
        seconds = self._pause(attempt)
        self._trace.warning(f"Pulling failed, will be retried in {seconds:.0f}s ({attempt}/{TRIES}): {error}")
        if self._token.wait(seconds):
            self._token.raise_if_cancelled()

    def _once(self, reference: str, auth: dict[str, str] | None, platform: str) -> None:
        try:
            with self._engine.pull(reference, auth, self._token, platform) as progress:
                for step in progress:
                    _check(step)
        except EngineUnreachableError:
            raise
        except EngineError as error:
            message = one_line(str(error))
            raise EngineError(message, status=error.status, reason=failure_reason(message)) from error


def _check(step: dict[str, Any]) -> None:
    if error := step.get("error"):
        raise EngineError(str(error))
