"""Reading growing logs."""

from __future__ import annotations

import os
from pathlib import Path

from pyrunner.executors.tail import PUNCH_STEP, Tail


def test_goes_on_at_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    first = Tail(str(path))
    assert first.read(4) == b"0123"
    first.close()
    second = Tail(str(path), first.offset)
    assert second.read() == b"456789"
    assert second.read() == b""
    with path.open("ab") as log:
        log.write(b"more")
    assert second.read() == b"more"
    assert second.size == second.offset == 14
    second.close()
    second.close()


def test_read_bytes_are_given_back_to_the_disk_and_offsets_stay(tmp_path: Path) -> None:
    path = tmp_path / "log"
    total = 2 * PUNCH_STEP + 5000
    path.write_bytes(os.urandom(1 << 20) * (total // (1 << 20)) + b"e" * (total % (1 << 20)))
    before = path.stat().st_blocks
    tail = Tail(str(path))
    while data := tail.read():
        last = data
    assert tail.offset == total
    assert last.endswith(b"e")
    assert path.stat().st_size == total
    assert path.stat().st_blocks < before // 4
    tail.close()


def test_without_punching_everything_stays(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (PUNCH_STEP + 100))
    before = path.stat().st_blocks
    tail = Tail(str(path), punch=False)
    while tail.read():
        pass
    assert path.stat().st_blocks == before
    tail.close()
