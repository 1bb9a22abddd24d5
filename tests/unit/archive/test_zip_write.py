from __future__ import annotations

import os
import resource
import shutil
import stat
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
from archive_tree import everything, facts, make_tree, pack

from pyrunner.archive import zip_format
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.selection import Selection
from pyrunner.archive.write import archive_chunks, write_archive

LEVELS = ["fastest", "fast", "default", "slow", "slowest"]


@pytest.mark.parametrize("level", LEVELS)
def test_python_reads_it(tmp_path: Path, level: str) -> None:
    make_tree(tmp_path / "src")
    pack(tmp_path / "src", tmp_path / "o.zip", "zip", level)
    with zipfile.ZipFile(tmp_path / "o.zip") as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
        assert [info.orig_filename for info in infos] == sorted(info.orig_filename for info in infos)
        script = archive.getinfo("a/script")
        assert stat.S_IMODE(script.external_attr >> 16) == 0o751
        assert script.create_system == 3
        assert script.compress_type == (zipfile.ZIP_STORED if level == "fastest" else zipfile.ZIP_DEFLATED)
        assert archive.getinfo("a/noise").compress_type == zipfile.ZIP_STORED
        assert archive.read("broken") == b"/no/such/file"
        assert stat.S_ISLNK(archive.getinfo("broken").external_attr >> 16)
        assert archive.getinfo("a/b/").is_dir()


@pytest.mark.skipif(shutil.which("unzip") is None, reason="no unzip")
@pytest.mark.parametrize("level", LEVELS)
def test_unzip_brings_it_back(tmp_path: Path, level: str) -> None:
    make_tree(tmp_path / "src")
    pack(tmp_path / "src", tmp_path / "o.zip", "zip", level)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["unzip", "-q", "../o.zip"], cwd=_made(tmp_path / "out"), capture_output=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = facts(tmp_path / "src"), facts(tmp_path / "out")
    for name in (b"not utf-8 \xff\xfe",):
        # unzip has its own way of showing such names
        before.pop(name)
    assert {name: after.get(name) for name in before if not stat.S_ISLNK(before[name][0])} == {
        name: fact for name, fact in before.items() if not stat.S_ISLNK(fact[0])
    }


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_many_small_files_over_several_processes(tmp_path: Path) -> None:
    source = _made(tmp_path / "src")
    for number in range(700):
        (source / f"{number:03}").write_bytes(b"%d" % number * number)
    pack(source, tmp_path / "o.zip")
    with zipfile.ZipFile(tmp_path / "o.zip") as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 700
        assert archive.read("699") == b"699" * 699


def test_an_unreadable_file_is_named(as_plain_user: Path) -> None:
    source = _made(as_plain_user / "src")
    (source / "locked").touch()
    selection = everything(source)
    (source / "locked").chmod(0)
    with pytest.raises(ArchiveError, match="locked: Permission denied"):
        write_archive(str(as_plain_user / "o.zip"), archive_chunks(selection, "zip"))


@pytest.mark.parametrize("count", [3, 400])
@pytest.mark.parametrize("format_name", ["zip", "zipzstd", "tarzstd", "gzip", "raw"])
def test_a_file_that_vanishes_is_named_and_the_earlier_archive_stays(
    tmp_path: Path, count: int, format_name: str
) -> None:
    source = _made(tmp_path / "src")
    for number in range(count if format_name != "raw" else 1):
        (source / f"{number}").write_bytes(b"x" * 100)
    selection = everything(source)
    (source / "0").unlink()
    (tmp_path / "o").write_text("earlier")
    with pytest.raises(ArchiveError, match="0: No such file or directory"):
        write_archive(str(tmp_path / "o"), archive_chunks(selection, format_name))
    assert (tmp_path / "o").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o", "src"]


@pytest.mark.parametrize("format_name", ["zip", "zipzstd", "tarzstd"])
@pytest.mark.parametrize("size", [1000, 5_000_000])
def test_a_file_that_grows_or_shrinks_does_not_break_the_archive(tmp_path: Path, format_name: str, size: int) -> None:
    from pyrunner.archive.extract import extract

    source = _made(tmp_path / "src")
    (source / "grown").write_bytes(b"a" * size)
    (source / "shrunk").write_bytes(b"b" * size)
    selection = everything(source)
    (source / "grown").write_bytes(b"a" * (size + 500))
    (source / "shrunk").write_bytes(b"b" * (size - 500))
    write_archive(str(tmp_path / "o"), archive_chunks(selection, format_name))
    extract(str(tmp_path / "o"), str(_made(tmp_path / "out")))
    assert (tmp_path / "out/grown").read_bytes().startswith(b"a" * size)
    assert (tmp_path / "out/shrunk").read_bytes().startswith(b"b" * (size - 500))


def test_the_archive_and_its_directories_are_private(tmp_path: Path) -> None:
    source = _made(tmp_path / "src")
    (source / "x").touch()
    pack(source, tmp_path / "new/dirs/o.zip")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new/dirs").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new/dirs/o.zip").stat().st_mode) == 0o600


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match='unsupported archive format: "rar"'):
        archive_chunks(Selection(str(tmp_path)), "rar")


def test_an_unknown_level_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = _made(tmp_path / "src")
    (source / "x").touch()
    pack(source, tmp_path / "o.zip", "zip", "best")
    assert caplog.messages == ['compression level "best" is invalid, falling back to default']


def _record(size: int, compressed: int) -> bytes:
    member = zip_format.Member("file", os.stat_result((stat.S_IFREG | 0o644, 0, 0, 1, 5, 6, 0, 0, 1_000_000_000, 0)))
    member.size, member.compressed = size, compressed
    return member.central()


@pytest.mark.parametrize(
    ("size", "compressed", "offset", "expected"),
    [
        (10, 10, 20, ()),
        (1 << 32, 10, 20, (1 << 32, 10)),
        (0xFFFFFFFF, 10, 20, (0xFFFFFFFF, 10)),
        (10, 10, 1 << 33, (1 << 33,)),
        (1 << 34, 1 << 33, 1 << 35, (1 << 34, 1 << 33, 1 << 35)),
    ],
)
def test_numbers_beyond_four_bytes_go_to_the_zip64_field(
    size: int, compressed: int, offset: int, expected: tuple[int, ...]
) -> None:
    record = zip_format.place(_record(size, compressed), offset)
    name_length, extra_length = struct.unpack_from("<2H", record, 28)
    extra = record[46 + name_length :]
    assert len(extra) == extra_length
    if not expected:
        assert not extra.startswith(b"\x01\x00")
        assert struct.unpack_from("<I", record, 42) == (offset,)
        return
    assert struct.unpack_from(f"<2H{len(expected)}Q", extra) == (1, 8 * len(expected), *expected)
    assert struct.unpack_from("<H", record, 6) == (45,)


@pytest.mark.parametrize("count", [10, 65_535, 70_000])
def test_many_entries_need_the_large_end_record(count: int) -> None:
    end = zip_format.end_of_directory(count, 1000, 2000)
    assert end.startswith(zip_format.END64_MAGIC) == (count >= 65_535)


@pytest.mark.slow
def test_seventy_thousand_entries(tmp_path: Path) -> None:
    source = _made(tmp_path / "src")
    for number in range(70_000):
        (source / f"{number}").touch()
    pack(source, tmp_path / "o.zip")
    with zipfile.ZipFile(tmp_path / "o.zip") as archive:
        assert len(archive.namelist()) == 70_000


@pytest.mark.slow
@pytest.mark.parametrize("level", ["fastest", "fast"])
def test_a_file_beyond_four_gibibytes(tmp_path: Path, level: str) -> None:
    from pyrunner.archive.extract import extract

    source = _made(tmp_path / "src")
    size = (4 << 30) + 4321
    with open(source / "a", "wb") as file:
        file.truncate(size)
    (source / "b").write_text("behind it")
    pack(source, tmp_path / "o.zip", "zip", level)
    with zipfile.ZipFile(tmp_path / "o.zip") as archive:
        assert archive.getinfo("a").file_size == size
        assert archive.read("b") == b"behind it"
    extract(str(tmp_path / "o.zip"), str(_made(tmp_path / "out")))
    assert (tmp_path / "out/a").stat().st_size == size
    assert (tmp_path / "out/b").read_text() == "behind it"


def test_an_archive_that_does_not_fit_is_named_and_the_earlier_one_stays(tmp_path: Path) -> None:
    source = _made(tmp_path / "src")
    (source / "big").write_bytes(os.urandom(200_000))
    selection = everything(source)
    (tmp_path / "o.zip").write_text("earlier")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(ArchiveError, match=r"o\.zip: cannot be written: File too large"):
            write_archive(str(tmp_path / "o.zip"), archive_chunks(selection, "zip"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "o.zip").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.zip", "src"]
