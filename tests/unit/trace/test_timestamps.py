"""Timestamps, UTF-8 repair and the size limit."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pyrunner.job.trace.limit import Limit
from pyrunner.job.trace.timestamps import LONGEST_OPEN_LINE, Stamper, Utf8Repair

AT = 1_795_252_879_467_366_999
HEAD = b"2026-11-21T09:21:19.467366Z 01O"


def stamper() -> Stamper:
    return Stamper("01O", clock=lambda: AT)


def test_every_line_gets_32_bytes() -> None:
    assert stamper().feed(b"one\ntwo\n\n") == HEAD + b" one\n" + HEAD + b" two\n" + HEAD + b" \n"
    assert len(HEAD + b" ") == 32


def test_line_is_held_until_it_ends() -> None:
    stamp = stamper()
    assert stamp.feed(b"no new") == b""
    assert stamp.feed(b"line\nnext") == HEAD + b" no newline\n"
    assert stamp.flush() == HEAD + b" next\n"
    assert stamp.flush() == b""


def test_section_marker_is_an_entry_of_its_own_and_the_title_continues_it() -> None:
    stamp = stamper()
    assert stamp.feed(b"section_start:1:x\r\x1b[0K") == HEAD + b" section_start:1:x\r\x1b[0K\n"
    assert stamp.feed(b"Title\n") == HEAD + b"+Title\n"
    assert stamp.feed(b"after\n") == HEAD + b" after\n"


def test_crlf_cut_in_the_middle_stays_one_line() -> None:
    stamp = stamper()
    out = stamp.feed(b"unix\nwindows\r") + stamp.feed(b"\nnext\r\n")
    assert out == HEAD + b" unix\n" + HEAD + b" windows\r\n" + HEAD + b" next\r\n"


def test_progress_bar_shows_while_it_runs() -> None:
    stamp = stamper()
    assert stamp.feed(b"10%\r") == HEAD + b" 10%\r\n"
    assert stamp.feed(b"20%\r") == HEAD + b"+20%\r\n"
    assert stamp.feed(b"done\nnext\n") == HEAD + b"+done\n" + HEAD + b" next\n"


def test_endless_line_does_not_grow_for_ever() -> None:
    stamp = stamper()
    out = b"".join(stamp.feed(b"x" * 1000) for _ in range(20))
    assert out.count(HEAD + b"+") >= 1
    assert len(out) >= 20_000 - LONGEST_OPEN_LINE


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"bc\n", b"\r\n", b"x" * 5000]), max_size=30))
def test_content_survives_stamping(pieces: list[bytes]) -> None:
    stamp = stamper()
    out = b"".join(map(stamp.feed, pieces)) + stamp.flush()
    content = b""
    for entry in re.split(rb"(?<=\n)(?=2026-)", out) if out else []:
        assert entry.startswith(HEAD)
        assert entry.endswith(b"\n")
        content = content[:-1] if entry[31:32] == b"+" else content
        content += entry[32:]
    assert content.rstrip(b"\n") == b"".join(pieces).rstrip(b"\n")


def repaired(pieces: list[bytes]) -> bytes:
    repair = Utf8Repair()
    return b"".join(map(repair.feed, pieces)) + repair.flush()


@given(st.binary(max_size=100), st.integers(1, 10))
def test_repair_in_any_split_gives_valid_utf8(data: bytes, size: int) -> None:
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert repaired(pieces) == data.decode("utf-8", "replace").encode()


@given(st.text(max_size=100), st.integers(1, 5))
def test_valid_text_is_not_touched(text: str, size: int) -> None:
    data = text.encode()
    assert repaired([data[i : i + size] for i in range(0, len(data), size)]) == data


MESSAGE = (
    b"\n\x1b[33;1mJob's log exceeded limit of 10 bytes.\n"
    b"Job execution will continue but no more output will be collected.\x1b[0;m\n"
)


def test_log_of_exactly_the_limit_is_whole() -> None:
    limit = Limit(10)
    assert limit.take(b"0123456789") == b"0123456789"
    assert not limit.full
    assert limit.take(b"x") == MESSAGE
    assert limit.take(b"Job succeeded") == b""


def test_cut_is_between_characters() -> None:
    limit = Limit(10)
    assert limit.take("12345678é€".encode()) == "12345678é".encode() + MESSAGE
    limit = Limit(10)
    assert limit.take("123456789é".encode()) == b"123456789" + MESSAGE


@given(st.lists(st.text(max_size=20), max_size=20))
def test_limited_log_is_valid_and_never_longer(texts: list[str]) -> None:
    limit = Limit(10)
    out = b"".join(limit.take(text.encode()) for text in texts)
    whole = "".join(texts).encode()
    out.decode()
    if len(whole) <= 10:
        assert out == whole
    else:
        assert out.endswith(MESSAGE)
        assert whole.startswith(out.removesuffix(MESSAGE))
