"""When cache volumes were last used, and whether they have ever been: engines do not tell.

One file per volume in a directory that outlives the process; its time is the last use, and it is empty until a job has
got as far as opening the volume's permissions. Without a directory nothing is known, and nothing breaks.
"""

from __future__ import annotations

import contextlib
import os

_OPENED = b"opened\n"


def uses_directory(home: str) -> str:
    """Where the uses are noted by whoever has the directory of ``config.toml`` for `home`."""
    return os.path.join(home, ".pyrunner", "docker-volumes")


class VolumeUses:
    """The notes. Safe from any thread and process: each is one call of the file system."""

    def __init__(self, directory: str = "") -> None:
        self.directory = directory

    def used(self, volume: str, *, opened: bool = False) -> None:
        """A job uses it now; `opened`: containers of any user can write to it since."""
        self._note(volume, _OPENED if opened else b"")

    def never_opened(self, volume: str) -> bool:
        """Whether it was made by a job that has not got as far as opening it."""
        path = self._path(volume)
        try:
            return bool(path) and os.stat(path).st_size == 0
        except OSError:
            return False

    def last(self, volume: str) -> float:
        """Last use, seconds since 1970; 0 when it is not known."""
        path = self._path(volume)
        try:
            return os.stat(path).st_mtime if path else 0.0
        except OSError:
            return 0.0

    def forget(self, volume: str) -> None:
        """It is gone."""
        if path := self._path(volume):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _note(self, volume: str, content: bytes) -> None:
        path = self._path(volume)
        if not path:
            return
        # A disk that is full must not end a job for the sake of a time.
        with contextlib.suppress(OSError):
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, content)
                os.utime(handle)
            finally:
                os.close(handle)

    def _path(self, volume: str) -> str:
        if not self.directory or "/" in volume or volume in ("", ".", ".."):
            return ""
        return os.path.join(self.directory, volume)


#: Of this process; the provider tells the directory when a manager begins.
USES = VolumeUses()
