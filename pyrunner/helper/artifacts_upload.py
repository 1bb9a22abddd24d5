"""The work of ``artifacts-uploader`` (facts/cache-artifacts.md 3.1, facts/runner-api.md 8.1)."""

from __future__ import annotations

import os
import time

from pyrunner.archive.selection import select
from pyrunner.archive.write import SUFFIXES, archive_chunks
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log
from pyrunner.helper.attempts import RetriableError, Schedule, attempt
from pyrunner.helper.environment import expanded
from pyrunner.helper.meter import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyrunner.api.artifacts import TransferAnswer
    from pyrunner.api.http import HttpClient
    from pyrunner.archive.selection import Selection
    from pyrunner.helper.provenance import Provenance
    from pyrunner.helper.server import JobServer

log = Log(__name__)

_TRIES, _TRIES_WHEN_UNAVAILABLE = 3, 6
_SHOWN_BODY = 512


class Upload:
    """What is to be uploaded; set the attributes, then `run`."""

    def __init__(self, server: JobServer) -> None:
        self.server = server
        self.paths: list[str] = []
        self.excludes: list[str] = []
        self.untracked = False
        self.verbose = False
        self.name = "artifacts"
        self.expire_in = ""
        self.format = ""
        self.type = ""
        self.level = ""
        #: Seconds for one request, and from its end to the start of the answer.
        self.timeout = 3600.0
        self.header_timeout = 600.0
        self.meter_frequency = 0.0
        #: Log headers and the start of the body of each answer.
        self.show_answers = False
        self.provenance: Provenance | None = None

    def run(self) -> int:
        """Select, archive and send; returns the exit code.

        Raises:
            PyrunnerError: the upload failed for good.
        """
        self._check()
        root = os.getcwd()
        selection = select(
            root,
            expanded(self.paths),
            excludes=expanded(self.excludes),
            untracked=self.untracked,
            verbose=self.verbose,
        )
        if not selection.files:
            log.error("No files to upload")
            return 0
        self._add_provenance(selection)
        http = self.server.client(header_timeout=self.header_timeout, timeout=self.timeout)
        try:
            schedule = Schedule(_TRIES, 1.0, factor=2.0, longest=5.0)
            attempt(lambda _: self._try(http, selection), schedule, context="artifacts-uploader")
        finally:
            http.close()
        return 0

    def _check(self) -> None:
        if not self.server.url or not self.server.token:
            raise PyrunnerError("Missing runner credentials")
        if self.server.job_id <= 0:
            raise PyrunnerError("Missing build ID")

    def base_name(self) -> str:
        """File name of the archive without its suffix."""
        name = os.path.basename(expanded([self.name])[0].rstrip("/"))
        return "default" if name in ("", ".", "..") else name

    def _add_provenance(self, selection: Selection) -> None:
        if self.provenance is None:
            return
        if self.format not in ("", "zip"):
            return
        name = self.provenance.write(selection, self.base_name(), self.server.job_id)
        selection.files[name] = os.lstat(os.path.join(selection.root, name))

    def _try(self, http: HttpClient, selection: Selection) -> None:
        from pyrunner.api import artifacts

        meter = Meter("Uploading artifacts", self.meter_frequency)

        def pieces() -> Iterator[bytes]:
            meter.restart()
            chunks = archive_chunks(selection, self.format, self.level)
            yield from meter.counted(_within(chunks, self.timeout))
            meter.finish()

        options = {"expire_in": self.expire_in, "artifact_format": self.format, "artifact_type": self.type}
        # a selection that the format cannot hold is told before anything is sent
        archive_chunks(selection, self.format, self.level)
        answer = artifacts.upload_artifacts(
            http,
            self.server.url,
            self.server.job_id,
            self.server.token,
            file_name=self.base_name() + SUFFIXES[self.format or "zip"],
            pieces=pieces,
            options=options,
        )
        self._judge(answer)

    def _judge(self, answer: TransferAnswer) -> None:
        from pyrunner.api import artifacts

        prefix = f'Uploading artifacts as "{self.type}" to coordinator...' if self.type else ""
        prefix = prefix or "Uploading artifacts to coordinator..."
        fields = self.server.log_fields()
        if self.show_answers:
            _show(answer)
        if answer.response is None:
            log.error("%s error", prefix, extra={**fields, "error": answer.text})
            raise RetriableError(answer.text)
        fields["responseStatus"] = answer.status_line
        if answer.state == artifacts.DONE:
            log.info("%s %s", prefix, answer.status_line, extra=fields)
            return
        fields["status"] = answer.text
        if answer.state == artifacts.FORBIDDEN:
            log.error("%s forbidden", prefix, extra=fields)
            raise PyrunnerError("permission denied")
        if answer.state == artifacts.TOO_LARGE:
            log.error("%s too large archive", prefix, extra=fields)
            raise PyrunnerError("too large")
        if answer.state == artifacts.MOVED:
            self.server.url = answer.moved_to
            raise RetriableError(f"redirected to {answer.moved_to}")
        if answer.state == artifacts.UNAVAILABLE:
            log.error("%s service unavailable", prefix, extra=fields)
            raise RetriableError(answer.text, tries=_TRIES_WHEN_UNAVAILABLE)
        log.warning("%s failed", prefix, extra=fields)
        raise RetriableError(answer.text)


def _within(chunks: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    """`chunks`, but no longer than for `seconds` (0: for ever)."""
    from pyrunner.api.errors import TransportError

    deadline = time.monotonic() + seconds
    for chunk in chunks:
        if seconds and time.monotonic() > deadline:
            raise TransportError("timed out")
        yield chunk


def _show(answer: TransferAnswer) -> None:
    if answer.response is None:
        return
    headers = "; ".join(f"{name}: {value}" for name, value in answer.response.headers())
    body = answer.response.body[:_SHOWN_BODY].decode("utf-8", "replace")
    log.info("received response", extra={"responseHeader": headers, "responseBody": body})
