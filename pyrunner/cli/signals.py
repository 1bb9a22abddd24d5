"""Stop signals for commands that run until they are told to stop."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

log = logging.getLogger(__name__)

#: Go's names of the signals: log lines and job logs show them.
SIGNAL_TEXTS = {signal.SIGQUIT: "quit", signal.SIGTERM: "terminated", signal.SIGINT: "interrupt"}
_STOP = b"\0"


class Signals:
    """Calls a function in a thread of its own for every signal, inside the ``with`` block.

    The kernel's handler only writes the signal's number into a pipe: what a signal does here takes locks, and a
    handler that runs in the middle of the main thread's own locked section would wait for itself for ever. The mask of
    blocked signals stays as it is, because child processes inherit it.

    Args:
        handle: gets the signal.
        also: signals beside those that stop the process.
    """

    def __init__(self, handle: Callable[[signal.Signals], None], also: tuple[signal.Signals, ...] = ()) -> None:
        self._handle = handle
        self._signals = (*SIGNAL_TEXTS, *also)
        self._before: dict[signal.Signals, object] = {}
        self._thread = threading.Thread(target=self._run, name="signals")

    def __enter__(self) -> Signals:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in self._signals:
            self._before[number] = signal.signal(number, _ignore)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        os.write(self._writer, _STOP)
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)

    def _run(self) -> None:
        while _STOP not in (numbers := os.read(self._reader, 64)):
            for number in numbers:
                if number in self._signals:
                    self._take(signal.Signals(number))

    def _take(self, number: signal.Signals) -> None:
        try:
            self._handle(number)
        except Exception:
            log.exception("Signal could not be handled", extra={"signal": number.name})


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Inside the block SIGTERM and SIGHUP raise what SIGINT does, with their names: a dialog can then be cleaned up."""
    names = {signal.SIGTERM: SIGNAL_TEXTS[signal.SIGTERM], signal.SIGHUP: "hangup"}

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(names[signal.Signals(number)])

    before = {number: signal.signal(number, interrupt) for number in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the byte in the pipe is what counts."""


def dump_threads() -> None:
    """Log what every thread is doing (SIGUSR1 at level debug)."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [
        f"{names.get(number, number)}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to other threads' stacks
    ]
    log.debug("=== received SIGUSR1 ===\n%s", "\n".join(stacks))
