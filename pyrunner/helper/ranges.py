"""One large object fetched in several ranges at the same time (facts/cache-artifacts.md 1.5, 3.3)."""

from __future__ import annotations

import threading

from pyrunner.api.errors import TransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyrunner.api.exchange import Response
    from pyrunner.api.http import HttpClient
    from pyrunner.helper.download_file import DownloadFile

#: As GitLab Runner's ``--chunk-size`` and ``--concurrency``.
CHUNK, CONCURRENCY = 16 << 20, 16
_PARTIAL = 206


class Ranges:
    """How an object is cut: bytes of a range, and how many are fetched at the same time."""

    __slots__ = ("chunk", "concurrency")

    def __init__(self, chunk: int = CHUNK, concurrency: int = CONCURRENCY) -> None:
        self.chunk = max(chunk, 1)
        self.concurrency = concurrency

    def fetch(self, http: HttpClient, url: str, headers: Mapping[str, str], file: DownloadFile) -> Response:
        """Download into `file`; the answer to the first request is returned, its body is in the file.

        The first request asks for one byte. A server that does not know ranges answers it with everything (200), one
        that does tells the size (206), and the rest follows in ranges. Any other answer is handed back as it is.

        Raises:
            TransportError: an answer is missing, is for another range, or the object has changed meanwhile.
        """
        if self.concurrency < 2:
            return http.request("GET", url, headers, sink=file)
        headers = {**headers, "Accept-Encoding": "identity"}
        probe = http.request("GET", url, {**headers, "Range": "bytes=0-0"}, sink=file)
        if probe.status == 416:
            # nothing to take a first byte from
            return http.request("GET", url, headers, sink=file)
        if probe.status != _PARTIAL:
            return probe
        file.restart()
        size = _size(probe)
        if size <= self.chunk:
            return http.request("GET", url, headers, sink=file)
        file.meter.total = size
        self._fetch_parts(http, url, headers, _Whole(file, size, _identity(probe)))
        return probe

    def _fetch_parts(self, http: HttpClient, url: str, headers: Mapping[str, str], whole: _Whole) -> None:
        from pyrunner.archive.pieces import in_order

        def part(number: int) -> None:
            start = number * self.chunk
            end = min(start + self.chunk, whole.size)
            sink = _Part(whole, start, end)
            # the condition is checked by the first request only: a range of an unchanged object must come
            sent = {name: value for name, value in headers.items() if name.lower() != "if-modified-since"}
            answer = http.request("GET", url, {**sent, "Range": f"bytes={start}-{end - 1}"}, sink=sink)
            if answer.status != _PARTIAL:
                raise TransportError(f"received: {answer.status_line} for a range", received=True)
            expected = f"bytes {start}-{end - 1}/{whole.size}"
            if answer.header("Content-Range") != expected or _identity(answer) != whole.identity:
                raise TransportError("the object has changed while it was downloaded", received=True)
            if sink.at != end:
                raise TransportError("a range was cut short", received=True)

        count = -(-whole.size // self.chunk)
        for _ in in_order(part, count, min(self.concurrency, count)):
            continue


class _Whole:
    """The object that the parts belong to."""

    __slots__ = ("file", "identity", "lock", "size")

    def __init__(self, file: DownloadFile, size: int, identity: tuple[str, str]) -> None:
        self.file = file
        self.size = size
        self.identity = identity
        self.lock = threading.Lock()


class _Part:
    """Takes the body of one range and puts it where it belongs."""

    def __init__(self, whole: _Whole, start: int, end: int) -> None:
        self._whole = whole
        self._end = end
        self.at = start

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        if self.at + len(data) > self._end:
            # also the whole object instead of a range: it would overwrite what other parts have written
            raise TransportError("the server sent more than the range", received=True)
        self._whole.file.write_at(data, self.at)
        self.at += len(data)
        with self._whole.lock:
            self._whole.file.meter.add(len(data))
        return len(data)

    def seek(self, offset: int, /) -> int:
        self.at = offset
        return offset

    def tell(self) -> int:
        return self.at

    def truncate(self) -> int:
        return self.at


def _size(response: Response) -> int:
    """Size of the whole object as the answer to a range tells it.

    Raises:
        TransportError: it does not.
    """
    unit, _, rest = response.header("Content-Range").partition(" ")
    span, _, total = rest.partition("/")
    if unit != "bytes" or span != "0-0" or not (total.isascii() and total.isdigit()):
        raise TransportError("the answer to a range does not tell the size", received=True)
    return int(total)


def _identity(response: Response) -> tuple[str, str]:
    return response.header("ETag"), response.header("Last-Modified")
