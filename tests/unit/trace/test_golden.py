"""Traces byte for byte, in both formats (facts/job-lifecycle.md 5.1 to 5.7)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import pytest

from pyrunner.job.prepare import header_lines
from pyrunner.job.trace import JobTrace

_SECOND = re.compile(rb"(section_(?:start|end)):\d{10}:")
_STAMP = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ", re.MULTILINE)

PLAIN = b"""\
^[[0KRunning with gitlab-runner 19.4.0 (pyrunner)^[[0;m
^[[0K  on caprunner t1_abcdef, system ID: s_1746f8786189^[[0;m
^[[0K  feature flags: FF_NETWORK_PER_BUILD:true^[[0;m
section_start:S:prepare_executor^M^[[0K^[[0K^[[36;1mPreparing the "shell" executor^[[0;m^[[0;m
^[[0KUsing Shell (bash) executor...^[[0;m
section_end:S:prepare_executor^M^[[0Ksection_start:S:prepare_script^M^[[0K^[[0K^[[36;1mPreparing environment^[[0;m^[[0;m
Running on vm...
section_end:S:prepare_script^M^[[0Ksection_start:S:step_script^M^[[0K^[[0K^[[36;1mExecuting "step_script"^[[0;m^[[0;m
^[[32;1m$ echo secret is $SECRET^[[0;m
secret is [MASKED]
line2^[[32;1m$ echo token glpat-[MASKED] end https://x/?private_token=[MASKED]&x=1^[[0;m
section_end:S:step_script^M^[[0K^[[0;33mWARNING: script canceled externally (UI, API)^[[0;m
^[[31;1mERROR: Job failed: exit status 3^[[0;m
"""

STAMPED = b"""\
00O ^[[0KRunning with gitlab-runner 19.4.0 (pyrunner)^[[0;m
00O ^[[0K  on caprunner t1_abcdef, system ID: s_1746f8786189^[[0;m
00O ^[[0K  feature flags: FF_NETWORK_PER_BUILD:true^[[0;m
00O section_start:S:prepare_executor^M^[[0K
00O+^[[0K^[[36;1mPreparing the "shell" executor^[[0;m^[[0;m
00O ^[[0KUsing Shell (bash) executor...^[[0;m
00O section_end:S:prepare_executor^M^[[0K
00O+section_start:S:prepare_script^M^[[0K
00O+^[[0K^[[36;1mPreparing environment^[[0;m^[[0;m
01O Running on vm...
00O section_end:S:prepare_script^M^[[0K
00O+section_start:S:step_script^M^[[0K
00O+^[[0K^[[36;1mExecuting "step_script"^[[0;m^[[0;m
01O ^[[32;1m$ echo secret is $SECRET^[[0;m
01O secret is [MASKED]
01O line2^[[32;1m$ echo token glpat-[MASKED] end https://x/?private_token=[MASKED]&x=1^[[0;m
00O section_end:S:step_script^M^[[0K
00O+^[[0;33mWARNING: script canceled externally (UI, API)^[[0;m
00O ^[[31;1mERROR: Job failed: exit status 3^[[0;m
"""


def trace_of(write: Callable[[JobTrace], None], **options: object) -> bytes:
    """What is spooled, checked against size and checksum; seconds of sections and times of entries are taken out."""
    trace = JobTrace(None, 1, "t", **options)  # type: ignore[arg-type]
    write(trace)
    trace.finish("success")
    data = trace.read(0, trace.size)
    assert trace.size == len(data)
    assert trace.checksum == f"crc32:{zlib.crc32(data):08x}"
    trace.close()
    return _STAMP.sub(b"", _SECOND.sub(rb"\1:S:", data))


def job(trace: JobTrace) -> None:
    for line in header_lines("caprunner", "t1_abcdef", "s_1746f8786189", {"FF_NETWORK_PER_BUILD": True}):
        trace.runner.plain(line)
    titles = {"prepare_executor": 'Preparing the "shell" executor', "prepare_script": "Preparing environment"}
    for stage in ("prepare_executor", "prepare_script", "step_script"):
        trace.section_start(stage)
        title = titles.get(stage, 'Executing "step_script"')
        trace.runner.plain(f"\x1b[36;1m{title}\x1b[0;m")
        if stage == "prepare_executor":
            trace.runner.plain("Using Shell (bash) executor...")
        elif stage == "prepare_script":
            trace.script.write(b"Running on vm...\n")
        else:
            trace.script.write(b"\x1b[32;1m$ echo secret is $SECRET\x1b[0;m\nsecret is s3c")
            trace.script.write(b"r3t\nline2\x1b[32;1m$ echo token glpat-abc end https://x/?private_")
            trace.script.write(b"token=abc&x=1\x1b[0;m\n")
        trace.section_end(stage)
    trace.runner.warning("script canceled externally (UI, API)")
    trace.runner.error("Job failed: exit status 3")


@pytest.mark.parametrize(("timestamps", "golden"), [(False, PLAIN), (True, STAMPED)])
def test_whole_job(timestamps: bool, golden: bytes) -> None:
    expected = golden.replace(b"^[", b"\x1b").replace(b"^M", b"\r")
    assert trace_of(job, timestamps=timestamps, masks=["s3cr3t"]) == expected


def test_entry_is_32_bytes_and_its_line() -> None:
    trace = JobTrace(None, 1, "t", timestamps=True)
    trace.script.write(b"Running on vm...\n")
    data = trace.read(0, 99)
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z 01O Running on vm\.\.\.\n", data)
    assert data.index(b"Running") == 32
    trace.close()


def scripted(*writes: bytes, **options: object) -> bytes:
    def write(trace: JobTrace) -> None:
        for data in writes:
            trace.script.write(data)

    return trace_of(write, **options)


@pytest.mark.parametrize(
    ("writes", "stamped"),
    [
        ([b"10%\r", b"20%\r", b"done\n", b"next\n"], b"01O 10%\r\n01O+20%\r\n01O+done\n01O next\n"),
        ([b"\r10%", b"\r20%", b"\n"], b"01O \r10%\n01O+\r20%\n01O+\n"),
        ([b"dos\r\nfile\r", b"\nend\r\n"], b"01O dos\r\n01O file\r\n01O end\r\n"),
        ([b"start\n10%\r20%"], b"01O start\n01O 10%\r20%\n"),
        ([b"no newline"], b"01O no newline\n"),
        ([b"no", b" newline"], b"01O no newline\n"),
        ([b"\n\n"], b"01O \n01O \n"),
        ([b"x" * 9000, b"y" * 9000, b"z\nnext"], b"01O %b\n01O+%b\n01O+z\n01O next\n" % (b"x" * 9000, b"y" * 9000)),
        ([b"x" * 4096] * 3, b"01O " + b"x" * 12288 + b"\n"),
        ([b"x" * 8192, b"y\n"], b"01O " + b"x" * 8192 + b"y\n"),
        ([b"x" * 20_000 + b"\n"], b"01O " + b"x" * 20_000 + b"\n"),
        ([b"caf\xc3", b"\xa9 \xff\n"], "01O café \N{REPLACEMENT CHARACTER}\n".encode()),
        ([b"cut \xe2\x82"], "01O cut \N{REPLACEMENT CHARACTER}\n".encode()),
        ([b"a\xc3\nb\n"], "01O a\N{REPLACEMENT CHARACTER}\n01O b\n".encode()),
        ([b"two\nsec", b"ret\nlines\n"], b"01O two\n01O [MASKED]\n01O lines\n"),
        ([b"\xffsec", b"ret sec\nret\xc3\n"], "01O \N{REPLACEMENT CHARACTER}[MASKED] [MASKED]\ufffd\n".encode()),
    ],
)
def test_lines_of_a_script(writes: list[bytes], stamped: bytes) -> None:
    masks = ["secret", "sec\nret"]
    assert scripted(*writes, timestamps=True, masks=masks) == stamped
    content = b"".join(writes).decode("utf-8", "surrogateescape")
    for mask in masks:
        content = content.replace(mask, "[MASKED]")
    plain = content.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
    assert scripted(*writes, timestamps=False, masks=masks) == plain


def test_phrases_are_looked_for_before_anything_is_repaired() -> None:
    assert scripted(b"<\xffsec", b"\xc3ret>", timestamps=True, masks=["\udcffsec\udcc3ret"]) == b"01O <[MASKED]>\n"


def limited(limit: int) -> bytes:
    return (
        b"\n\x1b[33;1mJob's log exceeded limit of %d bytes.\n"
        b"Job execution will continue but no more output will be collected.\x1b[0;m\n" % limit
    )


@pytest.mark.parametrize("limit", [0, 1, 31, 32, 34, 35, 36, 37, 38, 39, 70])
def test_limit_counts_what_is_sent_and_cuts_between_characters(limit: int) -> None:
    trace = JobTrace(None, 1, "t", timestamps=True, limit_bytes=limit, masks=["secret"])
    trace.script.write("a€ secret\n".encode())
    trace.script.write(b"second\n")
    trace.runner.info("Job succeeded")
    trace.finish("success")
    data = trace.read(0, 999)
    head, message = data[: -len(limited(limit))], data[-len(limited(limit)) :]
    assert message == limited(limit)
    # 32 bytes of stamp, `a`, the three bytes of `€`
    assert len(head) == {34: 33, 35: 33}.get(limit, limit)
    assert "a€ [MASKED]\n".encode().startswith(head[32:44])
    head.decode()
    trace.close()


def test_log_that_fits_exactly_has_no_message() -> None:
    assert scripted(b"12345\n", timestamps=True, limit_bytes=38) == b"01O 12345\n"
    assert scripted(b"12345\n", timestamps=False, limit_bytes=6) == b"12345\n"
    assert scripted(b"123456\n", timestamps=False, limit_bytes=6) == b"123456" + limited(6)


def test_a_secret_at_the_limit_is_masked_first() -> None:
    assert scripted(b"ab secret", timestamps=False, limit_bytes=6, masks=["secret"]) == b"ab [MA" + limited(6)
