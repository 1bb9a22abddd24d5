"""Trees of files to archive, and how two trees are compared."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

from pyrunner.archive.selection import Selection
from pyrunner.archive.write import archive_chunks, write_archive

#: What an archive must bring back of an entry: kind and permissions, time in seconds, content or link.
Facts = tuple[int, int, bytes]


def make_tree(root: Path) -> None:
    """One of everything: modes, times, links, empty things, large files, long and odd names."""
    (root / "a/b").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o700)
    (root / "a/script").write_bytes(b"#!/bin/sh\n" + b"echo hello\n" * 200)
    (root / "a/script").chmod(0o751)
    (root / "a/b/nothing").write_bytes(b"")
    (root / "a/one").write_bytes(b"x")
    (root / "a/secret").write_bytes(b"s" * 100)
    (root / "a/secret").chmod(0o400)
    (root / "a/noise").write_bytes(random.Random(1).randbytes(5000))  # noqa: S311
    (root / "large.txt").write_bytes(b"all work and no play\n" * 250_000)
    (root / "large.bin").write_bytes(random.Random(2).randbytes(3_500_001))  # noqa: S311
    (root / ("long" * 60)).write_bytes(b"long")
    (root / "näme €").write_bytes(b"utf-8")
    with open(os.path.join(os.fsencode(root), b"not utf-8 \xff\xfe"), "wb") as file:
        file.write(b"bytes")
    (root / "link").symlink_to("a/script")
    (root / "broken").symlink_to("/no/such/file")
    (root / "a/up").symlink_to("../empty")
    for path, moment in (("a/script", 1_000_000_001), ("a/b", 1_234_567_890), ("empty", 86_400), ("a", 999_999_999)):
        os.utime(root / path, (moment, moment))
    os.utime(root / "link", (1_100_000_000, 1_100_000_000), follow_symlinks=False)


def facts(root: Path) -> dict[bytes, Facts]:
    """Everything below `root`."""
    found: dict[bytes, Facts] = {}
    top = os.fsencode(root)
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            content = b""
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(info.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, top)] = (info.st_mode, int(info.st_mtime), content)
    return found


def everything(root: Path) -> Selection:
    """A selection of all that is below `root`."""
    selection = Selection(str(root))
    for name in facts(root):
        path = os.fsdecode(name)
        selection.files[path] = os.lstat(root / path)
    return selection


def pack(root: Path, archive: Path, format_name: str = "zip", level: str = "") -> Path:
    """Archive all of `root`."""
    write_archive(str(archive), archive_chunks(everything(root), format_name, level))
    return archive
