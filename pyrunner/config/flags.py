"""Which flags and variables set which key of ``[[runners]]`` (facts/config-toml.md 1 and 5 to 14).

Derived from the model: no flag is written down anywhere else, so none can be missing or differ from its key.
`pyrunner.cli.runner_flags` makes command line flags of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyrunner.base.errors import UsageError
from pyrunner.config.decode import Decoded, decode
from pyrunner.config.keys import Field, dashed, field_of, fields_of, names_of
from pyrunner.config.model import RunnerConfig
from pyrunner.config.positions import dotted
from pyrunner.config.table import Table

#: kind of key → kind of flag (`pyrunner.cli.spec.KINDS`)
_KINDS = {
    "text": "text",
    "int": "int",
    "bool": "bool",
    "float": "float",
    "duration": "duration",
    "list": "list",
    "list-int": "list",
    "policies": "comma",
    "map": "map",
    "map-bool": "map-bool",
    "map-int": "map",
    "map-list": "map",
    "tables": "json",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FlagKey:
    """The flag of one key: `path` leads to it from a `RunnerConfig` (TOML names), `env` is empty when it has none."""

    name: str
    kind: str
    env: str
    aliases: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    section: str
    path: tuple[str, ...]


def flag_keys() -> list[FlagKey]:
    """The flags of all keys that have one, in the order of the file."""
    return list(_walk(RunnerConfig, (), "", "RUNNER"))


def _walk(table: type[Table], path: tuple[str, ...], flags: str, env: str) -> Iterator[FlagKey]:
    for field in fields_of(table):
        here = (*path, field.name)
        if field.kind == "table":
            if field.key.prefix and field.table is not None:
                prefix = f"{flags}-{field.key.prefix}".removeprefix("-")
                yield from _walk(field.table, here, prefix, prefix.replace("-", "_").upper())
        elif field.key.flag != "" and field.kind in _KINDS and (field.kind != "tables" or field.key.flag):
            yield _flag_key(field, here, flags, env)


def _flag_key(field: Field, path: tuple[str, ...], flags: str, env: str) -> FlagKey:
    kind = _KINDS[field.kind]
    return FlagKey(
        name=field.key.flag or f"{flags}-{dashed(field.attribute)}".removeprefix("-"),
        kind=f"{kind}?" if field.optional and kind in ("bool", "int") else kind,
        env=f"{env}_{field.attribute.upper()}" if field.key.env is None else field.key.env,
        aliases=field.key.aliases,
        help=field.key.help,
        choices=field.key.choices,
        section=path[0] if len(path) > 1 else "runner",
        path=path,
    )


def build_runner(values: Mapping[str, Any], given: Collection[str]) -> RunnerConfig:
    """The entry that flag values describe; tables of which no flag was given stay absent.

    Args:
        values: by flag name.
        given: the names that were set; a default that is not zero (the host name) counts as well.

    Raises:
        UsageError: a value does not fit its key, e.g. a group id that is no number.
    """
    runner = RunnerConfig()
    for flag in flag_keys():
        if flag.name in given or values.get(flag.name):
            _place(runner, flag, values[flag.name])
    return runner


def _place(runner: RunnerConfig, flag: FlagKey, value: Any) -> None:
    table: Table = runner
    for name in flag.path[:-1]:
        inner = field_of(type(table), name)
        if getattr(table, inner.attribute) is None and inner.table is not None:
            setattr(table, inner.attribute, inner.table())
        table = getattr(table, inner.attribute)
    field = field_of(type(table), flag.path[-1])
    try:
        setattr(table, field.attribute, _CONVERSIONS.get(field.kind, _same)(field, value))
    except (ValueError, TypeError) as error:
        raise UsageError(f'invalid value "{value}" for flag -{flag.name}: {error}') from None


def _same(_field: Field, value: Any) -> Any:
    return value


def _numbers(_field: Field, value: list[str]) -> list[int]:
    return [int(item) for item in value]


def _numbered(_field: Field, value: dict[str, str]) -> dict[str, int]:
    return {key: int(item) for key, item in value.items()}


def _listed(_field: Field, value: dict[str, str]) -> dict[str, list[str]]:
    return {key: item.split(",") for key, item in value.items()}


def _tables(field: Field, value: Any) -> list[Table]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value) or field.table is None:
        raise ValueError("expected a JSON array of objects")
    notes = Decoded()
    tables = [decode(field.table, item, notes, (index,)) for index, item in enumerate(value)]
    if notes.problems:
        raise ValueError(f"{dotted(notes.problems[0].path)}: {notes.problems[0].message}")
    if notes.unknown:
        known = ", ".join(names_of(field.table))
        raise ValueError(f"unknown key {dotted(notes.unknown[0][0])}; known: {known}")
    return tables


_CONVERSIONS: dict[str, Callable[[Field, Any], Any]] = {
    "list-int": _numbers,
    "map-int": _numbered,
    "map-list": _listed,
    "tables": _tables,
}
