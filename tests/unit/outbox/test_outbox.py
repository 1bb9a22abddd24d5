"""The outbox on disk: what is in it survives, what is delivered is gone, and nobody else can read it."""

from __future__ import annotations

import logging
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrunner.api.wire import Info
from pyrunner.store.letter import Letter, Sender
from pyrunner.store.outbox import Entry, Outbox, state_home

TOKEN = "glcbt-64_very-secret"


def letter_of(job_id: int = 7, trace: bytes = b"the log\n", **changes: object) -> Letter:
    letter = Letter(
        sender=Sender(url="https://user:pass@gitlab.example.com", short_token="abc", name="mine"),
        job_id=job_id,
        job_token=TOKEN,
        info=Info(name="runner", labels={"a": "b"}),
        state="failed",
        failure_reason="script_failure",
        exit_code=3,
        size=len(trace),
        checksum=f"crc32:{zlib.crc32(trace):08x}",
        offset=2,
        decided_at=1000.0 + job_id,
    )
    return msgspec.structs.replace(letter, **changes)


def saving(trace: bytes) -> Callable[[str], object]:
    return lambda path: Path(path).write_bytes(trace)


def put(outbox: Outbox, job_id: int = 7, trace: bytes = b"the log\n") -> Entry:
    return outbox.put(letter_of(job_id, trace), saving(trace))


def died(outbox: Outbox) -> None:
    """Leave everything as a killed process does: only its lock goes."""
    os.close(outbox._own_lock)
    outbox._own, outbox._own_lock = "", -1


def files(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and path.name != ".lock")


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(str(tmp_path), "s_1")
    yield box
    box.close()


def test_next_process_takes_over_letter_and_log(tmp_path: Path, outbox: Outbox) -> None:
    kept = put(outbox)
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    (entry,) = later.adopt()
    assert entry.letter == kept.letter
    assert entry.read(0, 100) == b"the log\n"
    assert entry.read(4, 3) == b"log"
    entry.remove()
    entry.remove()
    later.close()
    assert files(tmp_path) == [".pyrunner_key"]


def test_oldest_verdict_comes_first(tmp_path: Path, outbox: Outbox) -> None:
    for job_id in (5, 3, 9):
        put(outbox, job_id)
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    assert [entry.letter.job_id for entry in later.adopt()] == [3, 5, 9]
    later.close()


def test_processes_that_live_keep_what_is_theirs(tmp_path: Path, outbox: Outbox) -> None:
    put(outbox)
    other = Outbox(str(tmp_path), "s_1")
    assert other.adopt() == []
    put(other, 8)
    other.close()
    third = Outbox(str(tmp_path), "s_1")
    assert [entry.letter.job_id for entry in third.adopt()] == [8]
    third.close()


def test_other_machines_are_left_alone(tmp_path: Path, outbox: Outbox) -> None:
    put(outbox)
    died(outbox)
    other = Outbox(str(tmp_path), "s_2")
    assert other.adopt() == []
    other.close()


def test_nothing_of_a_process_with_nothing_left_stays(tmp_path: Path, outbox: Outbox) -> None:
    put(outbox).remove()
    outbox.close()
    outbox.close()
    assert files(tmp_path) == [".pyrunner_key"]
    assert list((tmp_path / ".pyrunner/outbox/s_1").iterdir()) == [tmp_path / ".pyrunner/outbox/s_1/.lock"]


def test_outbox_is_for_its_owner_only_and_shows_no_secret(tmp_path: Path, outbox: Outbox) -> None:
    before = os.umask(0)
    try:
        entry = put(outbox)
        entry.sync()
    finally:
        os.umask(before)
    for path in (tmp_path / ".pyrunner").rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        # the log's file is made by whoever saves it
        assert stat.S_IMODE(path.stat().st_mode) == wanted or path.name == "trace", path
        if path.is_file():
            content = path.read_bytes()
            assert TOKEN.encode() not in content
            assert b"user:pass" not in content
    assert TOKEN not in repr(entry)
    assert stat.S_IMODE((tmp_path / ".pyrunner").stat().st_mode) == 0o700


def test_same_job_number_of_two_servers_stays_two_jobs(tmp_path: Path, outbox: Outbox) -> None:
    put(outbox, 7, b"one")
    put(outbox, 7, b"two")
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    assert sorted(entry.read(0, 9) for entry in later.adopt()) == [b"one", b"two"]
    later.close()


def test_what_was_not_yet_a_letter_is_cleaned_away(tmp_path: Path, outbox: Outbox) -> None:
    entry = put(outbox)
    Path(entry.path, "letter").rename(Path(entry.path, "letter.new"))
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    assert later.adopt() == []
    later.close()
    assert files(tmp_path) == [".pyrunner_key"]


def damage_letter(home: Path, letter: Path) -> None:
    content = bytearray(letter.read_bytes())
    content[-1] ^= 1
    letter.write_bytes(content)


def cut_letter(home: Path, letter: Path) -> None:
    letter.write_bytes(b"")


def lose_key(home: Path, letter: Path) -> None:
    (home / ".pyrunner_key").unlink()


def break_key(home: Path, letter: Path) -> None:
    (home / ".pyrunner_key").write_bytes(b"short")


def directory_as_letter(home: Path, letter: Path) -> None:
    letter.unlink()
    letter.mkdir()


@pytest.mark.parametrize("harm", [damage_letter, cut_letter, lose_key, break_key, directory_as_letter])
def test_entry_that_cannot_be_read_costs_one_line_and_stays(
    tmp_path: Path, outbox: Outbox, caplog: pytest.LogCaptureFixture, harm: Callable[[Path, Path], None]
) -> None:
    entry = put(outbox)
    died(outbox)
    harm(tmp_path, Path(entry.path, "letter"))
    for _ in range(2):
        caplog.clear()
        later = Outbox(str(tmp_path), "s_1")
        assert later.adopt() == []
        later.close()
        (record,) = caplog.records
        assert record.message == "Cannot read an entry of the outbox"
        assert TOKEN not in str(record.__dict__)
    assert [name for name in files(tmp_path) if name.endswith("/trace")] != []


@pytest.mark.parametrize("kept", [b"", b"the l", b"another"])
def test_log_that_a_crash_of_the_machine_cut_does_not_hold_back_the_verdict(
    tmp_path: Path, outbox: Outbox, caplog: pytest.LogCaptureFixture, kept: bytes
) -> None:
    entry = put(outbox)
    Path(entry.path, "trace").write_bytes(kept)
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    (found,) = later.adopt()
    assert (found.letter.size, found.letter.offset) == (len(kept), 0)
    assert found.letter.checksum == f"crc32:{zlib.crc32(kept):08x}"
    assert found.letter.state == "failed"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    later.close()


def test_failed_put_leaves_nothing(tmp_path: Path, outbox: Outbox) -> None:
    def full(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        outbox.put(letter_of(), full)
    assert list(Path(outbox.directory()).iterdir()) == []


def test_failed_update_keeps_the_old_letter(tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = put(outbox)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        with pytest.raises(OSError, match="No space left"):
            outbox.update(entry, letter_of(offset=5))
    assert outbox.update(entry, letter_of(offset=6)).letter.offset == 6
    died(outbox)
    later = Outbox(str(tmp_path), "s_1")
    assert [found.letter.offset for found in later.adopt()] == [6]
    later.close()


def test_directory_that_cannot_be_written_is_an_error_of_the_system(as_plain_user: Path) -> None:
    home = as_plain_user / "home"
    home.mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        put(Outbox(str(home), "s_1"))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["put", "remove", "die", "close"]), max_size=12))
def test_entries_are_neither_lost_nor_doubled(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    home = tmp_path_factory.mktemp("outbox")
    outbox, held, expected, number = Outbox(str(home), "s"), [], set(), 0
    for step in [*steps, "close"]:
        if step == "put":
            number += 1
            held.append(put(outbox, number))
            expected.add(number)
        elif step == "remove" and held:
            entry = held.pop(0)
            entry.remove()
            expected.discard(entry.letter.job_id)
        elif step in ("die", "close"):
            outbox.directory()
            died(outbox) if step == "die" else outbox.close()
            outbox = Outbox(str(home), "s")
            held = outbox.adopt()
            assert {entry.letter.job_id for entry in held} == expected
            assert len(held) == len(expected)
    outbox.close()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"XDG_STATE_HOME": "/state"}, "/state/pyrunner"),
        ({"XDG_STATE_HOME": "relative"}, "~/.local/state/pyrunner"),
        ({}, "~/.local/state/pyrunner"),
    ],
)
def test_home_of_a_runner_without_a_config_file(environment: dict[str, str], wanted: str) -> None:
    assert state_home(environment) == os.path.expanduser(wanted)
