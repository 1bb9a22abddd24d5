"""One explicit token for cancel, timeout, shutdown and lost job, with a deadline."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

Callback = Callable[[], object]


class CancelToken:
    """Tells everyone who works on something to stop, and why.

    A token is cancelled once, by `cancel` or by passing its deadline, with a *cause* (an exception) that everyone who
    notices raises or reports. Cancelling a token cancels its children with the same cause. Callbacks registered with
    `on_cancel` run in the cancelling thread, exactly once, immediately if the token is already cancelled: they close or
    signal what a thread blocks on and must not block themselves.

    All methods are safe from any thread.
    """

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._cause: BaseException | None = None
        self._callbacks: dict[int, Callback] = {}
        self._numbers = itertools.count()
        self._deadline: float | None = None
        self._timers: list[_Timer] = []
        self._detach: Callback | None = None
        self._parent = parent
        self._urgency: CancelToken | None = None
        if parent is not None:
            self._deadline = parent._deadline
            self._detach = parent.on_cancel(lambda: self.cancel(parent.cause or RuntimeError("cancelled")))

    def child(self, timeout: float | None = None, expired: BaseException | None = None) -> CancelToken:
        """A token that ends with this one, and by itself `timeout` seconds from now with the cause `expired`."""
        token = CancelToken(self)
        if timeout is not None:
            token.expire_in(timeout, expired or TimeoutError("deadline exceeded"))
        return token

    def expire_in(self, timeout: float, cause: BaseException) -> None:
        """Cancel this token with `cause` in `timeout` seconds unless something else does before."""
        deadline = time.monotonic() + timeout
        with self._lock:
            if self._deadline is None or deadline < self._deadline:
                self._deadline = deadline
            self._timers.append(_clock.call_at(deadline, self, cause))

    def cancel(self, cause: BaseException) -> bool:
        """Cancel with `cause`; the first cause stays. Returns whether this call was the first."""
        with self._lock:
            if self._cause is not None:
                return False
            self._cause = cause
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        self._event.set()
        for callback in callbacks:
            callback()
        return True

    def close(self) -> None:
        """Forget parent and deadlines: call when the work is over, so that nothing long-lived holds this token."""
        detach, self._detach = self._detach, None
        if detach is not None:
            detach()
        with self._lock:
            self._parent = None
            urgency = self._urgency
        if urgency is not None:
            urgency.close()
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.token = None

    @property
    def urgency(self) -> CancelToken:
        """Cancelled when there is no time left for an orderly end: what this token has stopped is killed at once.

        That of a parent reaches its children, like a cancel.
        """
        with self._lock:
            if self._urgency is None:
                self._urgency = CancelToken(self._parent.urgency if self._parent is not None else None)
            return self._urgency

    @property
    def cancelled(self) -> bool:
        """Whether the token has been cancelled."""
        return self._cause is not None

    @property
    def cause(self) -> BaseException | None:
        """Why the token was cancelled, or None."""
        return self._cause

    def remaining(self) -> float | None:
        """Seconds until the nearest deadline (0 when past), or None without one."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def raise_if_cancelled(self) -> None:
        """Raise the cause if there is one."""
        if self._cause is not None:
            raise self._cause

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep up to `timeout` seconds; True as soon as the token is cancelled."""
        return self._event.wait(timeout)

    def on_cancel(self, callback: Callback) -> Callback:
        """Run `callback` on cancel; returns a function that takes it back."""
        with self._lock:
            if self._cause is None:
                number = next(self._numbers)
                self._callbacks[number] = callback

                def remove() -> None:
                    with self._lock:
                        self._callbacks.pop(number, None)

                return remove
        callback()
        return lambda: None


class _Timer:
    """One open deadline; `token` is None once nobody is interested any more."""

    __slots__ = ("cause", "deadline", "token")

    def __init__(self, deadline: float, token: CancelToken, cause: BaseException) -> None:
        self.deadline = deadline
        self.token: CancelToken | None = token
        self.cause = cause

    def __lt__(self, other: _Timer) -> bool:
        return self.deadline < other.deadline


class _Clock:
    """Cancels tokens at their deadlines from one thread that only lives while a deadline is open.

    The thread is a daemon on purpose: a deadline that nobody waits for any more must not keep the process alive.
    """

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._heap: list[_Timer] = []
        self._running = False

    def call_at(self, deadline: float, token: CancelToken, cause: BaseException) -> _Timer:
        timer = _Timer(deadline, token, cause)
        with self._wake:
            if len(self._heap) > 64 and sum(1 for open_ in self._heap if open_.token) * 2 < len(self._heap):
                self._heap = [open_ for open_ in self._heap if open_.token]
                heapq.heapify(self._heap)
            heapq.heappush(self._heap, timer)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="deadlines", daemon=True).start()
            elif self._heap[0] is timer:
                self._wake.notify()
        return timer

    def _run(self) -> None:
        while (timer := self._next_due()) is not None:
            token = timer.token
            if token is not None:
                token.cancel(timer.cause)

    def _next_due(self) -> _Timer | None:
        with self._wake:
            while self._heap:
                pause = self._heap[0].deadline - time.monotonic()
                if self._heap[0].token is None or pause <= 0:
                    return heapq.heappop(self._heap)
                self._wake.wait(pause)
            self._running = False
            return None


_clock = _Clock()
