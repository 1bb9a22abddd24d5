"""A streaming reader for multipart form bodies that carry one file.

Artifact archives may be larger than memory: parts are handed on as they come, in the pieces that the network gave.
Pure: the same content whatever the cuts between chunks.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: A part's header block is small; more than this is not a form.
_HEADER_LIMIT = 16 << 10
_PARAMETER = re.compile(r';\s*([A-Za-z*]+)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')


class MultipartError(ValueError):
    """The body is not a multipart form, or ends too early."""


@dataclass(frozen=True, kw_only=True)
class PartBegin:
    """A part begins: form field `name`, and `filename` when it is a file."""

    name: str
    filename: str | None


@dataclass(frozen=True, kw_only=True)
class PartData:
    """More content of the current part."""

    content: bytes


Event = PartBegin | PartData


class _Place(enum.Enum):
    BEFORE = enum.auto()
    HEADERS = enum.auto()
    CONTENT = enum.auto()
    AFTER = enum.auto()


class MultipartReader:
    """Feed it chunks, take events; call `close` at the end of the body."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        # the first delimiter has no line end before it
        self._buffer = b"\r\n"
        self._place = _Place.BEFORE

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that `chunk` completes.

        Raises:
            MultipartError: the body is not a form.
        """
        self._buffer += chunk
        while True:
            if self._place in (_Place.BEFORE, _Place.CONTENT):
                found = self._buffer.find(self._delimiter)
                content = self._before_delimiter(found)
                if content and self._place is _Place.CONTENT:
                    yield PartData(content=content)
                if found < 0:
                    return
                self._place = _Place.HEADERS
            elif self._place is _Place.HEADERS:
                begin = self._headers()
                if begin is None:
                    return
                if isinstance(begin, PartBegin):
                    yield begin
            else:
                self._buffer = b""
                return

    def close(self) -> None:
        """The body has ended.

        Raises:
            MultipartError: its last boundary has not been seen.
        """
        if self._place is not _Place.AFTER:
            raise MultipartError("the form ends before its last boundary")

    def _before_delimiter(self, found: int) -> bytes:
        """Cut off what is surely content: up to the delimiter, or all but what may be the beginning of one."""
        if found >= 0:
            content = self._buffer[:found]
            self._buffer = self._buffer[found + len(self._delimiter) :]
            return content
        keep = len(self._delimiter) - 1
        content, self._buffer = self._buffer[:-keep], self._buffer[-keep:]
        return content

    def _headers(self) -> PartBegin | bool | None:
        """The part's header; True after the last boundary; None when more is needed."""
        if self._buffer[:2] == b"--":
            self._place = _Place.AFTER
            return True
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEADER_LIMIT:
                raise MultipartError("the header of a part is too long")
            return None
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        self._place = _Place.CONTENT
        return _begin(head)


def boundary_of(content_type: str) -> bytes:
    """The boundary that ``multipart/form-data; boundary=…`` announces.

    Raises:
        MultipartError: the content type is another one.
    """
    kind, _, _ = content_type.partition(";")
    parameters = _parameters(content_type)
    if kind.strip().lower() != "multipart/form-data" or not parameters.get("boundary"):
        raise MultipartError("the body is not multipart/form-data with a boundary")
    return parameters["boundary"].encode("latin-1", "replace")


def _parameters(header: str) -> dict[str, str]:
    return {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _PARAMETER.findall(header)
    }


def _begin(head: bytes) -> PartBegin:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            parameters = _parameters(value)
            return PartBegin(name=parameters.get("name", ""), filename=parameters.get("filename"))
    raise MultipartError("a part has no Content-Disposition")
