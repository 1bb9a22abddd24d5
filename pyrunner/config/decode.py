"""TOML values → typed tables, with every problem and its place (facts/config-toml.md, "Decoding rules").

Pure: no file, no environment. `load` raises the first problem, `lint` reports all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from pyrunner.base.durations import parse_duration
from pyrunner.config.keys import Field, field_of, folded_names_of, names_of
from pyrunner.config.table import Table

#: ``("runners", 0, "docker", "image")``: names as the file spells them, numbers for elements of arrays.
Path = tuple[str | int, ...]
AnyTable = TypeVar("AnyTable", bound=Table)

_INT64 = 2**63


class Problem(NamedTuple):
    """A value that cannot be taken. `fix` is what would be right, as TOML, or empty; a `bare` message is known to
    users without the line and key that others get in front."""

    path: Path
    message: str
    fix: str = ""
    bare: bool = False


class Decoded:
    """What decoding found besides the values: problems, unknown keys with their table, keys in another case."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.unknown: list[tuple[Path, type[Table]]] = []
        self.respelled: list[tuple[Path, str]] = []


class WrongValue(Exception):  # noqa: N818 - becomes a Problem
    """A value does not fit its key."""

    def __init__(self, message: str, fix: str = "", *, bare: bool = False) -> None:
        super().__init__(message)
        self.fix = fix
        self.bare = bare

    def at(self, path: Path, fix: str) -> Problem:
        """The problem that it is at a place."""
        return Problem(path=path, message=str(self), fix=fix, bare=self.bare)


def decode(table: type[AnyTable], values: Mapping[str, Any], notes: Decoded, path: Path = ()) -> AnyTable:
    """An instance of `table` with all values that fit; what does not is noted and left at its default."""
    known, folded = names_of(table), folded_names_of(table)
    taken: dict[str, Any] = {}
    # an exact name wins over another spelling of it, wherever they stand
    for spelled in sorted(values, key=lambda key: key in known):
        name = spelled if spelled in known else folded.get(spelled.casefold())
        here = (*path, spelled)
        if name is None:
            notes.unknown.append((here, table))
            continue
        if name != spelled:
            notes.respelled.append((here, name))
        declared = field_of(table, name)
        try:
            taken[declared.attribute] = _value(declared, values[spelled], notes, here)
        except WrongValue as wrong:
            notes.problems.append(wrong.at(here, _assignment(spelled, wrong.fix)))
    return table(**taken)


def _value(declared: Field, value: Any, notes: Decoded, path: Path) -> Any:
    if declared.kind == "table":
        assert declared.table is not None  # noqa: S101
        if not isinstance(value, dict):
            raise _mismatch(value, "map")
        return decode(declared.table, value, notes, path)
    if declared.kind == "tables":
        return _tables(declared, value, notes, path)
    if declared.kind == "free":
        if not isinstance(value, dict):
            raise _mismatch(value, "map")
        return value
    if declared.kind in _SCALARS:
        return _SCALARS[declared.kind](value)
    if declared.kind == "policies":
        return _policies(value)
    if declared.kind.startswith("list"):
        return _items(_ITEMS[declared.kind], value, notes, path)
    return _pairs(_ITEMS[declared.kind], value, notes, path)


def _tables(declared: Field, value: Any, notes: Decoded, path: Path) -> list[Table]:
    if not isinstance(value, list):
        raise WrongValue(str(_mismatch(value, "slice")), f"[[{'.'.join(str(part) for part in path)}]]")
    assert declared.table is not None  # noqa: S101
    tables = []
    for index, item in enumerate(value):
        here = (*path, index)
        if isinstance(item, dict):
            tables.append(decode(declared.table, item, notes, here))
        else:
            notes.problems.append(Problem(path=here, message=str(_mismatch(item, "map"))))
    return tables


def _items(kind: str, value: Any, notes: Decoded, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise WrongValue(str(_mismatch(value, "slice")), _listed(value))
    return list(_taken(kind, enumerate(value), notes, path).values())


def _pairs(kind: str, value: Any, notes: Decoded, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mismatch(value, "map")
    return _taken(kind, value.items(), notes, path)


def _taken(kind: str, items: Any, notes: Decoded, path: Path) -> dict[Any, Any]:
    taken = {}
    for place, item in items:
        try:
            taken[place] = _items("text", item, notes, (*path, place)) if kind == "list" else _SCALARS[kind](item)
        except WrongValue as wrong:
            fix = _assignment(place, wrong.fix) if isinstance(place, str) else wrong.fix
            notes.problems.append(wrong.at((*path, place), fix))
    return taken


def _text(value: Any) -> str:
    if not isinstance(value, str):
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        raise WrongValue(str(_mismatch(value, "string")), f'"{value}"' if plain and abs(value) < _INT64 else "")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        plain = str(value).removesuffix(".0") if isinstance(value, (str, float)) else ""
        fix = plain if plain.removeprefix("-").isdecimal() and plain.isascii() else ""
        raise WrongValue(str(_mismatch(value, "integer")), fix)
    if not -_INT64 <= value < _INT64:
        raise WrongValue(f"{_short(value)} is out of range for int64")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        fix = value.lower() if isinstance(value, str) and value.lower() in ("true", "false") else ""
        raise WrongValue(str(_mismatch(value, "boolean")), fix)
    return value


def _float(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        # GitLab Runner's users know this line; newer versions of it convert silently
        fix = f"{value}.0" if -_INT64 <= value < _INT64 else ""
        raise WrongValue("cannot load TOML value of type int64 into a Go float", fix, bare=True)
    if not isinstance(value, float):
        raise _mismatch(value, "float")
    if not math.isfinite(value):
        raise WrongValue(f"{value} is not a usable number")
    return value


def _duration(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer(value) / 1_000_000_000
    if not isinstance(value, str):
        raise _mismatch(value, "string")
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        fix = f'"{value}s"' if value.isdecimal() else ""
        raise WrongValue(str(error), fix) from None
    if abs(seconds) * 1_000_000_000 >= _INT64:
        raise WrongValue(f'invalid duration: "{value}"')
    return seconds


def _datetime(value: Any) -> datetime | None:
    if not isinstance(value, datetime):
        raise _mismatch(value, "datetime")
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    # year 1 is Go's zero time: never
    return None if aware.year <= 1 else aware.astimezone(UTC) if aware.year < 9999 else aware


def _policies(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    odd = next((item for item in value if not isinstance(item, str)), value) if isinstance(value, list) else value
    raise WrongValue(f"cannot load value of type {_go_type(odd)} into a StringOrArray", '"always"')


_SCALARS: dict[str, Any] = {
    "text": _text,
    "int": _integer,
    "bool": _boolean,
    "float": _float,
    "duration": _duration,
    "datetime": _datetime,
}
_ITEMS = {
    "list": "text",
    "list-int": "int",
    "list-float": "float",
    "map": "text",
    "map-bool": "bool",
    "map-int": "int",
    "map-list": "list",
}


def _mismatch(value: Any, wanted: str) -> WrongValue:
    return WrongValue(f"incompatible types: TOML value has type {_toml_type(value)}; destination has type {wanted}")


def _toml_type(value: Any) -> str:
    words = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "float"), (list, "slice"), (dict, "map"))
    return next((word for kind, word in words if isinstance(value, kind)), "datetime")


def _go_type(value: Any) -> str:
    words = {"boolean": "bool", "integer": "int64", "float": "float64", "slice": "[]interface {}"}
    word = _toml_type(value)
    return words.get(word, "map[string]interface {}" if word == "map" else word)


def _listed(value: Any) -> str:
    return f'["{value}"]' if isinstance(value, str) and '"' not in value and value.isprintable() else ""


def _assignment(name: str, fix: str) -> str:
    return f"{name} = {fix}" if fix and not fix.startswith("[[") else fix


def _short(value: float) -> str:
    # Python refuses to print integers of thousands of digits
    return str(value) if abs(value) < 10**30 else "a number of that size"
