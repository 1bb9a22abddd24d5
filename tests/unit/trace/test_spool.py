"""Where a log waits."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrunner.job.trace import spool as spool_module
from pyrunner.job.trace.spool import IN_MEMORY, Spool


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.binary(max_size=40_000), max_size=8), st.integers(0, 100_000), st.integers(1, 200_000), st.booleans()
)
def test_reads_what_was_appended_anywhere(
    tmp_path: Path, pieces: list[bytes], start: int, length: int, named: bool
) -> None:
    spool = Spool(str(tmp_path) if named else None)
    for piece in pieces:
        spool.append(piece)
    whole = b"".join(pieces)
    assert spool.read(start, length) == whole[start : start + length]
    assert spool.size == len(whole)
    assert spool.checksum == f"crc32:{zlib.crc32(whole):08x}"
    spool.close()
    spool.close()
    assert list(tmp_path.iterdir()) == []


def descriptors() -> set[str]:
    links = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.add(str(entry.readlink()))
    return links


@pytest.mark.parametrize("anonymous", [True, False])
def test_long_log_is_in_a_file_without_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, anonymous: bool) -> None:
    if not anonymous:
        monkeypatch.delattr(spool_module.os, "O_TMPFILE")
    spool = Spool(str(tmp_path))
    spool.append(b"x" * IN_MEMORY)
    assert not any(link.startswith(str(tmp_path)) for link in descriptors())
    spool.append(b"x")
    assert any(link.startswith(str(tmp_path)) for link in descriptors())
    assert list(tmp_path.iterdir()) == [], "what has a name outlives a killed process"
    spool.close()


@pytest.mark.parametrize("size", [0, 10, IN_MEMORY, 5 * IN_MEMORY])
@pytest.mark.parametrize("place", ["same file system", "another file system", "broken disk"])
def test_saved_log_is_whole_and_for_its_owner_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, place: str
) -> None:
    content = os.urandom(size)
    spool = Spool(str(tmp_path))
    spool.append(content)
    if place == "another file system":
        monkeypatch.setattr(spool_module.os, "link", refuse(errno.EXDEV))
    elif place == "broken disk":
        with monkeypatch.context() as patch:
            patch.setattr(spool_module.os, "pwrite", refuse(errno.ENOSPC))
            spool.append(b"more" * IN_MEMORY)
            content += b"more" * IN_MEMORY
    spool.save_as(str(tmp_path / "saved"))
    assert (tmp_path / "saved").read_bytes() == content
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o600
    assert spool.read(0, len(content) + 1) == content, "the log can still be sent from here"
    spool.close()
    assert (tmp_path / "saved").read_bytes() == content


def test_saved_log_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "saved").write_text("other")
    for size in (1, 2 * IN_MEMORY):
        spool = Spool(str(tmp_path))
        spool.append(b"x" * size)
        with pytest.raises(FileExistsError):
            spool.save_as(str(tmp_path / "saved"))
        spool.close()
    assert (tmp_path / "saved").read_text() == "other"


def refuse(number: int) -> Callable[..., int]:
    def call(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return call


def test_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool()
    spool.append(b"a" * (IN_MEMORY + 1))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(spool_module.os, "pwrite", full)
        spool.append(b"b" * 10)
    spool.append(b"c" * 10)
    assert spool.read(IN_MEMORY - 1, 100) == b"aa" + b"b" * 10 + b"c" * 10
    assert [record.message for record in caplog.records] == ["Job log cannot be spooled to disk, keeping it in memory"]
    spool.close()


def test_unusable_directory_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(str(tmp_path / "missing"))
    spool.append(b"x" * (2 * IN_MEMORY))
    assert len(spool.read(0, 10 * IN_MEMORY)) == 2 * IN_MEMORY
    assert len(caplog.records) == 1
    spool.close()
