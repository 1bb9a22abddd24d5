"""The work of ``cache-extractor`` (facts/cache-artifacts.md 1.5)."""

from __future__ import annotations

import os

from pyrunner.archive.extract import extract
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log
from pyrunner.cache.local import LocalArchive
from pyrunner.helper.attempts import Schedule, attempt
from pyrunner.helper.meter import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.helper.presigned import Storage, StoredObject

log = Log(__name__)

_NO_URL = (
    "No URL provided, cache will not be downloaded from shared cache server. "
    "Instead a local version of cache will be extracted."
)


class CacheExtract:
    """What is to be restored; set the attributes, then `run`."""

    def __init__(self, file: str) -> None:
        self.archive = LocalArchive(file)
        self.url = ""
        self.head_url = ""
        self.alternate_url = ""
        self.alternate_head_url = ""
        #: Minutes for one transfer, 0 means ten.
        self.timeout = 0
        self.retries = 2
        self.retry_pause = 1.0
        self.meter_frequency = 0.0
        #: Bytes of a range, and how many are fetched at the same time.
        self.chunk_size = 16 << 20
        self.concurrency = 16
        #: Fetch large archives in ranges.
        self.parallel = False

    def run(self) -> int:
        """Download what is newer, then extract into the working directory; returns the exit code.

        Raises:
            PyrunnerError: the archive cannot be extracted.
        """
        if not self.archive.path:
            raise PyrunnerError("Missing --file")
        if self.url or self.alternate_url:
            try:
                self._download()
            except PyrunnerError as error:
                log.warning("%s", error)
                return 1
        else:
            log.info(_NO_URL)
        try:
            extract(self.archive.path, os.getcwd())
        except FileNotFoundError:
            log.warning("Cache file does not exist")
            return 1
        return 0

    def _download(self) -> None:
        from pyrunner.helper.presigned import Storage

        self.archive.sweep()
        storage = Storage(self.timeout)
        url, known = self._choose(storage)
        schedule = Schedule(self.retries + 1, self.retry_pause)
        attempt(lambda _: self._try(storage, url, known), schedule)

    def _choose(self, storage: Storage) -> tuple[str, StoredObject | None]:
        """The URL of the newer of the two objects; what is known about it."""
        if not self.alternate_url:
            return self.url, None
        first = storage.head(self.head_url) if self.head_url else None
        second = storage.head(self.alternate_head_url) if self.alternate_head_url else None
        if not self.url or (second is not None and (first is None or (second.mtime or 0) > (first.mtime or 0))):
            return self.alternate_url, second
        return self.url, first

    def _try(self, storage: Storage, url: str, known: StoredObject | None) -> None:
        from pyrunner.api.urls import clean_url
        from pyrunner.helper.download_file import DownloadFile
        from pyrunner.helper.ranges import Ranges

        have = self.archive.mtime()
        if known is not None and _is_current(have, known.mtime):
            log.info("%s is up to date", self.archive.name)
            return
        meter = Meter("Downloading cache", self.meter_frequency, total=known.size if known else 0)
        directory = os.path.dirname(self.archive.path) or "."
        with DownloadFile(directory, "cache", meter) as file:
            ranges = Ranges(self.chunk_size, self.concurrency if self.parallel else 1)
            found = storage.get(url, file, have, ranges)
            if found is None or _is_current(have, found.mtime):
                log.info("%s is up to date", self.archive.name)
                return
            meter.finish()
            stem = os.path.splitext(self.archive.name)[0]
            log.info("Downloading %s from %s", stem, clean_url(url), extra={"etag": found.etag})
            file.keep_as(self.archive.path, found.mtime)
        self.archive.write_metadata(found.metadata)


def _is_current(have: float | None, remote: float | None) -> bool:
    return have is not None and remote is not None and have >= remote
