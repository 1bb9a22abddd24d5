"""Logging to stderr in GitLab Runner's three formats (facts/commands.md, "Log line formats").

Code logs with the standard library: a constant message and fields in ``extra``. The formats print the fields that a
record carries beyond the standard ones, except ``action``, which names the event for tests and for ``json`` readers.
"""

from __future__ import annotations

import logging
import sys
import time

from pyrunner.base.log_line import FATAL as FATAL
from pyrunner.base.log_line import FORMATS as FORMATS
from pyrunner.base.log_line import LEVELS as LEVELS
from pyrunner.base.log_line import PANIC, TRACE, runner_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_NAMES = {TRACE: "trace", logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}
_NAMES |= {logging.ERROR: "error", FATAL: "fatal", PANIC: "panic"}
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "action", "taskName"}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/@^+")


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The record's own fields, sorted by key."""
    extra = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
    if record.exc_info and record.exc_info[1] is not None and "error" not in extra:
        extra["error"] = record.exc_info[1]
    return dict(sorted(extra.items()))


class RunnerFormatter(logging.Formatter):
    """``runner``: GitLab Runner's own look, always with colours (also when piped: scripts match on it)."""

    def __init__(self, *, color: bool = True) -> None:
        super().__init__()
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        return runner_line(record.levelno, record.getMessage(), fields_of(record), color=self._color)


class TextFormatter(logging.Formatter):
    """``text``: logfmt."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        pairs: dict[str, object] = {"time": stamp, "level": _name(record), "msg": record.getMessage()}
        pairs |= fields_of(record)
        return " ".join(f"{key}={_logfmt(str(value), always=key == 'time')}" for key, value in pairs.items())


class JsonFormatter(logging.Formatter):
    """``json``: one object a line, keys sorted."""

    def format(self, record: logging.LogRecord) -> str:
        import json

        second, rest = divmod(record.created, 1)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        fraction = f"{rest:.9f}"[1:].rstrip("0").rstrip(".")
        entry: dict[str, object] = {
            "level": _name(record),
            "msg": record.getMessage(),
            "time": f"{stamp}{fraction}Z",
        }
        for key, value in fields_of(record).items():
            plain = value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
            entry[f"fields.{key}" if key in entry else key] = plain
        return json.dumps(entry, sort_keys=True, ensure_ascii=False)


def _name(record: logging.LogRecord) -> str:
    return _NAMES.get(record.levelno, "info")


def _logfmt(value: str, *, always: bool) -> str:
    if value and not always and _PLAIN.issuperset(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def setup(level: str = "info", format_name: str = "runner", stream: TextIO | None = None) -> None:
    """Send all logging of this process to `stream` (stderr) from `level` up; replaces an earlier set-up.

    ``NO_COLOR`` in the environment turns the colours of the ``runner`` format off.
    """
    import os

    formatters = {"runner": RunnerFormatter, "text": TextFormatter, "json": JsonFormatter}
    formatter = (
        RunnerFormatter(color="NO_COLOR" not in os.environ) if format_name == "runner" else formatters[format_name]()
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    logging.raiseExceptions = False
