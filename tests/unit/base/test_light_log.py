from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pyrunner.base import light_log, logs
from pyrunner.base.light_log import Log, write_lines
from pyrunner.base.log_line import INFO, runner_line

FIELDS = {"b": 2, "a": "one", "action": "not_shown"}


@pytest.fixture
def lines() -> Iterator[None]:
    write_lines(INFO)
    yield
    light_log._Lines.level, light_log._Lines.color = None, True


def test_other_processes_get_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Log("some.module").warning("found %d of %s", 3, "x", extra=FIELDS)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("some.module", "WARNING", "found 3 of x")
    assert record.__dict__["a"] == "one"


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.ERROR, logs.FATAL])
def test_its_lines_are_those_of_the_formatter(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    Log("x").log(level, "%s…", "message", extra=FIELDS)
    record = logging.makeLogRecord({"levelno": level, "msg": "message…", **FIELDS})
    assert capsys.readouterr().err == logs.RunnerFormatter().format(record) + "\n"


@pytest.mark.usefixtures("lines")
def test_nothing_below_the_level_and_no_colour_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log("x")
    log.log(logging.DEBUG, "silent")
    assert capsys.readouterr().err == ""
    write_lines(INFO, color=False)
    log.info("100% plain")
    assert capsys.readouterr().err == "100% plain\n"


def test_names_that_are_no_utf8_can_be_shown() -> None:
    assert "\udcff" in runner_line(INFO, "name", {"file": "\udcff"})
