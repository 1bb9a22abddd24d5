"""Artifacts up and down, one try each (facts/runner-api.md section 8).

What another try may help is decided by the helper commands; below that, the retry layer of `HttpClient` is at work.
Light: the helper commands start with this module.
"""

from __future__ import annotations

import os
from urllib.parse import urlencode

from pyrunner.api.errors import RequestCancelledError, TransportError
from pyrunner.api.status import status_text
from pyrunner.api.urls import api_base, is_same_server, parse_target, redirected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyrunner.api.exchange import Piece, Response, Sink
    from pyrunner.api.http import HttpClient
    from pyrunner.base.cancel import CancelToken

#: States of an answer.
DONE = "done"
FORBIDDEN = "forbidden"
UNAUTHORIZED = "unauthorized"
NOT_FOUND = "not found"
TOO_LARGE = "too large"
#: 503 at upload: worth more tries than `FAILED`.
UNAVAILABLE = "unavailable"
#: 307 at upload: go on at `TransferAnswer.moved_to`.
MOVED = "moved"
FAILED = "failed"


class TransferAnswer:
    """Result of one try."""

    __slots__ = ("direct_host", "moved_to", "response", "state", "text")

    def __init__(self, state: str, text: str, response: Response | None = None) -> None:
        self.state = state
        #: One line: status text of the answer, or why there is none.
        self.text = text
        self.response = response
        #: Server URL (scheme and host) to use from now on.
        self.moved_to = ""
        #: Host that the archive came from when the server sent us there.
        self.direct_host = ""

    @property
    def status(self) -> int:
        """HTTP status, 0 without an answer."""
        return self.response.status if self.response else 0

    @property
    def status_line(self) -> str:
        """``201 Created``, empty without an answer."""
        return self.response.status_line if self.response else ""


_UPLOADS = {201: DONE, 403: FORBIDDEN, 413: TOO_LARGE, 503: UNAVAILABLE}
_DOWNLOADS = {200: DONE, 401: UNAUTHORIZED, 403: FORBIDDEN, 404: NOT_FOUND}


def upload_artifacts(
    http: HttpClient,
    url: str,
    job_id: int,
    token: str,
    *,
    file_name: str,
    pieces: Callable[[], Iterable[Piece]],
    options: dict[str, str] | None = None,
    cancel: CancelToken | None = None,
) -> TransferAnswer:
    """Send one archive as a multipart form, without knowing its length.

    Args:
        url: base URL of the server.
        pieces: makes the archive's bytes; called again for each attempt.
        options: ``expire_in``, ``artifact_format``, ``artifact_type``; empty ones are left out.
    """
    boundary = os.urandom(30).hex()
    query = urlencode(sorted((key, value) for key, value in (options or {}).items() if value))
    try:
        response = http.request(
            "POST",
            f"{api_base(url)}jobs/{job_id}/artifacts{'?' if query else ''}{query}",
            {"JOB-TOKEN": token, "Content-Type": f"multipart/form-data; boundary={boundary}"},
            lambda: _form(boundary, file_name, pieces),
            follow_redirects=False,
            cancel=cancel,
        )
    except RequestCancelledError:
        raise
    except TransportError as error:
        return TransferAnswer(FAILED, str(error))
    answer = TransferAnswer(_UPLOADS.get(response.status, FAILED), status_text(response), response)
    if response.status == 307 and (location := response.header("Location")):
        target = parse_target(redirected(response.url, location))
        answer.state, answer.moved_to = MOVED, f"{target.scheme}://{target.authority}"
    return answer


def _form(boundary: str, file_name: str, pieces: Callable[[], Iterable[Piece]]) -> Iterable[Piece]:
    name = file_name.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "%0D").replace("\n", "%0A")
    yield (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode("utf-8", "surrogateescape")
    yield from pieces()
    yield f"\r\n--{boundary}--\r\n".encode()


def download_artifacts(
    http: HttpClient,
    url: str,
    job_id: int,
    token: str,
    sink: Sink,
    *,
    direct_download: bool = False,
    fetch: Callable[[str, dict[str, str]], Response] | None = None,
    cancel: CancelToken | None = None,
) -> TransferAnswer:
    """Get the archive of job `job_id` into `sink`.

    Args:
        token: the job token of the job that made the artifacts.
        direct_download: let the server send us to the object storage.
        fetch: gets the archive from there into `sink` in another way than by one request.
    """
    address = f"{api_base(url)}jobs/{job_id}/artifacts{'?direct_download=true' if direct_download else ''}"
    headers = {"JOB-TOKEN": token}
    host, in_ranges = "", False
    try:
        response = http.request("GET", address, headers, sink=sink, follow_redirects=False, cancel=cancel)
        location = response.header("Location")
        if response.status in (301, 302, 303, 307, 308) and location:
            storage = redirected(address, location)
            target = parse_target(storage)
            host = target.host
            # object storage is asked with a signed URL and has no business with our token
            trusted = is_same_server(parse_target(address), target)
            sent = headers if trusted else {}
            if fetch is None:
                response = http.request("GET", storage, sent, sink=sink, cancel=cancel)
            else:
                response = fetch(storage, sent)
                in_ranges = response.status == 206
    except RequestCancelledError:
        raise
    except TransportError as error:
        return TransferAnswer(FAILED, str(error))
    state = DONE if in_ranges else _DOWNLOADS.get(response.status, FAILED)
    answer = TransferAnswer(state, status_text(response), response)
    answer.direct_host = host
    return answer
