"""Plain tables: columns as wide as their content, nothing else."""

from __future__ import annotations

import sys
import time

from pyrunner.base.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to stdout."""
    lines = [list(head), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(text.rstrip() + "\n")


def print_json(content: object) -> None:
    """Write JSON to stdout."""
    import json

    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def age(since: float, until: float = 0.0) -> str:
    """How long `since` is before `until` (or now), in one or two units; ``-`` for never."""
    if not since:
        return "-"
    seconds = max(0, int((until or time.time()) - since))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
