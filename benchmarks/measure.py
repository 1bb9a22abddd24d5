"""Whole processes, timed from outside; figures as rows of one table."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: The machine on which the figures in brackets were measured started a bare Python in this time.
REFERENCE_BARE_PYTHON = 0.010


@dataclass(frozen=True, kw_only=True)
class Usage:
    """One run of a process and of all its children: seconds, seconds of CPU, MiB of the largest process."""

    wall: float
    cpu: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. `reference` is the other program's figure, `goal` the ratio to stay at or below."""

    what: str
    value: float
    unit: str
    reference: float | None = None
    goal: float | None = None
    #: Larger is better: the ratio is then a floor.
    larger: bool = False
    note: str = ""


#: Starts a program and reports on it. A process of its own, because a child's peak memory is never below what its
#: parent had when it forked: this one has next to nothing.
_LAUNCHER = """
import os, sys, time
started = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - started
text = f"{wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}"
os.write(int(sys.argv[1]), text.encode())
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    quiet: bool = False,
) -> Usage:
    """Run `command` to its end; it must succeed. With `quiet` its errors are not shown."""
    reader, writer = os.pipe()
    subprocess.run(
        [bare_interpreter(), "-I", "-S", "-c", _LAUNCHER, str(writer), *command],
        env=environment,
        cwd=cwd,
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet else None,
        check=True,
    )
    os.close(writer)
    with os.fdopen(reader) as report:
        wall, cpu, memory = map(float, report.read().split())
    return Usage(wall=wall, cpu=cpu, memory=memory)


def median(
    command: Sequence[str],
    runs: int = 11,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    quiet: bool = False,
) -> Usage:
    """The median of several runs after one warm-up."""
    found = [run(command, environment=environment, cwd=cwd, quiet=quiet) for _ in range(runs + 1)][1:]
    return Usage(
        wall=statistics.median(usage.wall for usage in found),
        cpu=statistics.median(usage.cpu for usage in found),
        memory=max(usage.memory for usage in found),
    )


def bare_python() -> float:
    """Seconds that the bare interpreter takes here: what all other figures are held against."""
    return median([sys.executable, "-I", "-c", "pass"], 21).wall


def bare_interpreter() -> str:
    """The interpreter behind the virtual environment and any shim."""
    return os.path.join(sys.base_prefix, "bin", "python3")


def program() -> str:
    """The installed pyrunner beside this interpreter."""
    return os.path.join(os.path.dirname(sys.executable), "pyrunner")


def environment(home: str) -> dict[str, str]:
    """A clean environment: no profile of the developer slows down login shells."""
    return {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}


def table(rows: Sequence[Row], pace: float) -> str:
    """The rows as Markdown; `pace` is how much slower this machine is than the one of the reference figures.

    Ratios of times and rates are corrected by it: what counts is the program, not the moment of a shared machine.
    """
    lines = ["| what | pyrunner | reference | ratio | aim |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        ratio = row.value / row.reference if row.reference else None
        if ratio and row.unit == "s":
            ratio /= pace
        elif ratio and row.unit.endswith("/s"):
            ratio *= pace
        aim = f"{'≥' if row.larger else '≤'} {row.goal:g}×" if row.goal else ""
        cells = [
            row.what + (f" ({row.note})" if row.note else ""),
            _figure(row.value, row.unit),
            _figure(row.reference, row.unit) if row.reference else "",
            f"{ratio:.2f}×" if ratio else "",
            aim,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s" and value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
