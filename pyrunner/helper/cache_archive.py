"""The work of ``cache-archiver`` (facts/cache-artifacts.md 1.4)."""

from __future__ import annotations

import os
import time

from pyrunner.archive.selection import select
from pyrunner.archive.write import archive_chunks, write_archive
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log
from pyrunner.cache.local import LocalArchive
from pyrunner.helper.attempts import Schedule, attempt
from pyrunner.helper.environment import expanded
from pyrunner.helper.meter import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyrunner.helper.presigned import Storage

log = Log(__name__)

_FORMATS = ("zip", "zipzstd", "tarzstd")
_PIECE = 1 << 20
_NO_URL = "No URL provided, cache will not be uploaded to shared cache server. Cache will be stored only locally."


class CacheArchive:
    """What is to be saved; set the attributes, then `run`."""

    def __init__(self, file: str) -> None:
        self.archive = LocalArchive(file)
        #: The same cache under the other naming scheme: taken over when `file` is missing.
        self.alternate = ""
        self.paths: list[str] = []
        self.excludes: list[str] = []
        self.untracked = False
        self.verbose = False
        self.format = ""
        self.level = ""
        self.metadata: dict[str, str] = {}
        self.url = ""
        self.check_url = ""
        self.headers: dict[str, str] = {}
        #: Bytes, 0 = no limit.
        self.largest = 0
        #: Minutes for one transfer, 0 means ten.
        self.timeout = 0
        self.retries = 2
        self.retry_pause = 1.0
        self.meter_frequency = 0.0

    def run(self) -> int:
        """Archive what has changed and upload it; returns the exit code.

        Raises:
            PyrunnerError: the archive cannot be made or uploaded.
        """
        if not self.archive.path:
            raise PyrunnerError("Missing --file")
        self.archive.adopt(self.alternate)
        selection = select(
            os.getcwd(),
            expanded(self.paths),
            excludes=expanded(self.excludes),
            untracked=self.untracked,
            verbose=self.verbose,
        )
        if not selection.files:
            log.warning("No files to cache.")
            return 0
        if self.archive.is_as_new_as(selection.newest()):
            log.info("Archive is up to date!")
            if not self._is_missing_remotely():
                return 0
        else:
            self.archive.sweep()
            name = self.format if self.format in _FORMATS else "zip"
            write_archive(self.archive.path, archive_chunks(selection, name, self.level))
            self.archive.write_metadata(self.metadata)
        return self._upload()

    def _is_missing_remotely(self) -> bool:
        if not (self.alternate and self.check_url and self.url):
            return False
        from pyrunner.helper.presigned import Storage

        return Storage(self.timeout).head(self.check_url) is None

    def _upload(self) -> int:
        if not self.url:
            log.info(_NO_URL)
            return 0
        size = self.archive.size()
        if self.largest and size > self.largest:
            log.info(
                "Cache archive size (%d) is too big (Limit is set to %d). Cache will be stored only locally.",
                size,
                self.largest,
            )
            return 0
        from pyrunner.helper.presigned import Storage

        log.info("Using presigned URL for cache upload")
        storage = Storage(self.timeout)
        attempt(lambda _: self._try(storage, size), Schedule(self.retries + 1, self.retry_pause))
        return 0

    def _try(self, storage: Storage, size: int) -> None:
        from pyrunner.api.urls import clean_url
        from pyrunner.helper.presigned import http_date

        log.info("Uploading %s to %s", self.archive.name, clean_url(self.url))
        meter = Meter("Uploading cache", self.meter_frequency, total=size)

        def pieces() -> Iterator[bytes]:
            meter.restart()
            yield from meter.counted(_content(self.archive.path, size, storage.seconds))
            meter.finish()

        headers = dict(self.headers)
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/octet-stream"
        headers["Last-Modified"] = http_date(self.archive.mtime() or 0)
        storage.put(self.url, headers, size, pieces)


def _content(path: str, size: int, seconds: float) -> Iterator[bytes]:
    """Exactly `size` bytes of the archive, for no longer than `seconds`."""
    from pyrunner.api.errors import TransportError

    deadline = time.monotonic() + seconds
    with open(path, "rb", buffering=0) as file:
        while size:
            data = file.read(min(size, _PIECE))
            if not data:
                raise PyrunnerError(f"{path}: the archive has changed while it was uploaded")
            if time.monotonic() > deadline:
                raise TransportError("timed out")
            size -= len(data)
            yield data
