"""What came of a row, held against what must come of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrunner.testing.fake_gitlab import FakeJob
from pyrunner.testing.job_life import Expect, Row, fill

#: How `job_life.show` prints a variable: its name, and its value between angle brackets.
_SEEN = re.compile(r"^seen (\w+)=<(.*?)>$", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(rb"\n\S{27} 0[0-9a-f][OE]\+")
_STAMP = re.compile(rb"^\S{27} 0[0-9a-f][OE] ", re.MULTILINE)
_STAMPED = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z 0[0-9a-f][OE][ +]")
_MARKER = re.compile(rb"section_(start|end):\d+:([^\r\[]+)(?:\[[^\]]*\])?\r")
_ANSI = re.compile(rb"\x1b\[[0-9;]*[mK]")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a row."""

    job: FakeJob
    log: str
    sections: list[str]
    runner_log: list[str]
    place_texts: Mapping[str, str]
    #: Why there is no result.
    failure: str = ""

    @property
    def final(self) -> Mapping[str, Any]:
        """Body of the last final update; empty without one."""
        finals = [update for update in self.job.updates if update.get("state") in ("success", "failed")]
        return finals[-1] if finals else {}

    def fill(self, text: str) -> str:
        """`text` with its placeholders replaced."""
        return fill(text, self.place_texts)


def plain_log(trace: bytes) -> str:
    """A trace without timestamps, markers and colours."""
    for pattern in (_CONTINUED, _STAMP, _MARKER, _ANSI):
        trace = pattern.sub(b"", trace)
    return trace.decode("utf-8", "replace")


def sections_of(trace: bytes) -> list[str]:
    """Names of the sections in the order of their beginning."""
    return [name.decode() for kind, name in _MARKER.findall(trace) if kind == b"start"]


def check(row: Row, result: Result) -> None:
    """Hold a result against its row; the first difference is raised with the whole log."""
    faults = [f"{fault}" for fault in _differences(row.expect, result)]
    assert not faults, "\n".join([*faults, f"--- log of {row.id}:", result.log, *result.runner_log])


def _differences(expect: Expect, result: Result) -> Iterator[str]:
    if result.failure:
        yield result.failure
    yield from _verdict(expect, result)
    yield from _texts(expect, result)
    yield from _bytes(expect, result)
    if expect.sections is not None and result.sections != list(expect.sections):
        yield f"sections are {result.sections}"
    seen = {name: value for name, value in _SEEN.findall(result.log)}
    for name, value in expect.variables.items():
        wanted = None if value is None else result.fill(value)
        if seen.get(name) != wanted:
            yield f"the script saw {name}={seen.get(name)!r}, not {wanted!r}"
    for name in expect.files:
        path = Path(result.fill(name.removeprefix("!")))
        if path.exists() == name.startswith("!"):
            yield f"{path} is {'still' if name.startswith('!') else 'not'} there"
    for text in expect.runner_log:
        if not any(text in line for line in result.runner_log):
            yield f"the runner did not log {text!r}"


def _verdict(expect: Expect, result: Result) -> Iterator[str]:
    final = result.final
    got = (final.get("state", ""), final.get("failure_reason", ""), final.get("exit_code", 0))
    wanted = (expect.state, expect.reason, expect.exit_code)
    if got != wanted:
        yield f"state, reason and exit code are {got}, not {wanted}"
    states = [update.get("state") for update in result.job.updates]
    if expect.updates is not None and states != list(expect.updates):
        yield f"states that were sent: {states}"
    if expect.state and expect.delivered:
        if not result.job.trace_matches:
            yield "the trace on the server is not what the runner has sent"
        if (result.job.verdicts, result.job.final_updates) != (1, 1):
            yield f"{result.job.verdicts} verdicts in {result.job.final_updates} updates"


def _texts(expect: Expect, result: Result) -> Iterator[str]:
    log = result.log
    last = result.fill(expect.last or ("Job succeeded" if expect.state == "success" else ""))
    if last and log.rstrip("\n").rpartition("\n")[2] != last:
        yield f"the last line is not {last!r}"
    yield from (f"missing: {text!r}" for text in map(result.fill, expect.has) if text not in log)
    yield from (f"too much: {text!r}" for text in map(result.fill, [*expect.lacks, "Traceback"]) if text in log)
    position = 0
    for text in map(result.fill, expect.order):
        position = log.find(text, position)
        if position < 0:
            yield f"missing or not in order: {text!r}"
            break
        # the newline at the end may be the next text's first
        position += len(text.rstrip("\n"))
    for pattern in map(result.fill, expect.match):
        if not re.search(pattern, log, re.MULTILINE):
            yield f"nothing matches {pattern!r}"


def _bytes(expect: Expect, result: Result) -> Iterator[str]:
    trace = result.job.trace
    wanted = (result.fill(part.decode("latin-1")).encode("latin-1") for part in expect.raw)
    yield from (f"missing in the raw log: {part!r}" for part in wanted if part not in trace)
    yield from (f"too much in the raw log: {part!r}" for part in expect.raw_lacks if part in trace)
    for pattern in expect.raw_match:
        if not re.search(pattern.encode(), trace):
            yield f"nothing in the raw log matches {pattern!r}: {trace!r}"
    if not trace.endswith(expect.ends):
        yield f"the raw log ends with {trace[-200:]!r}"
    if expect.stamped:
        yield from (f"no time: {line!r}" for line in trace.split(b"\n")[:-1] if not _STAMPED.match(line))
