"""gzip: one member per file, one after the other; what servers ask for with reports (facts/cache-artifacts.md 2.2)."""

from __future__ import annotations

import os
import stat
import struct

from isal import isal_zlib

from pyrunner.archive.deflate import DEFLATE_END, STRETCH, Stretches
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.pieces import in_order
from pyrunner.archive.workers import worker_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyrunner.archive.selection import Selection

_NAME_AND_COMMENT = 0x08 | 0x10
_UNIX = 3
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")


def gzip_chunks(selection: Selection, *, level: str = "default") -> Iterator[bytes]:
    """The bytes of the archive.

    Raises:
        ArchiveError: something else than a regular file was chosen, or a file cannot be read.
    """
    files = selection.sorted()
    for path, info in files:
        _check_regular(path, info)
    return _members(selection.root, files, "fast" if level == "fastest" else level)


def _check_regular(path: str, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise ArchiveError(f'the "{path}" is not a regular file')


def _members(root: str, files: list[tuple[str, os.stat_result]], level: str) -> Iterator[bytes]:
    for path, info in files:
        try:
            yield from _member(path, os.path.join(root, path), int(info.st_mtime), level)
        except OSError as error:
            raise ArchiveError(f"{path}: {error.strerror}") from error


def _member(path: str, place: str, mtime: int, level: str) -> Iterator[bytes]:
    fd = os.open(place, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        head = struct.pack("<2s2BI2B", b"\x1f\x8b", 8, _NAME_AND_COMMENT, min(max(mtime, 0), 0xFFFFFFFF), 0, _UNIX)
        yield head + header_text(os.path.basename(path)) + b"\0" + header_text(path) + b"\0"
        crc = total = 0
        stretches = Stretches(fd, os.fstat(fd).st_size, level)
        for done in in_order(stretches.pack, stretches.count, worker_count()):
            crc = isal_zlib.crc32_combine(crc, done.crc, done.length)
            total += done.length
            yield b"".join(done.pieces)
        yield DEFLATE_END + struct.pack("<2I", crc, total & 0xFFFFFFFF)
    finally:
        os.close(fd)


def header_text(text: str) -> bytes:
    """A name as the header can hold it: ``e:`` and percent-encoded unless it is plain ASCII without ``%``."""
    raw = os.fsencode(text)
    if raw.isascii() and b"%" not in raw:
        return raw
    return b"e:" + b"".join(bytes([byte]) if byte in _PLAIN else b"%%%02X" % byte for byte in raw)


def raw_chunks(selection: Selection) -> Iterator[bytes]:
    """The bytes of the one file that was chosen.

    Raises:
        ArchiveError: not exactly one regular file, or it cannot be read.
    """
    files = selection.sorted()
    if len(files) != 1:
        raise ArchiveError("only one file can be sent as raw")
    path, info = files[0]
    _check_regular(path, info)
    return _content(path, os.path.join(selection.root, path))


def _content(path: str, place: str) -> Iterator[bytes]:
    try:
        with open(place, "rb", buffering=0) as file:
            while data := file.read(STRETCH):
                yield data
    except OSError as error:
        raise ArchiveError(f"{path}: {error.strerror}") from error
