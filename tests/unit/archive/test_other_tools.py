"""Archives in both directions between us and the tools that people have."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest
from archive_tree import facts, make_tree, pack

from pyrunner.archive.extract import extract
from pyrunner.archive.levels import LEVELS

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
#: Command that tests an archive, and the formats it knows.
CHECKS = {
    "unzip": (["unzip", "-tqq"], ("zip",)),
    "zip": (["zip", "-Tqq"], ("zip",)),
    "7zz": (["7zz", "t", "-bso0", "-bsp0"], ("zip", "zipzstd", "tarzstd", "gzip")),
    "zstd": (["zstd", "-tq"], ("tarzstd",)),
    "gzip": (["gzip", "-tq"], ("gzip",)),
}
LARGE = b"some text that repeats, with numbers 0123456789\n" * 100_000


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")


def run(words: list[str], directory: Path) -> None:
    done = subprocess.run(words, cwd=directory, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode("utf-8", "replace")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    source = tmp_path / "src"
    make_tree(source)
    return source


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Regular files only, one of them large."""
    source = tmp_path / "files"
    source.mkdir()
    (source / "a.xml").write_bytes(b"<report/>" * 1000)
    (source / "empty").write_bytes(b"")
    (source / "large").write_bytes(LARGE + random.Random(7).randbytes(2_500_000))  # noqa: S311
    return source


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("tool", "form"), [(tool, form) for tool, (_, forms) in CHECKS.items() for form in forms])
def test_other_tools_find_our_archives_whole(files: Path, tmp_path: Path, tool: str, form: str, level: str) -> None:
    need(tool)
    name = {"zip": "o.zip", "zipzstd": "o.zip", "tarzstd": "o.tar.zst", "gzip": "o.gz"}[form]
    pack(files, tmp_path / name, form, level)
    run([*CHECKS[tool][0], name], tmp_path)


@pytest.mark.parametrize("level", LEVELS)
def test_gunzip_reads_all_members(files: Path, tmp_path: Path, level: str) -> None:
    need("gunzip")
    pack(files, tmp_path / "o.gz", "gzip", level)
    done = subprocess.run(["gunzip", "-c", "o.gz"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"".join((files / name).read_bytes() for name in ("a.xml", "empty", "large"))


@pytest.mark.parametrize("form", ["zip", "zipzstd"])
def test_7zip_brings_it_back(tree: Path, tmp_path: Path, form: str) -> None:
    need("7zz")
    (tree / os.fsdecode(b"not utf-8 \xff\xfe")).unlink()
    for link in ("broken", "a/up"):
        # it refuses links that lead out of the target
        (tree / link).unlink()
    pack(tree, tmp_path / "o.zip", form)
    (tmp_path / "out").mkdir()
    run(["7zz", "x", "-bso0", "-bsp0", "-snld", "../o.zip"], tmp_path / "out")
    # times of directories and links are no strength of it
    before, after = facts(tree), facts(tmp_path / "out")
    for name, fact in before.items():
        assert (after[name][0], after[name][2]) == (fact[0], fact[2])
        assert not stat.S_ISREG(fact[0]) or after[name][1] == fact[1]


@pytest.mark.parametrize(
    "words",
    [
        ["zip", "-qry", "../o.zip", "."],
        ["zip", "-qry0", "../o.zip", "."],
        ["zip", "-qry9", "../o.zip", "."],
        ["7zz", "a", "-bso0", "-bsp0", "-snl", "../o.zip", "."],
    ],
    ids=["zip", "zip -0", "zip -9", "7zz"],
)
def test_what_other_tools_zip(tree: Path, tmp_path: Path, words: list[str]) -> None:
    need(words[0])
    (tree / os.fsdecode(b"not utf-8 \xff\xfe")).unlink()
    run(words, tree)
    (tmp_path / "out").mkdir()
    extract(str(tmp_path / "o.zip"), str(tmp_path / "out"))
    before, after = facts(tree), facts(tmp_path / "out")
    assert before.keys() == after.keys()
    for name, fact in before.items():
        assert (after[name][0], after[name][2]) == (fact[0], fact[2])


def test_what_tar_packs_with_zstd(tree: Path, tmp_path: Path) -> None:
    need("zstd")
    run(["tar", "--zstd", "-cf", "../o.tar.zst", "."], tree)
    (tmp_path / "out").mkdir()
    extract(str(tmp_path / "o.tar.zst"), str(tmp_path / "out"))
    assert facts(tmp_path / "out") == facts(tree)


def test_tar_unpacks_ours(tree: Path, tmp_path: Path) -> None:
    need("zstd")
    pack(tree, tmp_path / "o.tar.zst", "tarzstd")
    (tmp_path / "out").mkdir()
    run(["tar", "--zstd", "-xpf", "../o.tar.zst"], tmp_path / "out")
    assert facts(tmp_path / "out") == facts(tree)


def test_a_large_stream_without_our_list_of_pieces(tmp_path: Path) -> None:
    content = LARGE + random.Random(8).randbytes(3_000_000) + LARGE  # noqa: S311
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", content)
    (tmp_path / "out").mkdir()
    extract(str(tmp_path / "o.zip"), str(tmp_path / "out"))
    assert (tmp_path / "out/large").read_bytes() == content


def test_python_and_unzip_agree_that_dense_content_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    noise = random.Random(9).randbytes(5_000_000)  # noqa: S311
    (tmp_path / "src/video").write_bytes(noise)
    archive = pack(tmp_path / "src", tmp_path / "o.zip")
    assert archive.stat().st_size < len(noise) * 1.001
    with zipfile.ZipFile(archive) as read:
        assert read.read("video") == noise
