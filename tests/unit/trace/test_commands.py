"""Lines by which a job adds masks, however the stream is cut."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.job.trace import JobTrace
from pyrunner.job.trace.commands import LONGEST_VALUE, MAXIMUM_VALUES, AddMask, MaskLines


def log_of(*pieces: bytes, masks: tuple[str, ...] = ()) -> bytes:
    trace = JobTrace(None, 1, "t", masks=masks, sections=False, limit_bytes=10**9)
    for piece in pieces:
        trace.script.write(piece)
    trace.script.flush()
    data = trace.read(0, trace.size)
    trace.close()
    return data


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"::add-mask::s3cret\nhas s3cret\n", b"::add-mask::[MASKED]\nhas [MASKED]\n"),
        (b"s3cret\n::add-mask::s3cret\n", b"s3cret\n::add-mask::[MASKED]\n"),
        (b"a\n::add-mask:: s3cret \r\nb s3cret\r\n", b"a\n::add-mask::[MASKED]\r\nb [MASKED]\r\n"),
        (b"::add-mask::s3cret", b"::add-mask::[MASKED]"),
        (
            b"::add-mask::one two\n::add-mask::three\none two three",
            b"::add-mask::[MASKED]\n" * 2 + b"[MASKED] [MASKED]",
        ),
        (b'$ echo "::add-mask::$X"\n', b'$ echo "::add-mask::$X"\n'),
        (b"::add-mask\n::add-mask:\n", b"::add-mask\n::add-mask:\n"),
        (b"::add-mask::\nx\n", b"::add-mask::[MASKED]\nx\n"),
        (b"::add-mask::a b/c\na%20b%2Fc YSBiL2M=\n", b"::add-mask::[MASKED]\n[MASKED] [MASKED]\n"),
        (b"::add-mask::first line%0Asecond%25line\nsecond%line\n", b"::add-mask::[MASKED]\n[MASKED]\n"),
        (b"::add-mask::MASK\n::add-mask::x\nMASK\n", b"::add-mask::[MASKED]\n::add-mask::[MASKED]\n[MASKED]\n"),
    ],
)
def test_line_is_hidden_and_its_value_masked_from_then_on(text: bytes, shown: bytes) -> None:
    assert log_of(text) == shown
    assert log_of(*(bytes([byte]) for byte in text)) == shown


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b"::add-mask::", b"::add-", b"mask::", b"ab", b"b", b"\n", b"\r\n", b" ", b"%0A", b"[MASKED]"]
        ),
        max_size=20,
    ).map(b"".join),
    st.lists(st.integers(0, 120), max_size=10),
)
def test_any_split_gives_the_same_log(text: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[first:last] for first, last in itertools.pairwise(places)]
    assert log_of(*pieces, masks=("b\nab", "ab")) == log_of(text, masks=("b\nab", "ab"))


def test_runners_own_lines_are_masked_too_and_add_nothing() -> None:
    trace = JobTrace(None, 1, "t", sections=False)
    trace.runner.write(b"::add-mask::harmless\nharmless\n")
    trace.script.write(b"::add-mask::late\n")
    trace.runner.plain("late")
    assert trace.read(0, 999) == (b"::add-mask::harmless\nharmless\n::add-mask::[MASKED]\n\x1b[0K[MASKED]\x1b[0;m\n")
    trace.close()


def test_what_may_become_a_line_waits_for_a_stages_end() -> None:
    trace = JobTrace(None, 1, "t", sections=False)
    trace.script.write(b"out\n::add-m")
    assert trace.read(0, 99) == b"out\n"
    trace.section_end("step_script")
    trace.script.write(b"ask::no\n::add-mask::yes")
    trace.section_end("after_script")
    trace.script.write(b"no yes\n")
    assert trace.read(0, 99) == b"out\n::add-mask::no\n::add-mask::[MASKED]no [MASKED]\n"
    trace.close()


@pytest.mark.parametrize("size", [1, LONGEST_VALUE, LONGEST_VALUE + 1, LONGEST_VALUE * 3])
def test_endless_line_is_hidden_without_being_kept(size: int) -> None:
    text = b"::add-mask::" + b"x" * size + b"\nend\n"
    pieces = [text[start : start + 5000] for start in range(0, len(text), 5000)]
    assert log_of(text) == log_of(*pieces) == b"::add-mask::[MASKED]\nend\n"
    lines = MaskLines()
    assert sum(len(item) for piece in pieces for item in lines.feed(piece) if isinstance(item, bytes)) <= len(
        b"\nend\n"
    )


def test_a_job_cannot_make_the_runner_look_for_everything() -> None:
    text = b"".join(b"::add-mask::value-%04d\n" % number for number in range(MAXIMUM_VALUES + 2))
    shown = log_of(text + b"value-0001 value-%04d\n" % (MAXIMUM_VALUES + 1)).splitlines()
    assert shown[0] == shown[MAXIMUM_VALUES - 1] == b"::add-mask::[MASKED]"
    assert shown[MAXIMUM_VALUES].startswith(b"::add-mask::[MASKED] (not masked elsewhere")
    assert shown[-1] == b"[MASKED] value-%04d" % (MAXIMUM_VALUES + 1)
    lines = MaskLines()
    found = [item for _ in range(20) for item in lines.feed(b"::add-mask::" + b"y" * 16_000 + b"\n")]
    assert sum(len(value) for item in found if isinstance(item, AddMask) for value in item.values) <= 64 * 1024


def test_lines_in_a_row_build_the_search_once() -> None:
    text = b"".join(b"::add-mask::some value/%04d\n" % number for number in range(400))
    started = time.process_time()
    log_of(text, b"some value/0007\n")
    assert time.process_time() - started < 2
