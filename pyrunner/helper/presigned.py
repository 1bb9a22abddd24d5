"""Caches behind presigned URLs: HEAD, GET and PUT, one try each (facts/cache-artifacts.md 1.4, 1.5)."""

from __future__ import annotations

from pyrunner.api.dial import Timeouts
from pyrunner.api.errors import TransportError
from pyrunner.api.http import HttpClient
from pyrunner.api.retry import RetryPolicy
from pyrunner.base.errors import PyrunnerError
from pyrunner.helper.attempts import RetriableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyrunner.api.exchange import Response
    from pyrunner.helper.download_file import DownloadFile
    from pyrunner.helper.ranges import Ranges

_METADATA_PREFIXES = ("x-amz-meta-", "x-goog-meta-", "x-ms-meta-")
_DEFAULT_MINUTES = 10
#: An archive must arrive as it was stored.
_AS_IT_IS = {"Accept-Encoding": "identity"}


class MissingObjectError(PyrunnerError):
    """There is no such object; not worth another try."""

    def __init__(self) -> None:
        super().__init__("file does not exist")


class StoredObject:
    """What an answer says about an object: time in seconds since the epoch, None when it does not say."""

    __slots__ = ("etag", "metadata", "mtime", "size")

    def __init__(self, response: Response) -> None:
        self.etag = response.header("ETag")
        self.mtime = http_time(response.header("Last-Modified"))
        length = response.header("Content-Length")
        self.size = int(length) if length.isascii() and length.isdigit() else 0
        self.metadata = {
            name.lower()[len(prefix) :]: value
            for name, value in response.headers()
            for prefix in _METADATA_PREFIXES
            if name.lower().startswith(prefix)
        }


class Storage:
    """Object storage reached with URLs that carry their own permission.

    Args:
        minutes: limit of one transfer; 0 means ten.
    """

    def __init__(self, minutes: int = 0) -> None:
        self.seconds = float(minutes or _DEFAULT_MINUTES) * 60
        limits = Timeouts(dial=30.0, handshake=10.0, header=30.0, total=self.seconds)
        self._http = HttpClient(retry=RetryPolicy(attempts=1), timeouts=limits)

    def head(self, url: str) -> StoredObject | None:
        """The object behind a HEAD URL, None when there is none or it does not tell."""
        try:
            response = self._http.request("HEAD", url, _AS_IT_IS)
        except TransportError:
            return None
        return StoredObject(response) if 200 <= response.status < 300 else None

    def get(self, url: str, file: DownloadFile, newer_than: float | None, ranges: Ranges) -> StoredObject | None:
        """Download into `file`; None when the object is not newer than `newer_than` (seconds since the epoch).

        Raises:
            MissingObjectError: there is no such object.
            RetriableError: worth another try.
            PyrunnerError: refused.
        """
        headers = dict(_AS_IT_IS)
        if newer_than is not None:
            headers["If-Modified-Since"] = http_date(newer_than)
        try:
            response = ranges.fetch(self._http, url, headers, file)
        except TransportError as error:
            raise RetriableError(str(error)) from error
        if response.status == 304:
            return None
        if response.status == 404:
            raise MissingObjectError
        _check(response)
        return StoredObject(response)

    def put(self, url: str, headers: Mapping[str, str], size: int, pieces: Callable[[], Iterable[bytes]]) -> None:
        """Upload `size` bytes.

        Raises:
            RetriableError: worth another try.
            PyrunnerError: refused.
        """
        sent = {**headers, "Content-Length": str(size)}
        try:
            _check(self._http.request("PUT", url, sent, pieces))
        except TransportError as error:
            raise RetriableError(str(error)) from error


def _check(response: Response) -> None:
    if 200 <= response.status < 300:
        return
    text = f"received: {response.status_line}{_xml_reason(response.body)}"
    if response.status >= 500:
        raise RetriableError(text)
    raise PyrunnerError(text)


def _xml_reason(body: bytes) -> str:
    """What an object storage says about an error, read without a parser: it comes from a stranger."""
    import re

    found = [re.search(pattern, body[:65536]) for pattern in (rb"<Code>([^<]*)<", rb"<Message>([^<]*)<")]
    code, message = ("".join(_printable(match.group(1))) if match else "" for match in found)
    return f". Request failed with code: {code}, message: {message}" if code else ""


def _printable(text: bytes) -> str:
    return "".join(character if character.isprintable() else " " for character in text.decode("utf-8", "replace"))


def http_date(moment: float) -> str:
    """Seconds since the epoch as an HTTP date."""
    from email.utils import formatdate

    return formatdate(int(moment), usegmt=True)


def http_time(text: str) -> float | None:
    """An HTTP date as seconds since the epoch, None when it is none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None
