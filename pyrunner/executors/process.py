"""A script's processes: one process group, one poll, one ladder of signals (facts/job-lifecycle.md 3.3, 3.4).

Nothing here starts a thread or polls without need: the thread that runs the job waits for the end of the leader (a
pidfd), for cancellation (an eventfd) and for output in one ``poll``.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.exit_code import check_exit_code

#: Signals that Python ignores and that a child must not inherit as ignored.
_RESTORED_SIGNALS = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
#: Longest pause between two looks at what is left of a cancelled group, seconds.
_LONGEST_STRAGGLER_PAUSE = 0.5


@dataclass(frozen=True, kw_only=True)
class GracePeriods:
    """How long a cancelled group has, seconds: after SIGTERM, and after SIGKILL."""

    terminate: float = 600.0
    kill: float = 10.0


class Output(Protocol):
    """Where the output of a running stage comes from."""

    def fileno(self) -> int:
        """Descriptor that becomes readable with new output; -1 to be asked at `pause` only."""
        ...

    def pause(self) -> float | None:
        """Seconds until the next `pump`, whatever happens; None = only when readable."""
        ...

    def pump(self) -> None:
        """Pass on what is there; never blocks for more."""
        ...

    def finish(self) -> None:
        """The leader is gone: pass on what it has written. Must not wait for processes that it left behind."""
        ...


class Wake:
    """Ends a ``poll`` from another thread; safe against a late `set`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """What to poll."""
        return self._descriptor

    def set(self) -> None:
        """Make `fileno` readable for good."""
        with self._lock:
            if self._descriptor >= 0:
                os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Make it unreadable."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def close(self) -> None:
        """Release the descriptor."""
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1


class ProcessGroup:
    """A started leader with its group; `wait` must be called exactly once."""

    def __init__(self, pid: int, *, exit_code: Callable[[], int | None] | None = None) -> None:
        self.pid = pid
        self._exit_code = exit_code
        self._pidfd = os.pidfd_open(pid)
        self._level = 0
        self._deadline: float | None = None

    @classmethod
    def start(
        cls,
        arguments: list[str],
        *,
        stdin: int,
        output: int,
        environment: Mapping[bytes, bytes],
        extra: Mapping[int, int] | None = None,
    ) -> ProcessGroup:
        """Start a program as the leader of a new group; stdout and stderr both go to the descriptor `output`.

        `extra` maps further numbers in the program to descriptors of this process.

        Raises:
            SystemFailure: the program cannot be started.
        """
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, output, 1)]
        actions.append((os.POSIX_SPAWN_DUP2, output, 2))
        actions += [(os.POSIX_SPAWN_DUP2, source, number) for number, source in (extra or {}).items()]
        try:
            pid = os.posix_spawnp(
                arguments[0],
                arguments,
                environment,
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=_RESTORED_SIGNALS,
            )
        except OSError as error:
            raise SystemFailure(
                f'cannot start "{arguments[0]}": {error.strerror}', reason="runner_system_failure"
            ) from error
        return cls(pid)

    @classmethod
    def adopt(cls, pid: int, exit_code: Callable[[], int | None]) -> ProcessGroup:
        """The group of a leader that an earlier process has started; `exit_code` finds out how it ended.

        Raises:
            ProcessLookupError: it has ended already.
        """
        return cls(pid, exit_code=exit_code)

    def wait_for(self, descriptor: int, output: Output, token: CancelToken, grace: GracePeriods | None = None) -> bool:
        """Pass output on until `descriptor` is readable: True, and the leader lives on.

        False when the leader has ended first, cancelled or not; `wait` then tells how.
        """
        wake = Wake()
        detach = _woken(token, wake)
        try:
            ready = self._loop(output, token, wake, grace or GracePeriods(), descriptor)
            if ready:
                output.finish()
        except BaseException:
            self._signal(signal.SIGKILL)
            os.close(self._pidfd)
            self._reap()
            raise
        finally:
            detach()
            wake.close()
        return ready

    def wait(self, output: Output, token: CancelToken, grace: GracePeriods | None = None) -> None:
        """Pass output on until the leader ends.

        Raises:
            JobFailure: it ended with another code than 0.
            SystemFailure: it survived every signal, or its output or end got lost.
            BaseException: the token's cause, when cancelled; the group is gone by then.
        """
        grace = grace or GracePeriods()
        wake = Wake()
        detach = _woken(token, wake)
        try:
            self._loop(output, token, wake, grace)
            output.finish()
            if self._level:
                self._end_stragglers(output, grace, token)
        except BaseException:
            # Nobody will look after these processes any more.
            self._signal(signal.SIGKILL)
            self._gone_within(0 if self._level > 1 else grace.kill)
            raise
        finally:
            detach()
            wake.close()
            os.close(self._pidfd)
            code = self._reap()
        if self._level:
            token.raise_if_cancelled()
        check_exit_code(code)

    def kill_leader(self) -> None:
        """End a leader that has nothing more to do, instead of `wait`; what it left in its group stays alone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        os.close(self._pidfd)
        os.waitpid(self.pid, 0)

    def _gone_within(self, seconds: float) -> None:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        poller.poll(int(seconds * 1000))

    def _reap(self) -> int | None:
        """Exit code, negative for a signal; None when it is unknown or the leader still lives."""
        if self._exit_code is not None:
            return self._exit_code()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _loop(self, output: Output, token: CancelToken, wake: Wake, grace: GracePeriods, awaited: int = -1) -> bool:
        """Whether `awaited` was readable, uncancelled, before the leader ended."""
        poller = select.poll()
        for descriptor in (self._pidfd, wake.fileno(), awaited):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        watched = -1
        while True:
            pause = output.pause()
            watched = _exchange(poller, watched, output.fileno() if pause is None else -1)
            ready = dict(poller.poll(self._timeout(pause)))
            if self._pidfd in ready:
                return False
            if wake.fileno() in ready:
                wake.clear()
            if token.cancelled:
                self._climb(grace, token)
                # Ready or not: from now on only the end of the leader counts.
                awaited = _exchange(poller, awaited, -1)
            elif awaited in ready:
                return True
            if watched in ready or not ready:
                output.pump()

    def _timeout(self, pause: float | None) -> int | None:
        """Milliseconds until the next thing to do."""
        if self._deadline is not None:
            left = max(0.0, self._deadline - time.monotonic())
            pause = left if pause is None else min(left, pause)
        # Rounded up: a poll that returns just before its time would be a busy loop.
        return None if pause is None else int(pause * 1000) + 1

    def _climb(self, grace: GracePeriods, token: CancelToken) -> None:
        """The next step of the ladder, when its time has come."""
        now = time.monotonic()
        if self._level < 2 and token.urgency.cancelled:  # noqa: PLR2004 - the step after SIGKILL
            self._level = 1
        elif self._deadline is not None and now < self._deadline:
            return
        if self._level == 0:
            self._signal(signal.SIGTERM)
            # a stopped process would take notice of it only when somebody lets it go on
            self._signal(signal.SIGCONT)
            self._deadline = now + grace.terminate
        elif self._level == 1:
            self._signal(signal.SIGKILL)
            self._deadline = now + grace.kill
        else:
            raise SystemFailure(
                f"failed to kill process PID={self.pid}, likely process is dormant", reason="runner_system_failure"
            )
        self._level += 1

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _end_stragglers(self, output: Output, grace: GracePeriods, token: CancelToken) -> None:
        """Bring down what a cancelled leader has left in its group: it got the same signals and the same time.

        The leader is not reaped yet, so its group cannot be another one of the same number.
        """
        pause = 0.01
        while _members(self.pid):
            try:
                self._climb(grace, token)
            except SystemFailure:
                return
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_STRAGGLER_PAUSE)
            output.finish()


def _woken(token: CancelToken, wake: Wake) -> Callable[[], None]:
    """Have a cancel and its urgency set `wake`; returns what takes that back."""
    detach = token.on_cancel(wake.set), token.urgency.on_cancel(wake.set)

    def take_back() -> None:
        for each in detach:
            each()

    return take_back


def _exchange(poller: select.poll, old: int, new: int) -> int:
    """Let `poller` look at `new` in place of `old`; -1 is none."""
    if new != old:
        if old >= 0:
            poller.unregister(old)
        if new >= 0:
            poller.register(new, select.POLLIN)
    return new


def _members(group: int) -> list[int]:
    """Living processes of a group, its leader's own zombie left out."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                state, _, pgrp = stat.read().rpartition(b")")[2].split()[:3]
        except OSError:
            continue
        if int(pgrp) == group and state not in (b"Z", b"X"):
            found.append(int(name))
    return found
