"""Extraction by what a file is, not by what it is called."""

from __future__ import annotations

import os

from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.targets import Target

_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"


def extract(path: str, root: str) -> int:
    """Extract the archive at `path` into the directory `root`; returns the number of entries.

    Formats by their first bytes: tar in zstd, else zip (stored, deflate, zstd). Names that are absolute, climb with
    ``..`` or pass through a link that leads out of `root` are refused before anything is written.

    Raises:
        FileNotFoundError: no such archive.
        ArchiveError: not an archive, cut off, damaged, unsafe, or a file cannot be written.
    """
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return extract_open(fd, root)
    finally:
        os.close(fd)


def extract_open(fd: int, root: str) -> int:
    """As `extract`, from an open file."""
    magic = os.pread(fd, 4, 0)
    target = Target(root)
    if magic == _ZSTD:
        from pyrunner.archive.tar_zstd import extract_tar_zstd

        return extract_tar_zstd(fd, target)
    if magic.startswith(_GZIP):
        raise ArchiveError("gzip archives cannot be extracted")
    from pyrunner.archive.zip_extract import extract_zip

    return extract_zip(fd, target)
