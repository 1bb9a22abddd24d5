"""What to send next: the trace loop as a pure state machine (facts/runner-api.md 6.2 to 6.4).

``next(size, now)`` tells the one thing to do; the driver does it and reports with ``patched`` or ``updated``. Nothing
here knows threads, sockets or clocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from pyrunner.api.outcomes import CLIENT_ERROR, PatchAnswer, PatchState, UpdateAnswer, UpdateState

#: Bytes per patch at most.
LARGEST_PATCH = 1024 * 1024
#: Seconds between updates until the server says otherwise, and the most that it can ask for.
FIRST_INTERVAL = 3.0
LONGEST_INTERVAL = 15 * 60.0
#: Seconds without any sign of life after which the job is touched.
FORCE_SEND_INTERVAL = 30.0
LONGEST_FORCE_SEND_INTERVAL = 30 * 60.0
#: Pause before another try of the final update: the first, and the longest.
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60 * 60.0
#: Tries of the final update when the config names none.
DEFAULT_RETRY_LIMIT = 10
#: How often "accepted, not completed" is believed: five minutes at the usual interval, after which a server stops to
#: verify a trace and takes it as it is.
ACCEPTANCE_LIMIT = 100


@dataclass(frozen=True)
class Patch:
    """Send `length` bytes of the trace from `start`."""

    start: int
    length: int


@dataclass(frozen=True)
class Update:
    """Send the job's state with size and checksum of the trace."""


@dataclass(frozen=True)
class Wait:
    """Do nothing for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Done:
    """Nothing more to do; `delivered` says whether the server has taken the final state (or refused it for good)."""

    delivered: bool


class Signal(Enum):
    """What an answer means for the job itself."""

    NONE = auto()
    CANCEL = auto()
    ABORT = auto()


@dataclass
class Progress:
    """What both phases share: how far the server is, and how often it wants to hear from us."""

    offset: int = 0
    interval: float = FIRST_INTERVAL
    last_sent: float = 0.0
    dynamic: bool = False

    @property
    def force_send_interval(self) -> float:
        """Seconds of silence after which a running job is touched."""
        if not self.dynamic:
            return FORCE_SEND_INTERVAL
        return min(max(4 * self.interval, FORCE_SEND_INTERVAL), LONGEST_FORCE_SEND_INTERVAL)

    def heard(self, answer: PatchAnswer | UpdateAnswer) -> None:
        """Take over the server's update interval."""
        if answer.interval is not None and answer.interval > 0:
            self.interval = min(answer.interval, LONGEST_INTERVAL)

    def patch(self, size: int) -> Patch:
        """The next piece to send."""
        return Patch(self.offset, min(size - self.offset, LARGEST_PATCH))

    def mismatch(self, answer: PatchAnswer, size: int) -> None:
        """Go to where the server says it is; never beyond what there is."""
        self.offset = min(max(answer.offset, 0), size)


class LivePlan:
    """While the job runs: per tick one patch if there is news, then a touch after a long silence."""

    def __init__(self, progress: Progress, now: float) -> None:
        self._progress = progress
        progress.last_sent = now
        self._tick_done = True
        self._patched = False

    def next(self, size: int, now: float) -> Patch | Update | Wait:
        """The next action; a `Wait` ends the tick."""
        if self._tick_done:
            self._tick_done = False
            self._patched = False
            return Wait(self._progress.interval)
        if not self._patched and size > self._progress.offset:
            self._patched = True
            return self._progress.patch(size)
        self._tick_done = True
        if now - self._progress.last_sent > self._progress.force_send_interval:
            return Update()
        return self.next(size, now)

    def patched(self, action: Patch, answer: PatchAnswer, size: int, now: float) -> Signal:
        """Take in the answer to a patch."""
        self._progress.heard(answer)
        if answer.state is PatchState.SUCCEEDED:
            self._progress.offset = action.start + action.length
            self._progress.last_sent = now
        else:
            self._tick_done = True
        if answer.state is PatchState.RANGE_MISMATCH:
            self._progress.mismatch(answer, size)
        if answer.state is PatchState.ABORT:
            return Signal.ABORT
        return Signal.CANCEL if answer.cancel_requested else Signal.NONE

    def updated(self, answer: UpdateAnswer, now: float) -> Signal:
        """Take in the answer to a touch."""
        self._progress.heard(answer)
        if answer.state is UpdateState.SUCCEEDED:
            self._progress.last_sent = now
        if answer.state.lost:
            return Signal.ABORT
        return Signal.CANCEL if answer.cancel_requested else Signal.NONE


class FinalPlan:
    """When the job is over: the rest of the trace, then the final state, until the server has both.

    `size` is fixed by then. A try ends with a failed request; there are `retry_limit` tries, with a growing pause in
    between. Answers that only ask for patience do not use up tries; answers that ask for the same bytes over and over
    do, and so do those that ask for more patience than any server needs, or a broken server would hold the job slot
    for ever. `endless` goes on with the tries of a plan that has used up its own.
    """

    def __init__(self, progress: Progress, size: int, retry_limit: int = DEFAULT_RETRY_LIMIT) -> None:
        progress.interval = FIRST_INTERVAL
        self._progress = progress
        self._size = size
        self._tries_left: float = retry_limit if retry_limit >= 1 else DEFAULT_RETRY_LIMIT
        self._patience = self._tries_left
        self._acceptances = ACCEPTANCE_LIMIT
        self._backoff = FIRST_BACKOFF
        self._waits: list[float] = []
        self._patching = True
        self._done: Done | None = None
        #: How many tries have failed.
        self.failures = 0

    @property
    def offset(self) -> int:
        """Bytes of the trace that the server has, as far as is known."""
        return self._progress.offset

    def endless(self) -> None:
        """Try without limit from here on, after the pause that is due next."""
        self._tries_left = math.inf
        if self._done is not None and not self._done.delivered:
            self._done = None
            self._pause()

    def hasten(self) -> None:
        """The server answers again: do not wait any longer, and begin with short pauses again."""
        self._waits.clear()
        self._backoff = FIRST_BACKOFF

    def next(self) -> Patch | Update | Wait | Done:
        """The next action."""
        if self._done is not None:
            return self._done
        if self._waits:
            return Wait(self._waits.pop(0))
        if self._patching and self._progress.offset < self._size:
            return self._progress.patch(self._size)
        return Update()

    def patched(self, action: Patch, answer: PatchAnswer) -> None:
        """Take in the answer to a patch."""
        self._progress.heard(answer)
        match answer.state:
            case PatchState.SUCCEEDED:
                self._progress.offset = action.start + action.length
            case PatchState.RANGE_MISMATCH:
                self._progress.mismatch(answer, self._size)
                self._asked_again()
            case PatchState.FAILED:
                self._failed()
            case _:
                self._patching = False

    def updated(self, answer: UpdateAnswer) -> None:
        """Take in the answer to the final update."""
        self._progress.heard(answer)
        match answer.state:
            case UpdateState.ACCEPTED if self._acceptances > 0:
                self._acceptances -= 1
                self._waits = [self._progress.interval]
            case UpdateState.TRACE_VALIDATION_FAILED:
                self._progress.offset = 0
                self._patching = True
                self._asked_again()
            case UpdateState.FAILED | UpdateState.ACCEPTED:
                self._failed()
            case UpdateState.ABORT if answer.status == CLIENT_ERROR:
                # not the server's word: nothing was sent, and only another configuration could change that
                self._tries_left = self._tries_left if self._tries_left == math.inf else 1
                self._failed()
            case _:
                self._done = Done(delivered=True)

    def _asked_again(self) -> None:
        self._patience -= 1
        if self._patience < 0:
            self._failed()
        else:
            self._waits = [self._progress.interval]

    def _failed(self) -> None:
        self.failures += 1
        self._tries_left -= 1
        if self._tries_left <= 0:
            self._done = Done(delivered=False)
            return
        self._pause()

    def _pause(self) -> None:
        self._patching = True
        self._waits = [self._progress.interval, self._backoff]
        self._backoff = min(self._backoff * 2, LONGEST_BACKOFF)
