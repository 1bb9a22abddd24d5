"""Archives by format name."""

from __future__ import annotations

import os

from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.levels import level_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyrunner.archive.selection import Selection

#: Format → what follows the base name (facts/cache-artifacts.md 3.1).
SUFFIXES = {"zip": ".zip", "zipzstd": ".zip", "tarzstd": ".tar.zst", "gzip": ".gz", "raw": ""}


def archive_chunks(selection: Selection, format_name: str, level: str = "") -> Iterator[bytes]:
    """The bytes of an archive of the selected files, in chunks of up to some megabytes.

    Args:
        selection: the files, at least one.
        format_name: a key of `SUFFIXES`; empty means ``zip``.
        level: a name of `levels.LEVELS`; empty means ``default``, an unknown one is warned about.

    Raises:
        ArchiveError: unknown format, a file cannot be read, or the format cannot hold the selection.
    """
    name = format_name or "zip"
    if name not in SUFFIXES:
        raise ArchiveError(f'unsupported archive format: "{name}"', hint=f"one of: {', '.join(SUFFIXES)}")
    chosen = level_named(level)
    if name in ("zip", "zipzstd"):
        from pyrunner.archive.zip_format import DEFLATED, ZSTD
        from pyrunner.archive.zip_write import ZipWriter

        return ZipWriter(selection, method=DEFLATED if name == "zip" else ZSTD, level=chosen).chunks()
    if name == "tarzstd":
        from pyrunner.archive.tar_zstd import tar_zstd_chunks

        return tar_zstd_chunks(selection, level=chosen)
    from pyrunner.archive.gzip_write import gzip_chunks, raw_chunks

    return gzip_chunks(selection, level=chosen) if name == "gzip" else raw_chunks(selection)


def _make_private(directory: str) -> None:
    # os.makedirs gives its mode to the last directory only
    if not os.path.isdir(directory):
        _make_private(os.path.dirname(directory) or ".")
        os.makedirs(directory, mode=0o700, exist_ok=True)


def write_archive(path: str, chunks: Iterator[bytes]) -> int:
    """Write an archive under a temporary name beside `path` and put it in place when it is whole.

    Directories are made with mode 0700, the file with 0600. Returns its size in bytes; an earlier archive stays as it
    was when anything fails.

    Raises:
        ArchiveError: there is no room for it.
    """
    from pyrunner.archive.targets import write_all

    directory = os.path.dirname(path) or "."
    _make_private(directory)
    temporary = os.path.join(directory, f"archive_{os.urandom(8).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    size = 0
    try:
        for chunk in chunks:
            try:
                write_all(fd, chunk)
            except OSError as error:
                raise ArchiveError(f"{path}: cannot be written: {error.strerror}") from error
            size += len(chunk)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    return size
