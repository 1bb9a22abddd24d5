"""What is kept is sealed: readable with the same key only, and the key is made whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.store.seal import KEY_BYTES, Seal, SealError


def test_opens_what_another_process_sealed_and_shows_nothing_of_it(tmp_path: Path) -> None:
    sealed = Seal(str(tmp_path / "key")).seal(b"glcbt-secret", b"context")
    assert b"secret" not in sealed
    assert Seal(str(tmp_path / "key")).open(sealed, b"context") == b"glcbt-secret"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_same_text_is_sealed_differently_each_time(tmp_path: Path) -> None:
    seal = Seal(str(tmp_path / "key"))
    assert seal.seal(b"text", b"") != seal.seal(b"text", b"")


@given(st.integers(0, 39), st.integers(1, 255))
def test_any_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, place: int, change: int) -> None:
    seal = Seal(str(tmp_path_factory.mktemp("seal") / "key"))
    sealed = bytearray(seal.seal(b"twelve bytes", b"context"))
    sealed[place % len(sealed)] ^= change
    with pytest.raises(SealError):
        seal.open(bytes(sealed), b"context")


def test_another_key_another_context_or_nothing_is_one_clear_error(tmp_path: Path) -> None:
    sealed = Seal(str(tmp_path / "key")).seal(b"text", b"context")
    for key, content, context in (
        ("other", sealed, b"context"),
        ("key", sealed, b"other"),
        ("key", b"", b"context"),
        ("key", sealed[:20], b"context"),
    ):
        with pytest.raises(SealError, match="damaged, or sealed with another key than"):
            Seal(str(tmp_path / key)).open(content, context)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * (KEY_BYTES + 1)])
def test_file_that_is_no_key_is_never_used_nor_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(SealError, match=r"key: not a key: 32 bytes expected"):
        Seal(str(tmp_path / "key")).seal(b"text", b"")
    assert (tmp_path / "key").read_bytes() == content


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    for attempt in range(20):
        path = str(tmp_path / f"key{attempt}")
        start = threading.Barrier(4)
        sealed: list[bytes] = []

        def seal(path: str = path, start: threading.Barrier = start, sealed: list[bytes] = sealed) -> None:
            one = Seal(path)
            start.wait()
            sealed.append(one.seal(b"text", b""))

        threads = [threading.Thread(target=seal) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [Seal(path).open(one, b"") for one in sealed] == [b"text"] * 4
    assert len(list(tmp_path.iterdir())) == 20


def test_cipher_is_only_loaded_by_those_who_seal() -> None:
    code = "import sys, pyrunner.manager.service; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ)).returncode == 0
