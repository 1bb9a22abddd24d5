"""The work of ``artifacts-downloader`` (facts/cache-artifacts.md 3.3, facts/runner-api.md 8.2)."""

from __future__ import annotations

import os

from pyrunner.archive.extract import extract_open
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log
from pyrunner.helper.attempts import RetriableError, Schedule, attempt
from pyrunner.helper.download_file import DownloadFile
from pyrunner.helper.meter import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyrunner.api.artifacts import TransferAnswer
    from pyrunner.api.exchange import Response
    from pyrunner.api.http import HttpClient
    from pyrunner.helper.server import JobServer

log = Log(__name__)


class Download:
    """What is to be downloaded; set the attributes, then `run`."""

    def __init__(self, server: JobServer) -> None:
        self.server = server
        self.retries = 2
        self.retry_pause = 1.0
        #: Let the server send us to its object storage, on the first try.
        self.direct = False
        #: Fetch large archives from object storage in ranges.
        self.parallel = False
        #: Where the archive lies until it is extracted; empty = the system's directory.
        self.staging_dir = ""
        self.meter_frequency = 0.0

    def run(self) -> int:
        """Download and extract into the working directory; returns the exit code.

        Raises:
            PyrunnerError: no archive, or it cannot be extracted.
        """
        self._check()
        directory = self.staging_dir or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the file is private
        http = self.server.client()
        meter = Meter("Downloading artifacts", self.meter_frequency)
        with DownloadFile(directory, "artifacts", meter, nameless=True) as file:
            try:
                schedule = Schedule(self.retries + 1, self.retry_pause)
                attempt(lambda number: self._try(http, file, number), schedule, context="artifacts-downloader")
            finally:
                http.close()
            extract_open(file.fileno(), os.getcwd())
        return 0

    def _check(self) -> None:
        missing = [
            text
            for text, given in (
                ("Missing URL (--url)", self.server.url),
                ("Missing runner credentials (--token)", self.server.token),
                ("Missing build ID (--id)", self.server.job_id > 0),
            )
            if not given
        ]
        for text in missing:
            log.warning("%s", text)
        if missing:
            raise PyrunnerError("Incomplete arguments")

    def _try(self, http: HttpClient, file: DownloadFile, number: int) -> None:
        from pyrunner.api import artifacts

        file.restart()
        fetch = self._in_ranges(http, file) if self.parallel else None
        answer = artifacts.download_artifacts(
            http,
            self.server.url,
            self.server.job_id,
            self.server.token,
            file,
            direct_download=self.direct and number == 0,
            fetch=fetch,
        )
        file.meter.finish()
        self._judge(answer)

    def _in_ranges(self, http: HttpClient, file: DownloadFile) -> Callable[[str, dict[str, str]], Response]:
        from pyrunner.helper.ranges import Ranges

        ranges = Ranges()
        return lambda url, headers: ranges.fetch(http, url, headers, file)

    def _judge(self, answer: TransferAnswer) -> None:
        from pyrunner.api import artifacts
        from pyrunner.api.urls import api_base, parse_target

        prefix = "Downloading artifacts from coordinator..."
        host = answer.direct_host or parse_target(api_base(self.server.url)).host
        fields = {**self.server.log_fields(), "host": host}
        if answer.response is None:
            log.error("%s error", prefix, extra={**fields, "error": answer.text})
            raise RetriableError(answer.text)
        fields["responseStatus"] = answer.status_line
        if answer.state == artifacts.DONE:
            log.info("%s ok", prefix, extra=fields)
            return
        fields["status"] = answer.text
        if answer.state in (artifacts.FORBIDDEN, artifacts.UNAUTHORIZED):
            log.error("%s %s", prefix, answer.state, extra=fields)
            raise PyrunnerError("permission denied")
        if answer.state == artifacts.NOT_FOUND:
            log.error("%s not found", prefix, extra=fields)
            raise PyrunnerError("file does not exist")
        log.warning("%s failed", prefix, extra=fields)
        raise RetriableError(answer.text)
