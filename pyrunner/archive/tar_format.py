"""Tar headers: writing PAX/USTAR, reading these and GNU's long names."""

from __future__ import annotations

import os
import stat
import struct

from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.targets import Meta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK = 512
END = b"\0" * (2 * BLOCK)
REGULAR, HARD_LINK, LINK, DIRECTORY = b"0", b"1", b"2", b"5"
_HEADER = struct.Struct("<100s8s8s8s12s12s8sc100s6s2s32s32s8s8s155s12x")
_LARGEST_OCTAL = 0o77777777777
#: More than any real set of PAX keywords or any path.
_LONGEST_META = 1 << 20


class TarEntry(Meta):
    """One header with its extensions resolved. `link` is the destination of a link, `size` the bytes that follow."""

    __slots__ = ("kind", "link", "size")

    def __init__(self, meta: Meta, kind: bytes, size: int, link: bytes) -> None:
        super().__init__(meta.name, meta.mode, meta.mtime, meta.uid, meta.gid)
        self.kind = kind
        self.size = size
        self.link = link


def padding(size: int) -> bytes:
    """The zeros that fill the last block of `size` bytes."""
    return b"\0" * (-size % BLOCK)


def header(path: str, info: os.stat_result, link: bytes = b"") -> bytes:
    """The header blocks of a file, directory or symbolic link."""
    name = os.fsencode(path)
    kind, size = REGULAR, info.st_size
    if stat.S_ISDIR(info.st_mode):
        kind, size, name = DIRECTORY, 0, name + b"/"
    elif stat.S_ISLNK(info.st_mode):
        kind, size = LINK, 0
    pax = _extensions(name, link, size, info)
    extended = b"".join(_pax_record(key, value) for key, value in pax.items())
    blocks = b""
    if extended:
        blocks = _block(b"PaxHeaders/" + name[-80:].strip(b"/"), b"x", len(extended), 0o644, 0, 0, 0, b"")
        blocks += extended + padding(len(extended))
    mtime = min(max(int(info.st_mtime), 0), _LARGEST_OCTAL)
    return blocks + _block(
        name[:100], kind, min(size, _LARGEST_OCTAL), stat.S_IMODE(info.st_mode), mtime,
        min(info.st_uid, 0o7777777), min(info.st_gid, 0o7777777), link[:100],
    )  # fmt: skip


def _extensions(name: bytes, link: bytes, size: int, info: os.stat_result) -> dict[bytes, bytes]:
    pax: dict[bytes, bytes] = {}
    if len(name) > 100 or not name.isascii():
        pax[b"path"] = name
    if len(link) > 100 or not link.isascii():
        pax[b"linkpath"] = link
    if size > _LARGEST_OCTAL:
        pax[b"size"] = b"%d" % size
    for key, number in ((b"uid", info.st_uid), (b"gid", info.st_gid)):
        if number > 0o7777777:
            pax[key] = b"%d" % number
    if info.st_mtime < 0 or info.st_mtime > _LARGEST_OCTAL:
        pax[b"mtime"] = b"%d" % int(info.st_mtime)
    return pax


def _pax_record(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    length = len(body) + len(str(len(body)))
    if len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return b"%d" % length + body


def _block(name: bytes, kind: bytes, size: int, mode: int, mtime: int, uid: int, gid: int, link: bytes) -> bytes:
    fields = [
        name, b"%07o\0" % mode, b"%07o\0" % uid, b"%07o\0" % gid, b"%011o\0" % size, b"%011o\0" % mtime,
        b" " * 8, kind, link, b"ustar\0", b"00", b"", b"", b"%07o\0" % 0, b"%07o\0" % 0, b"",
    ]  # fmt: skip
    block = _HEADER.pack(*fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def read_entries(read: Callable[[int], bytes]) -> Iterator[TarEntry]:
    """The entries of the stream that `read(size)` gives (exactly `size` bytes, fewer only at its end).

    The consumer must have read ``entry.size`` bytes and their padding before it asks for the next entry.

    Raises:
        ArchiveError: cut off, damaged, or of a kind that is not supported.
    """
    local: dict[bytes, bytes] = {}
    shared: dict[bytes, bytes] = {}
    while True:
        block = read(BLOCK)
        if len(block) < BLOCK:
            raise ArchiveError("tar: the archive is cut off")
        if not block.strip(b"\0"):
            return
        entry = _parse(block)
        if entry.kind in (b"x", b"g", b"L", b"K"):
            text = _meta_data(read, entry.size)
            if entry.kind == b"x":
                local |= _pax_values(text)
            elif entry.kind == b"g":
                shared |= _pax_values(text)
            else:
                local[b"path" if entry.kind == b"L" else b"linkpath"] = text.rstrip(b"\0")
            continue
        _apply(entry, {**shared, **local})
        local = {}
        yield entry


def _meta_data(read: Callable[[int], bytes], size: int) -> bytes:
    if size > _LONGEST_META:
        raise ArchiveError("tar: the archive is damaged")
    data = read(size + len(padding(size)))
    if len(data) < size:
        raise ArchiveError("tar: the archive is cut off")
    return data[:size]


def _parse(block: bytes) -> TarEntry:
    (
        name, mode, uid, gid, size, mtime, checksum, kind, link, magic, _, _, _, _, _, prefix,
    ) = _HEADER.unpack(block)  # fmt: skip
    if sum(block[:148]) + 8 * 32 + sum(block[156:]) != _number(checksum):
        raise ArchiveError("tar: the archive is damaged: header checksum error")
    name = name.split(b"\0", 1)[0]
    if magic == b"ustar\0" and prefix[:1] != b"\0":
        name = prefix.split(b"\0", 1)[0] + b"/" + name
    meta = Meta(name, _number(mode), float(_number(mtime)), _number(uid), _number(gid))
    return TarEntry(meta, REGULAR if kind in (b"\0", b"7") else kind, _number(size), link.split(b"\0", 1)[0])


def _number(field: bytes) -> int:
    if field[0] & 0x80:
        # GNU's way for numbers that octal digits cannot hold
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    try:
        return int(text, 8) if text else 0
    except ValueError:
        raise ArchiveError("tar: the archive is damaged: bad number in a header") from None


def _pax_values(text: bytes) -> dict[bytes, bytes]:
    values = {}
    while text:
        digits, _, _ = text.partition(b" ")
        if not digits.isdigit() or not len(digits) < int(digits[:9]) <= len(text):
            raise ArchiveError("tar: the archive is damaged: bad extended header")
        record, text = text[len(digits) + 1 : int(digits)], text[int(digits) :]
        key, _, value = record.partition(b"=")
        values[key] = value[:-1]
    return values


def _apply(entry: TarEntry, pax: dict[bytes, bytes]) -> None:
    try:
        entry.name = pax.get(b"path", entry.name)
        entry.link = pax.get(b"linkpath", entry.link)
        entry.size = int(pax.get(b"size", entry.size))
        entry.uid = int(pax.get(b"uid", entry.uid))
        entry.gid = int(pax.get(b"gid", entry.gid))
        entry.mtime = float(pax.get(b"mtime", entry.mtime))
    except ValueError:
        raise ArchiveError("tar: the archive is damaged: bad number in a header") from None
    if any(key.startswith(b"GNU.sparse") for key in pax):
        raise ArchiveError(f"tar: {shown(entry)}: sparse files are not supported")
    kinds = {REGULAR: stat.S_IFREG, HARD_LINK: stat.S_IFREG, LINK: stat.S_IFLNK, DIRECTORY: stat.S_IFDIR}
    if entry.kind not in kinds:
        raise ArchiveError(f"tar: {shown(entry)}: entries of type {entry.kind!r} are not supported")
    if entry.kind != REGULAR:
        entry.size = 0
    if entry.kind == REGULAR and entry.name.endswith(b"/"):
        entry.kind = DIRECTORY
    if entry.size < 0 or not 0 <= entry.mtime < 1 << 40:
        raise ArchiveError(f"tar: {shown(entry)}: the archive is damaged: bad number in a header")
    entry.mode = kinds[entry.kind] | stat.S_IMODE(entry.mode)


def shown(entry: Meta) -> str:
    """The entry's name for a message."""
    return entry.name.decode("utf-8", "backslashreplace")
