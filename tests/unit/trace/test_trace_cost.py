"""What a log costs, counted and not timed: nothing of it is done in Python for each line, byte or secret."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from pyrunner.job.trace import JobTrace
from pyrunner.job.trace.stream import PIECE

LINE = b"2026-01-01 12:00:00 INFO  worker: handled request number 1234567 in 12 ms, status ok, user 42\n"
KEY = "-----BEGIN KEY-----\n" + "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSk+/x=\n" * 20 + "-----END KEY-----"


def calls(trace: JobTrace, data: bytes) -> int:
    """Calls of Python and C functions that it takes to write `data`."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    trace.script.write(LINE)
    sys.setprofile(note)
    try:
        trace.script.write(data)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "masks",
    [[], ["s3cr3t-value"], [f"s3cr3t/v@lue-{number:04d}" for number in range(50)], [KEY]],
    ids=["none", "one", "fifty", "key"],
)
@pytest.mark.parametrize("timestamps", [False, True])
def test_a_piece_costs_the_same_however_many_lines_it_has(masks: list[str], timestamps: bool) -> None:
    trace = JobTrace(None, 1, "t", masks=masks, timestamps=timestamps, limit_bytes=10**9)
    few, many = LINE * 4, LINE * (PIECE // len(LINE))
    calls(trace, few)
    assert calls(trace, many) <= calls(trace, few) + 20 < 250
    trace.close()


def test_a_full_log_costs_nothing() -> None:
    trace = JobTrace(None, 1, "t", masks=["s3cr3t"], limit_bytes=100)
    trace.script.write(LINE * 10)
    assert calls(trace, LINE * 100_000) < 20
    trace.close()
