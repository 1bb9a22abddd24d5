"""Where a log waits."""

from __future__ import annotations

import errno
import os
import stat
import zlib
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


def test_file_is_for_its_owner_only(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    spool.close()


def test_small_log_never_touches_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spool_module.tempfile, "tempdir", str(tmp_path))
    spool = Spool()
    spool.append(b"x" * IN_MEMORY)
    assert list(tmp_path.iterdir()) == []
    spool.append(b"x")
    assert len(list(tmp_path.iterdir())) == 1
    spool.close()


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
