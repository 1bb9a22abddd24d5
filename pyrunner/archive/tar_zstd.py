"""tar in zstd: writing, and extracting in two passes so that a cut or hostile archive changes nothing at all."""

from __future__ import annotations

import os
import stat

from pyrunner.archive import tar_format
from pyrunner.archive.errors import ArchiveError, UnsafeEntryError
from pyrunner.archive.levels import zstd_level
from pyrunner.archive.tar_format import HARD_LINK, REGULAR, TarEntry
from pyrunner.archive.workers import worker_count
from pyrunner.archive.zip_write import SMALL, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyrunner.archive.selection import Selection
    from pyrunner.archive.targets import Target

_PIECE = 1 << 18
#: What `zstd --long=27` makes is the largest that other tools read without being told to.
_MOST_OF_WINDOW = 1 << 27


def tar_zstd_chunks(selection: Selection, *, level: str = "default") -> Iterator[bytes]:
    """The bytes of the archive.

    Raises:
        ArchiveError: a file cannot be read.
    """
    import zstandard

    threads = worker_count("FASTZIP_ARCHIVER_CONCURRENCY")
    maker = zstandard.ZstdCompressor(
        level=zstd_level(level), write_checksum=True, threads=threads if threads > 1 else 0
    ).compressobj(size=-1)
    waiting: list[bytes] = []
    size = 0
    for part in _tar_parts(selection):
        waiting.append(part)
        size += len(part)
        if size >= _PIECE:
            if chunk := maker.compress(b"".join(waiting)):
                yield chunk
            waiting.clear()
            size = 0
    yield maker.compress(b"".join(waiting)) + maker.flush()


def _tar_parts(selection: Selection) -> Iterator[bytes]:
    root = os.fsencode(selection.root)
    for path, info in selection.sorted():
        place = os.path.join(root, os.fsencode(path))
        try:
            if stat.S_ISLNK(info.st_mode):
                yield tar_format.header(path, info, os.readlink(place))
            else:
                yield tar_format.header(path, info)
                if stat.S_ISREG(info.st_mode):
                    yield from _data(place, info.st_size)
        except OSError as error:
            raise ArchiveError(f"{path}: {error.strerror}") from error
    yield tar_format.END


def _data(place: bytes, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes, which the header has promised: a file that has shrunk is filled up with zeros."""
    if size <= SMALL:
        data = read_small(place, size)
        yield data + b"\0" * (size - len(data)) + tar_format.padding(size)
        return
    with open(place, "rb", buffering=0) as file:
        left = size
        while left and (data := file.read(min(_PIECE, left))):
            left -= len(data)
            yield data
    while left:
        yield b"\0" * min(left, _PIECE)
        left -= min(left, _PIECE)
    yield tar_format.padding(size)


def extract_tar_zstd(fd: int, target: Target) -> int:
    """Extract the archive behind `fd`; returns the number of entries.

    The first pass reads all of it, so that a cut, damaged or unsafe archive is refused before anything is written; the
    second extracts: files, then links, then modes and times of directories.
    """
    entries = list(_survey(fd))
    _check_links(entries, target)
    target.check(entries)
    target.make_parents(entries)
    latest = {target.clean(entry.name): number for number, entry in enumerate(entries)}
    wanted = set(latest.values())
    for number, (entry, parts) in enumerate(_contents(fd)):
        if number in wanted and entry.kind == REGULAR:
            _write(target, entry, parts)
    last = [entries[number] for number in sorted(wanted)]
    for entry in last:
        if entry.kind == HARD_LINK:
            _link_hard(target, entry)
    for entry in last:
        if stat.S_ISLNK(entry.mode):
            target.write_link(entry, entry.link)
    target.finish_directories(entry for entry in last if stat.S_ISDIR(entry.mode))
    return len(entries)


def _survey(fd: int) -> Iterator[TarEntry]:
    for entry, parts in _contents(fd):
        for _ in parts:
            continue
        yield entry


def _check_links(entries: list[TarEntry], target: Target) -> None:
    """A hard link shares the very file: it may only name one that this archive has brought."""
    files = {target.clean(entry.name) for entry in entries if entry.kind == REGULAR}
    for entry in entries:
        if entry.kind == HARD_LINK and target.clean(entry.link) not in files:
            raise UnsafeEntryError(entry.name, target.shown)


def _write(target: Target, entry: TarEntry, parts: Iterator[bytes]) -> None:
    if entry.size <= SMALL:
        target.write_file(entry, b"".join(parts))
        return
    with target.open_large(entry) as file:
        for part in parts:
            file.write(part)


def _link_hard(target: Target, entry: TarEntry) -> None:
    path = target.path(entry.name)
    try:
        if os.path.lexists(path):
            os.unlink(path)
        os.link(target.path(entry.link), path, follow_symlinks=False)
    except OSError as error:
        raise ArchiveError(f"{tar_format.shown(entry)}: {error.strerror}") from error


def _contents(fd: int) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    """Every entry with its data; what the consumer leaves of the data is skipped."""
    import zstandard

    with (
        open(fd, "rb", closefd=False) as raw,
        zstandard.ZstdDecompressor(max_window_size=_MOST_OF_WINDOW).stream_reader(
            raw, read_across_frames=True, closefd=False
        ) as stream,
    ):
        raw.seek(0)
        try:
            for entry in tar_format.read_entries(stream.read):
                parts = _parts(stream, entry.size)
                yield entry, parts
                for _ in parts:
                    continue
            # what follows the end mark is part of the check: the frame's checksum comes last
            while stream.read(_PIECE):
                continue
        except zstandard.ZstdError as error:
            raise ArchiveError(f"tar: the archive is cut off or damaged: {error}") from error


def _parts(stream: object, size: int) -> Iterator[bytes]:
    left = size
    while left:
        data = stream.read(min(left, _PIECE))  # type: ignore[attr-defined]
        if not data:
            raise ArchiveError("tar: the archive is cut off")
        left -= len(data)
        yield data
    fill = -size % tar_format.BLOCK
    if fill and len(stream.read(fill)) < fill:  # type: ignore[attr-defined]
        raise ArchiveError("tar: the archive is cut off")
