"""Named places at which a test lets this process die as ``kill -9`` would: where losing something would be easiest.

``PYRUNNER_KILL_POINT=<name>`` in the environment chooses the place, ``<name>:<n>`` the n-th time that it is reached.
Without the variable, which nobody but a test sets, a kill point is an empty function.
"""

from __future__ import annotations

import os

VARIABLE = "PYRUNNER_KILL_POINT"

#: Every name in use, in the order in which the end of one job passes them.
KILL_POINTS = (
    # what an engine has made for a job; nobody but its labels knows whose it is
    "docker.network-created",
    "docker.volume-created",
    "docker.container-created",
    "docker.container-started",
    # the job has ended, its volumes and its network are still there
    "docker.containers-removed",
    # the verdict is only in memory
    "job.decided",
    # the log is on disk, the letter that speaks of it is not
    "outbox.log-saved",
    # from here on nothing may be lost
    "outbox.kept",
    "outbox.log-sent",
    "outbox.verdict-sent",
    "outbox.letter-removed",
    # the slot is free, the background goes on
    "outbox.handed-over",
    # a later process has taken over some of what a dead one left
    "outbox.adopted",
)


def _make(setting: str) -> _KillPoint | None:
    name, _, number = setting.partition(":")
    return _KillPoint(name, int(number) if number.isdigit() else 1) if name else None


class _KillPoint:
    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._left = number

    def reach(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left <= 0:
            import signal

            os.kill(os.getpid(), signal.SIGKILL)


_chosen = _make(os.environ.get(VARIABLE, ""))


def kill_point(name: str) -> None:
    """Die here when the environment says so; `name` is one of `KILL_POINTS`."""
    if _chosen is not None:
        _chosen.reach(name)
