"""The server that artifacts go to and come from, and the job on whose behalf."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.api.http import HttpClient


class JobServer:
    """URL, credentials and TLS files of one job at its server."""

    __slots__ = ("ca_file", "certificate_file", "job_id", "key_file", "token", "url")

    def __init__(self, url: str, job_id: int, token: str) -> None:
        self.url = url
        self.job_id = job_id
        self.token = token
        self.ca_file = ""
        self.certificate_file = ""
        self.key_file = ""

    def client(self, *, header_timeout: float = 600.0, timeout: float = 3600.0) -> HttpClient:
        """An HTTP client for this server; times in seconds, 0 means the default.

        Raises:
            ClientError: the URL cannot be used.
        """
        from pyrunner.api.dial import Timeouts
        from pyrunner.api.http import HttpClient
        from pyrunner.api.tls import TlsFiles

        files = TlsFiles(self.ca_file, self.certificate_file, self.key_file)
        limits = Timeouts(header=header_timeout or 600.0, total=timeout or 3600.0)
        return HttpClient.of_server(self.url, files, timeouts=limits)

    def log_fields(self) -> dict[str, object]:
        """``id`` and the short form of the token."""
        from pyrunner.api.tokens import short_token

        return {"id": self.job_id, "token": short_token(self.token)}
