"""Typed tables → TOML in the form in which GitLab Runner writes it (facts/config-toml.md 4)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from pyrunner.base.durations import format_duration
from pyrunner.config.keys import Field, fields_of
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.config.table import Table

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def runner_text(runner: RunnerConfig) -> str:
    """The ``[[runners]]`` entry, with its header and without an empty line before it."""
    return "\n".join(["[[runners]]", *_table_lines(runner, "runners", 1)]) + "\n"


def config_text(config: Config) -> str:
    """A whole new file."""
    text = "\n".join(_table_lines(config, "", 0)) + "\n"
    return text.lstrip("\n")


def _table_lines(table: Table, name: str, depth: int) -> list[str]:
    indent = "  " * depth
    declared = [(field, getattr(table, field.attribute)) for field in fields_of(type(table))]
    lines = [
        f"{indent}{toml_key(field.name)} = {toml_value(field, value)}"
        for field, value in declared
        if not field.is_table and is_written(field, value)
    ]
    for field, value in declared:
        if field.is_table and is_written(field, value):
            lines += _sub_table_lines(field, value, f"{name}.{field.name}".removeprefix("."), depth)
    return lines


def _sub_table_lines(field: Field, value: Any, name: str, depth: int) -> list[str]:
    # the keys of a top-level table are indented, its header is not
    indent, inner = "  " * depth, max(depth + 1, 1)
    gap = [""] if depth == 0 or field.kind == "tables" else []
    if field.kind == "tables":
        return [line for item in value for line in ("", f"{indent}[[{name}]]", *_table_lines(item, name, inner))]
    head = [*gap, f"{indent}[{name}]"]
    if field.kind == "table":
        return [*head, *_table_lines(value, name, inner)]
    pairs = sorted(value.items())
    plain = [(key, item) for key, item in pairs if not isinstance(item, dict)]
    lines = [*head, *(f"{'  ' * inner}{toml_key(key)} = {_plain_value(item)}" for key, item in plain)]
    for key, item in pairs:
        if isinstance(item, dict):
            lines.append(f"{'  ' * inner}{toml_key(key)} = {_plain_value(item)}")
    return lines


def is_written(field: Field, value: Any) -> bool:
    """The write rule: always, or only when set."""
    if value is None:
        return field.kind == "datetime" and field.key.always
    if field.kind == "table":
        return (
            field.optional
            or field.key.always
            or any(is_written(inner, getattr(value, inner.attribute)) for inner in fields_of(type(value)))
        )
    if field.is_table:
        return bool(value)
    return field.optional or field.key.always or bool(value)


def toml_value(field: Field, value: Any) -> str:
    """The text of a plain key's value."""
    if field.kind == "duration":
        return quoted(format_duration(value))
    if field.kind == "datetime":
        return _timestamp(value)
    if field.kind == "policies" and len(value) == 1:
        return quoted(value[0])
    return _plain_value(value)


def toml_key(name: str) -> str:
    """A key, quoted when it must be."""
    return name if _BARE.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """A basic string."""
    return '"' + "".join(_ESCAPES.get(letter) or _escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    # TOML forbids control characters in strings, and a lone surrogate cannot be written at all
    if letter < " " or letter == "\x7f":
        return f"\\u{ord(letter):04X}"
    return "\ufffd" if "\ud800" <= letter <= "\udfff" else letter


def _timestamp(value: datetime | None) -> str:
    if value is None:
        return "0001-01-01T00:00:00Z"
    aware = value.astimezone(UTC) if value.tzinfo else value
    return aware.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _plain_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_plain_value(item) for item in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(key)} = {_plain_value(item)}" for key, item in sorted(value.items()))
        return f"{{{inner}}}"
    return str(value.isoformat()) if hasattr(value, "isoformat") else quoted(str(value))
