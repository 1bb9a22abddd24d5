from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from archive_tree import facts, make_tree, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrunner.archive.errors import ArchiveError, UnsafeEntryError
from pyrunner.archive.extract import extract

FORMATS = [("zip", ""), ("zip", "fastest"), ("zip", "slowest"), ("zipzstd", ""), ("tarzstd", ""), ("tarzstd", "fast")]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize(("format_name", "level"), FORMATS)
def test_everything_comes_back(tmp_path: Path, out: Path, format_name: str, level: str) -> None:
    make_tree(tmp_path / "src")
    archive = pack(tmp_path / "src", tmp_path / "archive", format_name, level)
    assert extract(str(archive), str(out)) == len(facts(tmp_path / "src"))
    assert facts(out) == facts(tmp_path / "src")


@pytest.mark.parametrize(("format_name", "level"), FORMATS)
def test_it_replaces_what_is_there(tmp_path: Path, out: Path, format_name: str, level: str) -> None:
    make_tree(tmp_path / "src")
    archive = pack(tmp_path / "src", tmp_path / "archive", format_name, level)
    extract(str(archive), str(out))
    (out / "a/script").chmod(0o444)
    (out / "large.txt").write_text("changed")
    (out / "link").unlink()
    (out / "link").mkdir()
    (out / "a/one").unlink()
    (out / "a/one").symlink_to("script")
    extract(str(archive), str(out))
    assert facts(out) == facts(tmp_path / "src")


def test_many_files_over_several_processes(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "src"
    for number in range(600):
        (source / f"{number % 7}").mkdir(parents=True, exist_ok=True)
        (source / f"{number % 7}/{number}").write_bytes(b"%d" % number * number)
    archive = pack(source, tmp_path / "archive")
    extract(str(archive), str(out))
    assert facts(out) == facts(source)


@pytest.mark.skipif(shutil.which("zip") is None, reason="no zip")
def test_what_info_zip_makes(tmp_path: Path, out: Path) -> None:
    make_tree(tmp_path / "src")
    subprocess.run(["zip", "-qry", "../archive.zip", "."], cwd=tmp_path / "src", check=True)
    extract(str(tmp_path / "archive.zip"), str(out))
    assert facts(out) == facts(tmp_path / "src")


def test_what_python_makes(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/small", "text" * 50)
        archive.writestr("large", b"0123456789" * 500_000)
        archive.mkdir("empty")
    extract(str(tmp_path / "o.zip"), str(out))
    assert (out / "d/small").read_text() == "text" * 50
    assert (out / "large").read_bytes() == b"0123456789" * 500_000
    assert (out / "empty").is_dir()


def test_something_before_the_archive_is_skipped(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        archive.writestr("file", "text")
    (tmp_path / "o.zip").write_bytes(b"#!/bin/sh\nexit\n" + (tmp_path / "o.zip").read_bytes())
    extract(str(tmp_path / "o.zip"), str(out))
    assert (out / "file").read_text() == "text"


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_what_tar_makes(tmp_path: Path, out: Path, form: int) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=form) as archive:
        for name in ("dir/file", "x" * 90, "deep/" * 30 + "y" * 60):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = 3, 1_000_000_000
            archive.addfile(info, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("same")
        link.type, link.linkname = tarfile.LNKTYPE, "dir/file"
        archive.addfile(link)
    (tmp_path / "o.tar.zst").write_bytes(zstandard.compress(plain.getvalue()))
    extract(str(tmp_path / "o.tar.zst"), str(out))
    assert (out / ("deep/" * 30 + "y" * 60)).read_bytes() == b"abc"
    assert (out / ("x" * 90)).read_bytes() == b"abc"
    assert (out / "same").stat().st_ino == (out / "dir/file").stat().st_ino


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd")
def test_tar_and_zstd_read_ours(tmp_path: Path, out: Path) -> None:
    make_tree(tmp_path / "src")
    pack(tmp_path / "src", tmp_path / "o.tar.zst", "tarzstd")
    subprocess.run("zstd -dcq ../o.tar.zst | tar xpf -", shell=True, cwd=out, check=True)  # noqa: S602
    assert facts(out) == facts(tmp_path / "src")


def test_gzip_is_refused(tmp_path: Path, out: Path) -> None:
    (tmp_path / "o.gz").write_bytes(b"\x1f\x8b\x08\x00rest")
    with pytest.raises(ArchiveError, match="gzip archives cannot be extracted"):
        extract(str(tmp_path / "o.gz"), str(out))


# -- names that would leave the target ---------------------------------------------------------------------------------


def _zip_of(path: Path, names: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in names.items():
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return path


def _tar_of(path: Path, names: dict[str, bytes]) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    path.write_bytes(zstandard.compress(plain.getvalue()))
    return path


MAKERS = [_zip_of, _tar_of]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["/etc/evil", "../evil", "a/../../evil", "a/..", "..", "a/b/../../../evil"])
def test_a_name_that_leads_out_stops_everything(
    tmp_path: Path, out: Path, make: Callable[[Path, dict[str, bytes]], Path], name: str
) -> None:
    archive = make(tmp_path / "archive", {"good": b"1", name: b"2"})
    with pytest.raises(UnsafeEntryError, match="cannot be extracted outside of chroot"):
        extract(str(archive), str(out))
    assert list(out.iterdir()) == []
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("make", MAKERS)
def test_a_link_in_the_target_that_leads_out_is_not_followed(
    tmp_path: Path, out: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / "door").symlink_to(tmp_path / "elsewhere")
    archive = make(tmp_path / "archive", {"door/evil": b"1"})
    with pytest.raises(UnsafeEntryError):
        extract(str(archive), str(out))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("make", MAKERS)
def test_a_link_in_the_target_that_stays_inside_is_used(
    tmp_path: Path, out: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    (out / "real").mkdir()
    (out / "alias").symlink_to("real")
    extract(str(make(tmp_path / "archive", {"alias/file": b"1"})), str(out))
    assert (out / "real/file").read_bytes() == b"1"


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_in_place_of_a_link_does_not_write_through_it(
    tmp_path: Path, out: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    (tmp_path / "victim").write_text("whole")
    (out / "file").symlink_to(tmp_path / "victim")
    extract(str(make(tmp_path / "archive", {"file": b"new"})), str(out))
    assert (tmp_path / "victim").read_text() == "whole"
    assert (out / "file").read_text() == "new"
    assert not (out / "file").is_symlink()


def test_a_link_of_the_archive_cannot_redirect_its_files(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        link = zipfile.ZipInfo("door")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(tmp_path))
        archive.writestr("door/evil", "x")
    with pytest.raises(ArchiveError, match="door is both a file and a directory"):
        extract(str(tmp_path / "o.zip"), str(out))
    assert not (tmp_path / "evil").exists()


def test_a_directory_entry_does_not_change_what_a_link_leads_to(tmp_path: Path, out: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (out / "door").symlink_to(tmp_path / "elsewhere")
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        archive.mkdir("door", mode=0o777)
    with pytest.raises(UnsafeEntryError):
        extract(str(tmp_path / "o.zip"), str(out))
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o700


@pytest.mark.parametrize("target", ["/etc/passwd", "../victim", "missing"])
def test_a_hard_link_to_anything_else_than_the_archive_is_refused(tmp_path: Path, out: Path, target: str) -> None:
    (tmp_path / "victim").write_text("v")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.LNKTYPE, target
        archive.addfile(link)
    (tmp_path / "o").write_bytes(zstandard.compress(plain.getvalue()))
    with pytest.raises(UnsafeEntryError):
        extract(str(tmp_path / "o"), str(out))
    assert list(out.iterdir()) == []


def test_links_themselves_may_point_anywhere(tmp_path: Path, out: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/python").symlink_to("/usr/bin/python3")
    extract(str(pack(tmp_path / "src", tmp_path / "o.zip")), str(out))
    assert os.readlink(out / "python") == "/usr/bin/python3"


def test_devices_in_a_tar_are_refused(tmp_path: Path, out: Path) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        device = tarfile.TarInfo("null")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    (tmp_path / "o").write_bytes(zstandard.compress(plain.getvalue()))
    with pytest.raises(ArchiveError, match="not supported"):
        extract(str(tmp_path / "o"), str(out))


def test_set_user_id_is_not_taken_over(tmp_path: Path, out: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/tool").touch()
    (tmp_path / "src/tool").chmod(0o4755)
    extract(str(pack(tmp_path / "src", tmp_path / "o.zip")), str(out))
    assert stat.S_IMODE((out / "tool").stat().st_mode) == 0o755


def test_of_equal_names_the_last_wins(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        archive.writestr("file", "first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("file", "second")
    extract(str(tmp_path / "o.zip"), str(out))
    assert (out / "file").read_text() == "second"


# -- cut and damaged archives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format_name", "level"), FORMATS)
@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_cut_archive_changes_nothing(tmp_path: Path, out: Path, format_name: str, level: str, part: float) -> None:
    make_tree(tmp_path / "src")
    archive = pack(tmp_path / "src", tmp_path / "archive", format_name, level)
    extract(str(archive), str(out))
    (out / "a/one").write_text("mine")
    before = facts(out)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ArchiveError):
        extract(str(archive), str(out))
    assert facts(out) == before


@pytest.mark.parametrize("level", ["fastest", "default"])
@pytest.mark.parametrize("name", ["small", "large"])
def test_a_damaged_entry_leaves_the_earlier_file_whole(tmp_path: Path, out: Path, level: str, name: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/small").write_bytes(b"0123456789" * 100)
    (tmp_path / "src/large").write_bytes(b"abcdefghij" * 400_000)
    archive = pack(tmp_path / "src", tmp_path / "o.zip", "zip", level)
    (out / name).write_text("earlier")
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as reader:
        at = reader.getinfo(name).header_offset + 30 + len(name) + 24 + 4
    data[at] ^= 0x55
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match=name):
        extract(str(archive), str(out))
    assert (out / name).read_text() == "earlier"
    assert not [path for path in out.iterdir() if path.name.startswith(".archive_")]


def test_a_bomb_of_overlapping_entries_is_refused(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        archive.writestr("a", "x" * 1000)
        archive.writestr("b", "x" * 1000)
    data = bytearray((tmp_path / "o.zip").read_bytes())
    second = data.rfind(b"PK\x01\x02")
    data[second + 42 : second + 46] = bytes(4)
    (tmp_path / "o.zip").write_bytes(data)
    with pytest.raises(ArchiveError, match="overlaps"):
        extract(str(tmp_path / "o.zip"), str(out))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_an_entry_that_holds_more_than_it_says_is_refused(tmp_path: Path, out: Path, size: int) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(50_000_000))
    data = bytearray((tmp_path / "o.zip").read_bytes())
    record = data.rfind(b"PK\x01\x02")
    data[record + 24 : record + 28] = struct.pack("<I", size)
    (tmp_path / "o.zip").write_bytes(data)
    with pytest.raises(ArchiveError, match="bomb"):
        extract(str(tmp_path / "o.zip"), str(out))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_zstd_bomb_takes_no_memory(tmp_path: Path, out: Path, size: int) -> None:
    maker = zstandard.ZstdCompressor().compressobj()
    packed = b"".join(maker.compress(bytes(1 << 24)) for _ in range(32)) + maker.flush()
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        archive.writestr("bomb", packed)
    data = bytearray((tmp_path / "o.zip").read_bytes())
    record = data.rfind(b"PK\x01\x02")
    data[record + 10 : record + 12] = struct.pack("<H", 93)
    data[record + 24 : record + 28] = struct.pack("<I", size)
    (tmp_path / "o.zip").write_bytes(data)
    code = (
        "import sys; from pyrunner.archive.extract import extract\n"
        "try: extract(sys.argv[1], '.')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
        # not ru_maxrss: it begins with what the process had that started this one
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "o.zip")]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=True)
    line, memory = done.stdout.splitlines()
    assert line.startswith("ArchiveError zip: bomb: ")
    assert int(memory) < 100_000
    assert list(out.iterdir()) == []


def test_devices_in_a_zip_are_left_out(tmp_path: Path, out: Path, caplog: pytest.LogCaptureFixture) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w") as archive:
        info = zipfile.ZipInfo("null")
        info.create_system, info.external_attr = 3, (stat.S_IFCHR | 0o666) << 16
        archive.writestr(info, b"")
        archive.writestr("file", "text")
    extract(str(tmp_path / "o.zip"), str(out))
    assert [path.name for path in out.iterdir()] == ["file"]
    assert caplog.messages == ["File ignored: null"]


@pytest.mark.parametrize("change", [("piece", 0), ("piece", 1 << 30), ("length", 5), ("length", 1 << 31)])
def test_a_false_list_of_pieces_does_no_harm(tmp_path: Path, out: Path, change: tuple[str, int]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/large").write_bytes(b"abcdefghij" * 400_000)
    archive = pack(tmp_path / "src", tmp_path / "o.zip")
    data = bytearray(archive.read_bytes())
    at = data.rfind(b"\x70\x79")
    place = at + (4 if change[0] == "piece" else 8)
    data[place : place + 4] = struct.pack("<I", change[1])
    archive.write_bytes(data)
    with contextlib.suppress(ArchiveError):
        extract(str(archive), str(out))
        assert (out / "large").read_bytes() == b"abcdefghij" * 400_000
    assert [path.name for path in out.iterdir()] in ([], ["large"])


def test_encrypted_and_unknown_methods_are_named(tmp_path: Path, out: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("file", "text" * 100)
    with pytest.raises(ArchiveError, match="file: unsupported compression method 12"):
        extract(str(tmp_path / "o.zip"), str(out))


def _small_archives(tmp_path: Path) -> list[bytes]:
    source = tmp_path / "fuzz-src"
    (source / "d").mkdir(parents=True)
    (source / "d/file").write_bytes(b"text " * 40)
    (source / "empty").write_bytes(b"")
    (source / "link").symlink_to("d/file")
    return [pack(source, tmp_path / "fuzz", format_name).read_bytes() for format_name in ("zip", "zipzstd", "tarzstd")]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return _small_archives(tmp_path_factory.mktemp("samples"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(seed=st.integers(0, 1 << 32), which=st.integers(0, 2))
def test_a_mutated_archive_is_extracted_or_refused_and_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, samples: list[bytes], seed: int, which: int
) -> None:
    rng = random.Random(seed)  # noqa: S311
    data = bytearray(samples[which])
    if which == 2:
        data = bytearray(zstandard.decompress(data, max_output_size=1 << 20))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data))
        action = rng.randrange(4)
        if action == 0:
            data[at] = rng.randrange(256)
        elif action == 1:
            del data[at : at + rng.randrange(1, 20)]
        elif action == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        else:
            data[at : at + 4] = b"\xff\xff\xff\xff"
    content = zstandard.compress(bytes(data)) if which == 2 else bytes(data)
    base = tmp_path_factory.mktemp("fuzz")
    (base / "archive").write_bytes(content)
    (base / "out").mkdir()
    with contextlib.suppress(ArchiveError):
        extract(str(base / "archive"), str(base / "out"))
    assert sorted(path.name for path in base.iterdir()) == ["archive", "out"]


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=400), magic=st.sampled_from([b"", b"\x28\xb5\x2f\xfd", b"PK\x05\x06", b"PK\x03\x04"]))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes, magic: bytes) -> None:
    base = tmp_path_factory.mktemp("any")
    (base / "archive").write_bytes(magic + data)
    with contextlib.suppress(ArchiveError):
        extract(str(base / "archive"), str(base))


NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name)
TREES = st.dictionaries(
    NAMES.filter(lambda name: name not in (b".", b"..")),
    st.tuples(st.binary(max_size=300), st.integers(0, 0o777), st.integers(0, 0xFFFFFFFF)),
    max_size=8,
)


@settings(deadline=None, max_examples=80)
@given(tree=TREES, which=st.sampled_from(["zip", "zipzstd", "tarzstd"]))
def test_any_names_modes_and_times_survive(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[bytes, tuple[bytes, int, int]],
    which: str,
) -> None:
    base = tmp_path_factory.mktemp("any-tree")
    (base / "src").mkdir()
    (base / "out").mkdir()
    for name, (content, mode, moment) in tree.items():
        path = os.path.join(os.fsencode(base / "src"), name)
        with open(path, "wb") as file:
            file.write(content)
        os.utime(path, (moment, moment))
        os.chmod(path, mode | 0o400)
    if not tree:
        return
    extract(str(pack(base / "src", base / "archive", which)), str(base / "out"))
    assert facts(base / "out") == facts(base / "src")


def test_deflate_pieces_join_to_one_stream() -> None:
    from pyrunner.archive.deflate import DEFLATE_END, deflate_block
    from pyrunner.archive.levels import LEVELS

    pieces = [b"a" * 200_000, random.Random(3).randbytes(200_000), b"", b"tail"]  # noqa: S311
    for level in LEVELS[1:]:
        stream = b"".join(deflate_block(level, piece) for piece in pieces) + DEFLATE_END
        assert zlib.decompress(stream, -15) == b"".join(pieces)
