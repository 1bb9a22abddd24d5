"""Which of the objects in an engine nobody will come back for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from enum import StrEnum

from pyrunner.base.durations import parse_duration
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.records import Listed
from pyrunner.executors.docker.owner import Fate, Owner, StartOf, fate_of, start_of

#: Seconds beyond a job's timeout after which an owner that nobody can look at does not matter any more.
GRACE = 3600.0
_LONGEST_JOB = 7 * 86400.0


class Standing(StrEnum):
    """What an object is to whoever cleans up."""

    #: A living process works with it.
    IN_USE = "in use"
    #: Its process is gone, or has given up on it.
    LEFTOVER = "leftover"
    #: Its process cannot be seen from here, and its job may still run.
    UNKNOWN = "unknown"
    #: A volume that later jobs want.
    CACHE = "cache"


@dataclass(frozen=True, kw_only=True)
class Viewpoint:
    """Who looks, and when."""

    here: Owner
    #: Seconds since 1970.
    now: float
    #: The tries of jobs that this process works on.
    runs: Container[str]
    #: The engine is on this machine.
    local: bool
    start: StartOf = field(default=start_of)


def is_ours(item: Listed) -> bool:
    """Whether a pyrunner made it; GitLab Runner's own objects carry the other labels, too."""
    return item.labels.get(labels.MANAGED) == "true" and labels.OWNER in item.labels


def of_system(system_id: str) -> Callable[[Listed], bool]:
    """Whether the installation of this id made it."""
    return lambda item: is_ours(item) and item.labels.get(labels.SYSTEM_ID, "") == system_id


def standing(item: Listed, view: Viewpoint) -> Standing:
    """What `item`, which is ours, is."""
    if item.labels.get(labels.REUSABLE) == "true":
        return Standing.CACHE
    owner = Owner.parse(item.labels.get(labels.OWNER, ""))
    if owner == view.here:
        return Standing.IN_USE if item.labels.get(labels.RUN) in view.runs else Standing.LEFTOVER
    fate = fate_of(owner, view.here, local=view.local, start=view.start) if owner else Fate.UNKNOWN
    if fate is Fate.UNKNOWN:
        over = item.created and item.created + _timeout(item) + GRACE < view.now
        return Standing.LEFTOVER if over else Standing.UNKNOWN
    return Standing.IN_USE if fate is Fate.ALIVE else Standing.LEFTOVER


def _timeout(item: Listed) -> float:
    try:
        return parse_duration(item.labels.get(labels.JOB_TIMEOUT, ""))
    except ValueError:
        return _LONGEST_JOB
