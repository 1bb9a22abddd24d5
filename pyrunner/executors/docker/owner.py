"""Which process an object of the engine belongs to, and whether that process still lives.

Two managers may share a config, a system id and an engine, so neither tells whose a container is. The label
`labels.OWNER` does: boot of the machine, PID namespace, process id and the process's start, which no later process has
all of. `labels.RUN` tells one job's try from the others of its process.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path

#: Start of a process in ticks since boot; 0 when it cannot be told, None when there is no such process.
StartOf = Callable[[int], int | None]


class Fate(Enum):
    """What is known of an owner."""

    ALIVE = auto()
    DEAD = auto()
    #: It ran on another machine, or in another container: nobody can look.
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True)
class Owner:
    """One process on one machine."""

    #: Drawn by the kernel at each boot.
    boot: str
    #: Number of the PID namespace: equal process ids of two containers are two processes.
    namespace: int
    pid: int
    start: int

    def __str__(self) -> str:
        return f"{self.boot}.{self.namespace}.{self.pid}.{self.start}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that a label speaks of; None for a text that is none of ours."""
        boot, *numbers = text.split(".")
        if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
            return None
        namespace, pid, start = map(int, numbers)
        return cls(boot=boot, namespace=namespace, pid=pid, start=start)


@cache
def this_process() -> Owner:
    """The owner of what this process makes."""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    namespace = 0
    with contextlib.suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino
    return Owner(boot=boot, namespace=namespace, pid=os.getpid(), start=start_of(os.getpid()) or 0)


def start_of(pid: int) -> int | None:
    """When the process began; see `StartOf`."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        # A mount of /proc may hide the processes of others; the kernel itself does not.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except OSError:
            return 0
        return 0


def fate_of(owner: Owner, here: Owner, *, local: bool, start: StartOf = start_of) -> Fate:
    """Whether `owner` lives, as far as the process `here` can tell; `local`: the engine is on this machine."""
    if owner == here:
        return Fate.ALIVE
    if owner.boot != here.boot:
        # Whoever uses a local engine is on this machine, and that has been started again since.
        return Fate.DEAD if local and owner.boot and here.boot else Fate.UNKNOWN
    if owner.namespace != here.namespace or not owner.boot:
        return Fate.UNKNOWN
    begun = start(owner.pid)
    if begun is None:
        return Fate.DEAD
    return Fate.ALIVE if begun in (0, owner.start) else Fate.DEAD


class Runs:
    """The tries of jobs that this process is working on. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[str] = set()

    def begin(self, run: str) -> None:
        """What carries this label is in use from now on."""
        with self._lock:
            self._open.add(run)

    def end(self, run: str) -> None:
        """What still carries this label has been left behind."""
        with self._lock:
            self._open.discard(run)

    def __contains__(self, run: object) -> bool:
        with self._lock:
            return run in self._open


RUNS = Runs()
