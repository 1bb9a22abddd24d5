"""One cache archive on the local disk and the note beside it (facts/cache-artifacts.md 1.4)."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA_NAME = "metadata.json"
#: Seconds without a write after which a half-made file has nobody who works on it any more.
_ABANDONED_AFTER = 3600.0


class LocalArchive:
    """The archive file of one cache key."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """``cache.zip``"""
        return os.path.basename(self.path)

    def mtime(self) -> float | None:
        """When it was made, in seconds since the epoch; None when it is not there."""
        try:
            return os.stat(self.path).st_mtime
        except OSError:
            return None

    def size(self) -> int:
        """Bytes; 0 when it is not there."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def adopt(self, alternate: str) -> bool:
        """Take over the archive that lies under the other naming scheme, unless there is one here already."""
        if not alternate or os.path.exists(self.path) or not os.path.isfile(alternate):
            return False
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        os.replace(alternate, self.path)
        return True

    def is_as_new_as(self, moment: float) -> bool:
        """Whether it holds everything up to `moment` (seconds since the epoch)."""
        made = self.mtime()
        return made is not None and made >= moment

    def sweep(self) -> None:
        """Remove what processes that were killed have left beside the archive."""
        try:
            with os.scandir(os.path.dirname(self.path) or ".") as items:
                for item in items:
                    if _is_temporary(item.name) and item.stat().st_mtime < time.time() - _ABANDONED_AFTER:
                        os.unlink(item.path)
        except OSError:
            return  # not there yet, or not ours to clean

    def write_metadata(self, metadata: Mapping[str, str]) -> None:
        """Note what the archive is, for people who look at the directory; keys in lower case."""
        path = os.path.join(os.path.dirname(self.path) or ".", METADATA_NAME)
        temporary = f"{path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o640)
        try:
            with open(fd, "w", encoding="utf-8") as file:
                file.write(_json({key.lower(): value for key, value in metadata.items()}))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def _is_temporary(name: str) -> bool:
    """Names that archives have while they are made (``archive_``) and downloaded (``cache``)."""
    for prefix in ("archive_", "cache"):
        digits = name[len(prefix) :]
        if name.startswith(prefix) and len(digits) == 16 and not digits.strip("0123456789abcdef"):
            return True
    return False


def _json(values: dict[str, str]) -> str:
    if not values:
        return "{}"
    import json

    return json.dumps(values)
