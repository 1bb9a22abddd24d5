from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from archive_tree import everything, pack

from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.gzip_write import header_text
from pyrunner.archive.write import archive_chunks


def test_one_member_per_file_in_order(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/b").write_bytes(b"second" * 500_000)
    (tmp_path / "src/a").write_bytes(b"first")
    (tmp_path / "src/c").write_bytes(b"")
    os.utime(tmp_path / "src/a", (1_000_000_000, 1_000_000_000))
    data = pack(tmp_path / "src", tmp_path / "o.gz", "gzip").read_bytes()
    assert gzip.decompress(data) == b"first" + b"second" * 500_000
    assert struct.unpack_from("<2s2BI", data) == (b"\x1f\x8b", 8, 0x18, 1_000_000_000)
    assert data[10:].startswith(b"a\0a\0")
    if shutil.which("gunzip"):
        done = subprocess.run(["gunzip", "-c"], input=data, capture_output=True, check=True)
        assert done.stdout == gzip.decompress(data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("report.xml", b"report.xml"), ("100%", b"e:100%25"), ("ä/x y", b"e:%C3%A4/x%20y"), ("a b", b"a b")],
)
def test_names_that_a_header_cannot_hold_are_escaped(text: str, expected: bytes) -> None:
    assert header_text(text) == expected


def test_directories_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "src/dir").mkdir(parents=True)
    with pytest.raises(ArchiveError, match='the "dir" is not a regular file'):
        archive_chunks(everything(tmp_path / "src"), "gzip")


def test_raw_is_exactly_one_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_bytes(b"content")
    assert pack(tmp_path / "src", tmp_path / "o", "raw").read_bytes() == b"content"
    (tmp_path / "src/b").write_bytes(b"")
    with pytest.raises(ArchiveError, match="only one file can be sent as raw"):
        archive_chunks(everything(tmp_path / "src"), "raw")
