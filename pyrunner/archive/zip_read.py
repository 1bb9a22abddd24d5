"""Reading the directory of a zip file, and judging it before anything is extracted."""

from __future__ import annotations

import os
import stat
import struct

from pyrunner.archive import zip_format
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.targets import Meta
from pyrunner.archive.zip_format import LIMIT16, LIMIT32

_MADE_BY_UNIX = (3, 19)
_FIELD = struct.Struct("<2H")
_METHODS = (zip_format.STORED, zip_format.DEFLATED, zip_format.ZSTD)


class ZipEntry(Meta):
    """One record of the directory. `end` is where the next entry or the directory begins."""

    __slots__ = ("compressed", "crc", "end", "flags", "method", "offset", "pieces", "size")

    compressed: int
    crc: int
    end: int
    flags: int
    method: int
    offset: int
    #: Length of the pieces' plain content, and the pieces' compressed lengths; None for an ordinary entry.
    pieces: tuple[int, tuple[int, ...]] | None
    size: int


def read_directory(fd: int) -> list[ZipEntry]:
    """The entries in the order of their data.

    Raises:
        ArchiveError: not a zip file, cut off, contradictory, encrypted, or with a compression that we do not know.
    """
    total = os.fstat(fd).st_size
    count, size, offset, ends_at = _find_end(fd, total)
    # something may stand before the archive (a self-extracting one): then all offsets are that much too low
    shift = ends_at - size - offset
    if shift < 0 or size > ends_at:
        raise ArchiveError("zip: the archive is cut off or its directory is damaged")
    data = os.pread(fd, size, offset + shift)
    if len(data) != size or count * zip_format.CENTRAL.size > size:
        raise ArchiveError("zip: the archive is cut off or its directory is damaged")
    entries = _parse(data, count, shift)
    _judge(entries, offset + shift)
    return entries


def _find_end(fd: int, total: int) -> tuple[int, int, int, int]:
    """Number of records, size and recorded offset of the directory, and where it really ends."""
    start = max(0, total - zip_format.END.size - LIMIT16)
    tail = os.pread(fd, total - start, start)
    at = tail.rfind(zip_format.END_MAGIC)
    while at >= 0:
        if len(tail) - at >= zip_format.END.size:
            _, disk, first, _, count, size, offset, comment = zip_format.END.unpack_from(tail, at)
            if at + zip_format.END.size + comment <= len(tail):
                if disk or first:
                    raise ArchiveError("zip: archives in several parts are not supported")
                return _find_end64(fd, start + at) or (count, size, offset, start + at)
        at = tail.rfind(zip_format.END_MAGIC, 0, at)
    raise ArchiveError("zip: not a valid zip file")


def _find_end64(fd: int, end_at: int) -> tuple[int, int, int, int] | None:
    locator = os.pread(fd, zip_format.LOCATOR64.size, max(0, end_at - zip_format.LOCATOR64.size))
    if len(locator) < zip_format.LOCATOR64.size or not locator.startswith(zip_format.LOCATOR64_MAGIC):
        return None
    at = end_at - zip_format.LOCATOR64.size - zip_format.END64.size
    if at < 0:
        raise ArchiveError("zip: the archive is cut off or its directory is damaged")
    end64 = os.pread(fd, zip_format.END64.size, at)
    if len(end64) < zip_format.END64.size or not end64.startswith(zip_format.END64_MAGIC):
        raise ArchiveError("zip: the archive is cut off or its directory is damaged")
    *_, count, size, offset = zip_format.END64.unpack(end64)
    return count, size, offset, at


def _parse(data: bytes, count: int, shift: int) -> list[ZipEntry]:
    entries = []
    at = 0
    try:
        for _ in range(count):
            entry, at = _record(data, at)
            entry.offset += shift
            entries.append(entry)
    except struct.error:
        raise ArchiveError("zip: the directory is damaged") from None
    return entries


def _record(data: bytes, at: int) -> tuple[ZipEntry, int]:
    (
        magic, made_by, _, flags, method, clock, date, crc, compressed, size,
        name_length, extra_length, comment_length, _, _, attributes, offset,
    ) = zip_format.CENTRAL.unpack_from(data, at)  # fmt: skip
    name_at = at + zip_format.CENTRAL.size
    extra_at = name_at + name_length
    end = extra_at + extra_length + comment_length
    if magic != zip_format.CENTRAL_MAGIC or end > len(data):
        raise ArchiveError("zip: the directory is damaged")
    entry = ZipEntry(data[name_at:extra_at], _mode(made_by >> 8, attributes, data[name_at:extra_at]), -1.0)
    entry.flags, entry.method, entry.crc = flags, method, crc
    entry.compressed, entry.size, entry.offset = compressed, size, offset
    entry.pieces = None
    _read_extra(entry, data[extra_at : extra_at + extra_length])
    if entry.mtime < 0:
        entry.mtime = zip_format.seconds_of_dos(date, clock)
    return entry, end


def _mode(system: int, attributes: int, name: bytes) -> int:
    mode = attributes >> 16
    if system not in _MADE_BY_UNIX or not mode & 0o170777:
        mode = 0o755 if name.endswith(b"/") else 0o644
    if name.endswith(b"/"):
        return stat.S_IFDIR | stat.S_IMODE(mode)
    return mode if stat.S_IFMT(mode) else stat.S_IFREG | mode


def _read_extra(entry: ZipEntry, extra: bytes) -> None:
    if len(extra) == zip_format.TIME_AND_OWNER.size:
        # what we write ourselves, in one go
        time_kind, _, flags, seconds, unix_kind, *_, four, uid, also_four, gid = zip_format.TIME_AND_OWNER.unpack(extra)
        kinds = time_kind, unix_kind, flags, four, also_four
        if kinds == (zip_format.EXTRA_TIME, zip_format.EXTRA_UNIX, 1, 4, 4):
            entry.mtime, entry.uid, entry.gid = float(seconds), uid, gid
            return
    at = 0
    while at + 4 <= len(extra):
        kind, length = _FIELD.unpack_from(extra, at)
        field = extra[at + 4 : at + 4 + length]
        at += 4 + length
        if kind == zip_format.EXTRA_TIME and len(field) >= 5 and field[0] & 1:
            entry.mtime = float(int.from_bytes(field[1:5], "little"))
        elif kind == zip_format.EXTRA_UNIX and len(field) == 11 and field[1] == 4 and field[6] == 4:
            entry.uid = int.from_bytes(field[2:6], "little")
            entry.gid = int.from_bytes(field[7:11], "little")
        elif kind == zip_format.EXTRA_ZIP64:
            _read_zip64(entry, field)
        elif kind == zip_format.EXTRA_PIECES and len(field) >= 8 and len(field) % 4 == 0:
            piece, *lengths = struct.unpack(f"<{len(field) // 4}I", field)
            entry.pieces = (piece, tuple(lengths))


def _read_zip64(entry: ZipEntry, field: bytes) -> None:
    values = [int.from_bytes(field[at : at + 8], "little") for at in range(0, len(field) - 7, 8)]
    for name in ("size", "compressed", "offset"):
        if getattr(entry, name) == LIMIT32 and values:
            setattr(entry, name, values.pop(0))


def _judge(entries: list[ZipEntry], directory_at: int) -> None:
    """Order the entries by offset and refuse what cannot be true, such as data that overlaps (a bomb)."""
    entries.sort(key=lambda entry: entry.offset)
    limit = directory_at
    for entry in reversed(entries):
        entry.end = limit
        if entry.offset + zip_format.LOCAL.size + len(entry.name) + entry.compressed > limit:
            raise _refused(entry, "its data is cut off or overlaps another entry")
        if entry.flags & zip_format.FLAG_ENCRYPTED:
            raise _refused(entry, "is encrypted")
        if entry.method not in _METHODS:
            raise _refused(entry, f"unsupported compression method {entry.method}")
        if entry.method == zip_format.STORED and entry.size != entry.compressed:
            raise _refused(entry, "the directory is damaged")
        limit = entry.offset


def _refused(entry: ZipEntry, reason: str) -> ArchiveError:
    return ArchiveError(f"zip: {entry.name.decode('utf-8', 'backslashreplace')}: {reason}")
