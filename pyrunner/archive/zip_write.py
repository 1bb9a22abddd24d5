"""Writing zip files: small files in batches over processes, large ones in pieces over threads.

The archive is a stream of chunks that is never rewound, so that it can go to a file or straight into a request.
"""

from __future__ import annotations

import os
import stat

from isal import isal_zlib

from pyrunner.archive import zip_format
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.levels import deflater, zstd_level
from pyrunner.archive.workers import spread, worker_count
from pyrunner.archive.zip_format import DEFLATED, STORED, ZSTD, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pyrunner.archive.selection import Selection

    File = tuple[str, os.stat_result]
    #: Name, record of the central directory, offset of the local header.
    Record = tuple[bytes, bytes, int]
    #: Chunks of an entry's data; returns the extra field that tells where they begin.
    Body = Generator[bytes, None, bytes]

#: Up to here a file is read, compressed and written in one go.
SMALL = 2 << 20
_BATCH_BYTES, _BATCH_FILES = 1 << 20, 128
#: A file that may not fit four-byte sizes once it has been deflated at its worst.
_ZSTD_PIECE = 1 << 18
_ZIP64_FROM = zip_format.LIMIT32 - (64 << 20)


class ZipWriter:
    """Makes the chunks of one zip file.

    Args:
        selection: what goes in.
        method: `DEFLATED` or `ZSTD`.
        level: one of `levels.LEVELS`; ``fastest`` stores.
    """

    def __init__(self, selection: Selection, *, method: int = DEFLATED, level: str = "default") -> None:
        self._root = os.fsencode(selection.root)
        self._files = selection.sorted()
        self._method = STORED if level == "fastest" else method
        self._level = level
        self._workers = worker_count("FASTZIP_ARCHIVER_CONCURRENCY")
        self._records: list[Record] = []
        self._offset = 0

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the archive.

        Raises:
            ArchiveError: a file cannot be read.
        """
        small: list[File] = []
        large: list[File] = []
        for file in self._files:
            is_large = stat.S_ISREG(file[1].st_mode) and file[1].st_size > SMALL
            (large if is_large else small).append(file)
        for chunk in self._small(small):
            self._offset += len(chunk)
            yield chunk
        for file in large:
            for chunk in self._large(file):
                self._offset += len(chunk)
                yield chunk
        yield self._directory()

    def _small(self, files: list[File]) -> Iterator[bytes]:
        work = _Packer(self._root, self._method, self._level).pack
        workers = self._workers if len(files) > _BATCH_FILES else 1
        for records, parts in spread(batches(files), work, workers):
            assert isinstance(records, list)  # noqa: S101
            self._records += [(name, record, at + self._offset) for name, record, at in records]
            yield b"".join(parts) if len(parts) > 1 else parts[0]

    def _large(self, file: File) -> Iterator[bytes]:
        path, info = file
        member = Member(path, info)
        member.method = self._method
        start = self._offset
        try:
            fd = os.open(os.path.join(self._root, os.fsencode(path)), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ArchiveError(f"{path}: {error.strerror}") from error
        try:
            size = os.fstat(fd).st_size
            zip64 = size >= _ZIP64_FROM
            yield member.local_before_data(zip64=zip64)
            body = _zstd_body if member.method == ZSTD else _piece_body
            pieces = yield from body(fd, size, member, self._level, self._workers)
            yield member.descriptor(zip64=zip64)
        except OSError as error:
            raise ArchiveError(f"{path}: {error.strerror}") from error
        finally:
            os.close(fd)
        self._records.append((member.name, member.central(pieces), start))

    def _directory(self) -> bytes:
        self._records.sort()
        records = [zip_format.place(record, offset) for _, record, offset in self._records]
        size = sum(map(len, records))
        records.append(zip_format.end_of_directory(len(self._records), size, self._offset))
        return b"".join(records)


def batches(files: list[File]) -> list[list[File]]:
    """`files` in runs of limited number and size."""
    done: list[list[File]] = []
    size = _BATCH_BYTES
    for file in files:
        if size >= _BATCH_BYTES or len(done[-1]) >= _BATCH_FILES:
            done.append([])
            size = 0
        done[-1].append(file)
        size += file[1].st_size
    return done


class _Packer:
    """Turns small files into finished entries."""

    def __init__(self, root: bytes, method: int, level: str) -> None:
        self._root = root
        self._method = method
        self._compress: Callable[[bytes], bytes] | None = None
        if method == DEFLATED:
            self._compress = deflater(level)
        elif method == ZSTD:
            import zstandard

            self._compress = zstandard.ZstdCompressor(level=zstd_level(level)).compress

    def pack(self, batch: list[File]) -> tuple[object, list[bytes]]:
        records: list[Record] = []
        parts: list[bytes] = []
        offset = 0
        for path, info in batch:
            member = Member(path, info)
            body = self._body(member, path, info)
            header = member.local()
            records.append((member.name, member.central(), offset))
            parts += (header, body)
            offset += len(header) + len(body)
        return records, parts

    def _body(self, member: Member, path: str, info: os.stat_result) -> bytes:
        if stat.S_ISDIR(info.st_mode):
            return b""
        place = os.path.join(self._root, os.fsencode(path))
        try:
            data = os.readlink(place) if stat.S_ISLNK(info.st_mode) else read_small(place, info.st_size)
        except OSError as error:
            raise ArchiveError(f"{path}: {error.strerror}") from error
        member.size = member.compressed = len(data)
        member.crc = isal_zlib.crc32(data)
        if self._compress is None or len(data) < 2 or not stat.S_ISREG(info.st_mode):
            return data
        smaller = self._compress(data)
        if len(smaller) >= len(data):
            return data
        member.method = self._method
        member.compressed = len(smaller)
        return smaller


def read_small(path: bytes, size: int) -> bytes:
    """Up to `size` bytes of a file: what it held when it was chosen, even when it is growing now."""
    # without O_NONBLOCK a path that has become a pipe meanwhile would wait for its writer for ever
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        data = os.read(fd, size)
        while len(data) < size and (more := os.read(fd, size - len(data))):
            data += more
        return data
    finally:
        os.close(fd)


def _piece_body(fd: int, size: int, member: Member, level: str, workers: int) -> Body:
    from pyrunner.archive.deflate import DEFLATE_END, Stretches
    from pyrunner.archive.pieces import in_order

    stored = member.method == STORED
    stretches = Stretches(fd, size, "" if stored else level)
    lengths: list[int] = []
    for done in in_order(stretches.pack, stretches.count, workers):
        member.crc = isal_zlib.crc32_combine(member.crc, done.crc, done.length)
        member.size += done.length
        lengths += map(len, done.pieces)
        body = b"".join(done.pieces)
        member.compressed += len(body)
        yield body
    if stored:
        return b""
    member.compressed += len(DEFLATE_END)
    yield DEFLATE_END
    # a file that has shrunk meanwhile may have short pieces in its midst
    return zip_format.pieces_field(stretches.piece, lengths) if member.size == size else b""


def _zstd_body(fd: int, size: int, member: Member, level: str, workers: int) -> Body:
    import zstandard

    maker = zstandard.ZstdCompressor(level=zstd_level(level), threads=workers).compressobj(size=-1)
    while member.size < size and (data := os.pread(fd, min(_ZSTD_PIECE, size - member.size), member.size)):
        member.crc = isal_zlib.crc32(data, member.crc)
        member.size += len(data)
        if chunk := maker.compress(data):
            member.compressed += len(chunk)
            yield chunk
    chunk = maker.flush()
    member.compressed += len(chunk)
    yield chunk
    return b""
