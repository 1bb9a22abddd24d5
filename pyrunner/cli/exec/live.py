"""The live display of a terminal: a tree of stages and jobs that redraws itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pyrunner.base.printable import printable
from pyrunner.cli.exec.board import Board, Row
from pyrunner.cli.exec.display import headline, label, log_block, span, wants_log
from pyrunner.pipeline.schedule import State

_STYLES = {
    State.CREATED: "dim",
    State.PENDING: "yellow",
    State.RUNNING: "cyan",
    State.SUCCESS: "green",
    State.FAILED: "red",
    State.CANCELED: "magenta",
    State.SKIPPED: "dim",
    State.MANUAL: "blue",
}
_SIGNS = {
    State.CREATED: "·",
    State.PENDING: "○",
    State.SUCCESS: "✔",
    State.FAILED: "✘",
    State.CANCELED: "■",
    State.SKIPPED: "»",
    State.MANUAL: "▷",
}


class LiveDisplay:
    """A tree while jobs run, logs of failed jobs above it, a table at the end."""

    def __init__(self, log: Callable[[Row], bytes], logs: str, *, color: bool) -> None:
        self._console = Console(highlight=False, no_color=not color, markup=False)
        self._log = log
        self._logs = logs
        self._color = color
        self._board: Board | None = None
        self._spinners: dict[str, Spinner] = {}
        self._live = Live(console=self._console, get_renderable=self._tree, refresh_per_second=10, transient=True)

    def begin(self, board: Board) -> None:
        """See `Display`."""
        self._board = board
        self._live.start(refresh=True)

    def changed(self, row: Row, was: State) -> None:
        """See `Display`."""
        if wants_log(row, self._logs):
            self._console.print(Text.from_ansi(log_block(row, self._log(row), color=self._color)))

    def note(self, text: str) -> None:
        """See `Display`."""
        self._console.print(Text(text, style="yellow"))

    def finish(self, outcome: State) -> None:
        """See `Display`."""
        self.close()
        board = self._board
        assert board is not None  # noqa: S101
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("Stage", "Job", "State", "Duration", "Note"):
            table.add_column(name, justify="right" if name == "Duration" else "left")
        now = time.monotonic()
        for row in board.rows():
            note = row.reason or (f"{row.tries} tries" if row.tries > 1 else "")
            state = Text(f"{_sign(row)} {label(row)}", style=_style(row))
            names = Text(printable(row.stage)), Text(printable(row.job))
            table.add_row(*names, state, span(row.seconds(now)), Text(note))
        self._console.print(Group(table, Text(), Text(headline(outcome, board), style=f"bold {_STYLES[outcome]}")))

    def close(self) -> None:
        """See `Display`."""
        self._live.stop()

    def _tree(self) -> Tree | Text:
        board = self._board
        if board is None:
            return Text()
        now = time.monotonic()
        tree = Tree(Text(f"pipeline {span(now - board.began)}", style="bold"), guide_style="dim")
        for stage, rows in board.stages.items():
            branch = tree.add(Text(printable(stage), style="bold"))
            for row in rows:
                branch.add(self._line(row, now))
        return tree

    def _line(self, row: Row, now: float) -> Text | Spinner:
        text = Text.assemble(
            *(printable(row.job), "  ", (label(row), _style(row)), "  "),
            *((span(row.seconds(now)), "dim"), "  ", (row.reason, "dim")),
        )
        if row.state is not State.RUNNING:
            return Text.assemble((f"{_sign(row)} ", _style(row)), text)
        spinner = self._spinners.setdefault(row.job, Spinner("dots", style="cyan"))
        spinner.update(text=text)
        return spinner


def _sign(row: Row) -> str:
    return "!" if row.forgiven and row.state is State.FAILED else _SIGNS.get(row.state, "▶")


def _style(row: Row) -> str:
    return "yellow" if row.forgiven and row.state is State.FAILED else _STYLES[row.state]
