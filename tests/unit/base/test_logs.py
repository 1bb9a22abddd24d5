"""The three log formats, to the byte where scripts match on them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pyrunner.base import logs


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def _logged(style: str, level: int, message: str, **fields: object) -> str:
    stream = io.StringIO()
    logs.setup("info", style, stream)
    logging.getLogger("x").log(level, message, extra={"action": "hidden", **fields})
    return stream.getvalue()


@pytest.mark.usefixtures("restored_logging")
def test_the_runner_format_pads_to_fifty_columns_and_sorts_fields() -> None:
    line = _logged("runner", logging.INFO, "Verifying runner... is valid", runner="abcdefghi")
    assert line == "Verifying runner... is valid                      \x1b[0;m  runner\x1b[0;m=abcdefghi\n"
    line = _logged("runner", logging.WARNING, "[runWait] received stop signal", **{"stop-signal": "quit", "builds": 0})
    assert line == (
        "\x1b[0;33mWARNING: [runWait] received stop signal           \x1b[0;m "
        " \x1b[0;33mbuilds\x1b[0;m=0 \x1b[0;33mstop-signal\x1b[0;m=quit\n"
    )
    line = _logged("runner", logs.FATAL, "Failed to verify runners")
    assert line == "\x1b[31;1mFATAL: Failed to verify runners                   \x1b[0;m \n"


@pytest.mark.usefixtures("restored_logging")
def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in _logged("runner", logging.WARNING, "careful", runner="x")


@pytest.mark.usefixtures("restored_logging")
def test_text_is_logfmt_with_quotes_only_where_needed() -> None:
    line = _logged("text", logging.INFO, "Checking for jobs... received", job=12, url="http://x/?a b")
    assert line.startswith('time="')
    assert line.endswith(' level=info msg="Checking for jobs... received" job=12 url="http://x/?a b"\n')


@pytest.mark.usefixtures("restored_logging")
def test_json_is_one_object_with_sorted_keys_and_renames_clashes() -> None:
    line = _logged("json", logging.ERROR, "oops", time=1, builds=2)
    entry = json.loads(line)
    assert entry["msg"] == "oops"
    assert entry["level"] == "error"
    assert entry["fields.time"] == 1
    assert list(entry) == sorted(entry)


@pytest.mark.usefixtures("restored_logging")
def test_levels_below_the_chosen_one_are_silent() -> None:
    assert _logged("runner", logging.DEBUG, "noise") == ""
