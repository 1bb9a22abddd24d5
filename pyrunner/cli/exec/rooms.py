"""Where a run keeps its things: outside the repository, one room per repository, builds reused from run to run."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

#: So many runs of one repository can go on at once.
_ROOMS = 64


class Room(Struct, frozen=True, kw_only=True):
    """The directories of one run; no other run uses them meanwhile."""

    builds: Path
    #: Shared by all runs of the repository.
    caches: Path
    #: Traces and artifacts, kept until the next run.
    data: Path
    #: The bare repositories that are served to jobs.
    git_root: Path


def home(environment: dict[str, str] | None = None) -> Path:
    """``$XDG_CACHE_HOME/pyrunner/exec``, by default below ``~/.cache``."""
    variables = os.environ if environment is None else environment
    base = variables.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return root / "pyrunner" / "exec"


def repository_key(top: Path) -> str:
    """A short name for the repository at `top`."""
    return hashlib.sha256(os.fsencode(top)).hexdigest()[:16]


@contextmanager
def enter(top: Path) -> Iterator[Room]:
    """The first room of the repository that no other run is in; what the last run left there is removed.

    Raises:
        OSError: the directory cannot be written.
    """
    base = home() / repository_key(top)
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock, number = _lock(base)
    try:
        inside = base / f"room-{number}"
        room = Room(builds=inside / "builds", caches=base / "caches", data=inside / "data", git_root=inside / "git")
        for old in (room.data, room.git_root):
            shutil.rmtree(old, ignore_errors=True)
        for path in (room.builds, room.caches, room.data, room.git_root):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield room
    finally:
        shutil.rmtree(inside / "git", ignore_errors=True)
        os.close(lock)


def _lock(base: Path) -> tuple[int, int]:
    """A held lock and the room that it is for. The kernel releases it even when the process is killed."""
    for number in range(_ROOMS):
        descriptor = os.open(base / f"room-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        return descriptor, number
    raise BlockingIOError(11, f"{_ROOMS} runs of this repository are going on", str(base))
