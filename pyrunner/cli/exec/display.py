"""What a run looks like on a terminal, in a pipe, and to a program."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from pyrunner.base.printable import printable
from pyrunner.cli.exec.board import Board, Row
from pyrunner.cli.exec.listing import columns
from pyrunner.cli.exec.logs import readable, tail
from pyrunner.cli.exec.rooms import Room
from pyrunner.pipeline.schedule import State
from pyrunner.server.files import JobFiles

#: Lines of a failed job's log that are shown.
TAIL = 200

#: State → ANSI colour; the same for all displays.
COLORS = {
    State.CREATED: "2",
    State.PENDING: "33",
    State.RUNNING: "36",
    State.SUCCESS: "32",
    State.FAILED: "31",
    State.CANCELED: "35",
    State.SKIPPED: "2",
    State.MANUAL: "34",
}


class Display(Protocol):
    """Shows one run; all calls come from one thread, `close` comes last and may come early."""

    def begin(self, board: Board) -> None:
        """The run begins."""
        ...

    def changed(self, row: Row, was: State) -> None:
        """A row of the board is different; its state was `was`."""
        ...

    def note(self, text: str) -> None:
        """Something to say besides."""
        ...

    def finish(self, outcome: State) -> None:
        """The run is over."""
        ...

    def close(self) -> None:
        """Give the terminal back."""
        ...


def label(row: Row) -> str:
    """A row's state in words."""
    if row.state is State.FAILED and row.forgiven:
        return "failed (allowed)"
    if row.state is State.PENDING and row.tries:
        return "retry"
    return row.state.value


def span(seconds: float | None) -> str:
    """A duration for people: ``0.4s``, ``12.0s``, ``3m 05s``."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.1f}s"
    return f"{int(seconds) // 60}m {int(seconds) % 60:02}s"


def headline(outcome: State, board: Board) -> str:
    """The last line of a run."""
    words = {State.SUCCESS: "passed", State.FAILED: "failed", State.CANCELED: "was canceled"}
    text = f"The pipeline {words[outcome]} in {span(time.monotonic() - board.began)}."
    waiting = [row.job for row in board.rows() if row.state is State.MANUAL]
    if waiting:
        text += f" Manual jobs, which run when named: {', '.join(waiting)}."
    held = [row.job for row in board.rows() if row.state is State.CREATED]
    if held:
        text += f" Waiting for them: {', '.join(held)}."
    return printable(text)


class PlainDisplay:
    """Lines: for pipes, logs, and terminals that are not asked for more."""

    def __init__(self, stream: TextIO, log: Callable[[Row], bytes], logs: str, *, color: bool) -> None:
        self._stream = stream
        self._log = log
        self._logs = logs
        self._color = color
        self._board: Board | None = None

    def begin(self, board: Board) -> None:
        """See `Display`."""
        self._board = board

    def changed(self, row: Row, was: State) -> None:
        """See `Display`."""
        if row.state in (State.CREATED, State.PENDING) and not row.tries:
            return
        line = f"{printable(row.stage)} / {printable(row.job)}: {self._painted(row)}"
        if row.state in (State.SUCCESS, State.FAILED, State.CANCELED) or label(row) == "retry":
            details = ", ".join(part for part in (span(row.seconds(time.monotonic())), row.reason) if part)
            line += f" ({details})" if details else ""
        self._write(line + "\n")
        if wants_log(row, self._logs):
            self._write(log_block(row, self._log(row), color=self._color))

    def note(self, text: str) -> None:
        """See `Display`."""
        self._write(text + "\n")

    def finish(self, outcome: State) -> None:
        """See `Display`."""
        assert self._board is not None  # noqa: S101
        self._write("\n" + summary(self._board) + "\n" + headline(outcome, self._board) + "\n")

    def close(self) -> None:
        """See `Display`."""
        self._stream.flush()

    def _painted(self, row: Row) -> str:
        text = label(row)
        return f"\x1b[{COLORS[row.state]}m{text}\x1b[0m" if self._color else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class JsonDisplay:
    """Nothing until the end, then one JSON object."""

    def __init__(self, stream: TextIO, room: Room) -> None:
        self._stream = stream
        self._files = JobFiles(room.data)
        self._board: Board | None = None

    def begin(self, board: Board) -> None:
        """See `Display`."""
        self._board = board

    def changed(self, row: Row, was: State) -> None:
        """See `Display`."""

    def note(self, text: str) -> None:
        """See `Display`."""
        sys.stderr.write(text + "\n")

    def finish(self, outcome: State) -> None:
        """See `Display`."""
        board, now = self._board, time.monotonic()
        assert board is not None  # noqa: S101
        jobs = [
            {
                "name": row.job,
                "stage": row.stage,
                "status": row.state.value,
                "allowed_to_fail": row.forgiven,
                "tries": row.tries,
                "duration": _rounded(row.seconds(now)),
                "exit_code": row.verdict.exit_code if row.verdict else None,
                "failure_reason": row.verdict.failure_reason if row.verdict else "",
                "log": str(self._files.trace_path(row.job_id)) if row.job_id else None,
            }
            for row in board.rows()
        ]
        result = {"status": outcome.value, "duration": _rounded(now - board.began), "jobs": jobs}
        self._stream.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """See `Display`."""
        self._stream.flush()


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def wants_log(row: Row, logs: str) -> bool:
    """Whether the log of this job is shown now; `logs` is ``failed``, ``all`` or ``none``."""
    if logs == "all":
        return row.tries > 0 and (row.ended is not None)
    return logs == "failed" and (row.state is State.FAILED or label(row) == "retry")


def log_block(row: Row, trace: bytes, *, color: bool) -> str:
    """The end of a job's log between two lines."""
    text, left_out = tail(readable(trace, color=color), TAIL)
    more = f" ({left_out} lines before)" if left_out else ""
    reset = "\x1b[0m" if color else ""
    name = printable(row.job)
    return f"--- log of {name}{more} ---\n{text}{reset}\n--- end of {name} ---\n"


def summary(board: Board) -> str:
    """The table at the end."""
    now = time.monotonic()
    rows = [("STAGE", "JOB", "STATE", "DURATION", "NOTE")]
    rows += [
        (row.stage, row.job, label(row), span(row.seconds(now)), row.reason or _tries(row)) for row in board.rows()
    ]
    return columns(rows)


def _tries(row: Row) -> str:
    return f"{row.tries} tries" if row.tries > 1 else ""
