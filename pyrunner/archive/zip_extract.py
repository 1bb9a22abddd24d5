"""Extracting zip files: small entries in batches over processes, large ones in pieces over threads."""

from __future__ import annotations

import os
import stat
import struct

from isal import isal_zlib

from pyrunner.archive import zip_format
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.workers import spread, worker_count
from pyrunner.archive.zip_format import DEFLATED, STORED, ZSTD
from pyrunner.archive.zip_read import read_directory
from pyrunner.base.light_log import Log

log = Log(__name__)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyrunner.archive.targets import LargeFile, Target
    from pyrunner.archive.zip_read import ZipEntry

    #: Offset and length of the packed bytes, offset and length of the plain ones.
    Piece = tuple[int, int, int, int]

_SMALL = 2 << 20
_BATCH_BYTES, _BATCH_FILES = 1 << 20, 128
_LENGTHS = struct.Struct("<2H")
_CHUNK, _STEP, _STRETCH, _LARGEST_PIECE = 1 << 18, 1 << 17, 1 << 20, 8 << 20
_MOST_OF_ZSTD_WINDOW = 1 << 27
_LONGEST_LINK = 1 << 16
#: What the decompressors raise for bad data.
_CORRUPT: tuple[type[Exception], ...] = (isal_zlib.error, ValueError, EOFError)  # type: ignore[assignment]


def extract_zip(fd: int, target: Target) -> int:
    """Extract the zip file behind `fd`; returns the number of entries.

    Files first, then links, then the modes and times of directories: so no link of the archive can redirect a write,
    and the times survive.

    Raises:
        ArchiveError: nothing has been written when the directory is at fault; when the data of an entry is, entries
            before it may have been extracted, each of them whole.
    """
    entries = _latest(read_directory(fd), target)
    target.check(entries)
    target.make_parents(entries)
    small, large, links, directories = _sorted_out(entries)
    work = _Unpacker(fd, target).unpack
    workers = worker_count("FASTZIP_EXTRACTOR_CONCURRENCY")
    for _ in spread(_batches(small), work, workers if len(small) > _BATCH_FILES else 1):
        continue
    for entry in large:
        _extract_large(fd, entry, target, workers)
    for entry in links:
        if entry.size > _LONGEST_LINK:
            raise _damaged(entry, "is too long for a link")
        target.write_link(entry, _content(entry, _region(fd, entry, entry), 0))
    target.finish_directories(directories)
    return len(entries)


def _latest(entries: list[ZipEntry], target: Target) -> list[ZipEntry]:
    """Of entries with the same name the one that comes last, as if they had been extracted one after the other."""
    by_name = {target.clean(entry.name): entry for entry in entries}
    return list(by_name.values()) if len(by_name) < len(entries) else entries


def _sorted_out(entries: list[ZipEntry]) -> tuple[list[ZipEntry], ...]:
    small: list[ZipEntry] = []
    large: list[ZipEntry] = []
    links: list[ZipEntry] = []
    directories: list[ZipEntry] = []
    for entry in entries:
        if stat.S_ISDIR(entry.mode):
            directories.append(entry)
        elif stat.S_ISLNK(entry.mode):
            links.append(entry)
        elif stat.S_ISREG(entry.mode):
            (large if max(entry.size, entry.compressed) > _SMALL else small).append(entry)
        else:
            log.warning("File ignored: %s", entry.name.decode("utf-8", "backslashreplace"))
    return small, large, links, directories


def _batches(entries: list[ZipEntry]) -> list[list[ZipEntry]]:
    """Runs of entries whose data lies close together, so that one read fetches it."""
    done: list[list[ZipEntry]] = []
    for entry in entries:
        last = done[-1] if done else []
        if not last or len(last) >= _BATCH_FILES or entry.end - last[0].offset > _BATCH_BYTES:
            done.append([entry])
        else:
            last.append(entry)
    return done


class _Unpacker:
    """Writes small entries: content is checked as a whole before a file is touched."""

    def __init__(self, fd: int, target: Target) -> None:
        self._fd = fd
        self._target = target

    def unpack(self, batch: list[ZipEntry]) -> tuple[object, list[bytes]]:
        region = _region(self._fd, batch[0], batch[-1])
        start = batch[0].offset
        for entry in batch:
            self._target.write_file(entry, _content(entry, region, entry.offset - start))
        return None, []


def _region(fd: int, first: ZipEntry, last: ZipEntry) -> bytes:
    # an entry alone may be followed by anything: no more is read than it can need
    length = last.end - first.offset
    most = zip_format.LOCAL.size + 2 * zip_format.LIMIT16 + max(first.compressed, _BATCH_BYTES)
    return os.pread(fd, min(length, most), first.offset)


def _content(entry: ZipEntry, region: bytes, at: int) -> bytes:
    """The checked content of `entry` whose local header stands at `at` in `region`."""
    start = at + _header_length(entry, region, at)
    packed = region[start : start + entry.compressed]
    if len(packed) != entry.compressed:
        raise _damaged(entry, "its data is cut off")
    try:
        data = _UNPACK[entry.method](packed, entry)
    except _CORRUPT as error:
        raise _damaged(entry, str(error)) from error
    if len(data) != entry.size or isal_zlib.crc32(data) != entry.crc:
        raise _damaged(entry, "checksum error")
    return data


def _header_length(entry: ZipEntry, region: bytes, at: int) -> int:
    """Length of the local header; its own words about the entry do not count, the directory's do."""
    if region[at : at + 4] != zip_format.LOCAL_MAGIC or len(region) < at + zip_format.LOCAL.size:
        raise _damaged(entry, "its header is damaged")
    name, extra = _LENGTHS.unpack_from(region, at + 26)
    length: int = zip_format.LOCAL.size + name + extra
    if entry.offset + length + entry.compressed > entry.end:
        raise _damaged(entry, "its data overlaps another entry")
    return length


def _inflate(packed: bytes, entry: ZipEntry) -> bytes:
    # one byte more than promised is enough to see a lie, and bounds the memory that a bomb can take
    maker = isal_zlib.decompressobj(-15)
    data: bytes = maker.decompress(packed, entry.size + 1)
    if len(data) == entry.size and not maker.eof:
        data += maker.decompress(maker.unconsumed_tail, 1)
    if not maker.eof:
        raise EOFError("its data is cut off")
    return data


def _unzstd(packed: bytes, entry: ZipEntry) -> bytes:
    import zstandard

    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_MOST_OF_ZSTD_WINDOW).stream_reader(packed)
        return reader.read(entry.size + 1) if entry.size else b""
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


_UNPACK: dict[int, Callable[[bytes, ZipEntry], bytes]] = {
    STORED: lambda packed, entry: packed,
    DEFLATED: _inflate,
    ZSTD: _unzstd,
}


def _extract_large(fd: int, entry: ZipEntry, target: Target, workers: int) -> None:
    header = os.pread(fd, zip_format.LOCAL.size, entry.offset)
    start = entry.offset + _header_length(entry, header, 0)
    with target.open_large(entry) as file:
        try:
            pieces = _pieces(entry)
            if pieces is not None:
                crc, size = _write_pieces(fd, start, entry, file, pieces, workers)
            else:
                crc, size = _write_stream(_stream(fd, start, entry), entry, file, workers)
        except _CORRUPT as error:
            raise _damaged(entry, str(error)) from error
        if size != entry.size or crc != entry.crc:
            raise _damaged(entry, "checksum error")


def _pieces(entry: ZipEntry) -> list[Piece] | None:
    """Offset and length of each piece, packed and plain; None when the entry is to be read as one stream.

    Stored data can be cut anywhere; deflated data only where its maker has said so.
    """
    if entry.method == STORED:
        steps = [(at, min(_STEP, entry.size - at)) for at in range(0, entry.size, _STEP)]
        return [(at, length, at, length) for at, length in steps]
    if entry.method != DEFLATED or entry.pieces is None:
        return None
    piece, lengths = entry.pieces
    if not 0 < piece <= _LARGEST_PIECE or len(lengths) != -(-entry.size // piece):
        return None
    # packed pieces are never much larger than plain ones: who says so wants us to read gigabytes at once
    if sum(lengths) >= entry.compressed or max(lengths) > piece + (piece >> 6) + _STEP:
        return None
    result, at = [], 0
    for number, length in enumerate(lengths):
        result.append((at, length, number * piece, min(piece, entry.size - number * piece)))
        at += length
    return result


def _stretches(pieces: list[Piece]) -> list[list[Piece]]:
    """Runs of pieces that are worth a thread's while."""
    done: list[list[Piece]] = []
    for piece in pieces:
        if done and piece[2] + piece[3] - done[-1][0][2] <= _STRETCH:
            done[-1].append(piece)
        else:
            done.append([piece])
    return done


def _write_pieces(
    fd: int, start: int, entry: ZipEntry, file: LargeFile, pieces: list[Piece], workers: int
) -> tuple[int, int]:
    from pyrunner.archive.pieces import in_order

    stretches = _stretches(pieces)
    deflated = entry.method == DEFLATED

    def work(number: int) -> tuple[int, int]:
        crc = total = 0
        for at, length, to, size in stretches[number]:
            data = os.pread(fd, length, start + at)
            if deflated:
                data = isal_zlib.decompressobj(-15).decompress(data, size + 1)
            if len(data) != size:
                raise EOFError("its data is cut off")
            crc = isal_zlib.crc32(data, crc)
            total += size
            file.write_at(data, to)
        return crc, total

    crc = total = 0
    for piece_crc, size in in_order(work, len(stretches), workers):
        crc = isal_zlib.crc32_combine(crc, piece_crc, size)
        total += size
    return crc, total


def _stream(fd: int, start: int, entry: ZipEntry) -> Iterator[bytes]:
    if entry.method == ZSTD:
        return _zstd_stream(fd, start, entry.compressed)
    return _deflate_stream(fd, start, entry.compressed)


def _deflate_stream(fd: int, start: int, length: int) -> Iterator[bytes]:
    maker = isal_zlib.decompressobj(-15)
    at, waiting = start, b""
    while not maker.eof:
        if not waiting:
            waiting = os.pread(fd, min(_CHUNK, start + length - at), at)
            at += len(waiting)
            if not waiting:
                raise EOFError("its data is cut off")
        yield maker.decompress(waiting, _CHUNK)
        waiting = maker.unconsumed_tail


class _Region:
    """A part of the archive as a file to read from."""

    def __init__(self, fd: int, start: int, length: int) -> None:
        self._fd = fd
        self._at = start
        self._end = start + length

    def read(self, size: int) -> bytes:
        data = os.pread(self._fd, min(size, self._end - self._at), self._at)
        self._at += len(data)
        return data


def _zstd_stream(fd: int, start: int, length: int) -> Iterator[bytes]:
    import zstandard

    # a reader, because it gives what it is asked for: four bytes of zstd can become 128 KiB
    maker = zstandard.ZstdDecompressor(max_window_size=_MOST_OF_ZSTD_WINDOW)
    reader = maker.stream_reader(_Region(fd, start, length))  # type: ignore[arg-type] # only reads are made
    try:
        while data := reader.read(_CHUNK):
            yield data
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _write_stream(stream: Iterator[bytes], entry: ZipEntry, file: LargeFile, workers: int) -> tuple[int, int]:
    from pyrunner.archive.pieces import ahead

    crc = size = 0
    for data in ahead(stream) if workers > 1 else stream:
        size += len(data)
        if size > entry.size:
            raise ValueError("it holds more data than it says")
        crc = isal_zlib.crc32(data, crc)
        file.write(data)
    return crc, size


def _damaged(entry: ZipEntry, reason: str) -> ArchiveError:
    return ArchiveError(f"zip: {entry.name.decode('utf-8', 'backslashreplace')}: {reason}")
