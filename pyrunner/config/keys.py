"""How a config key is declared, and what can be read back from the declaration.

A key is an attribute of a `Table`, annotated with its type and a `Key`::

    class SshConfig(Table):
        port: Annotated[str, Key("port; default 22")] = ""

Loading, saving, the flags of `register`, the JSON Schema and `lint` all read this one declaration, so none of them can
lack a key. Annotations stay text until a key is used (`field_of`): a `list` of two runners pays for the fifteen keys
that its file holds, not for all four hundred.
"""

from __future__ import annotations

import sys
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pyrunner.config.table import Table

#: Seconds; in TOML a Go duration string, or an integer of nanoseconds.
Duration = Annotated[float, "duration"]
#: Pull policies: in TOML one string or an array of strings.
Policies = Annotated[list[str], "policies"]
#: A table whose keys are not ours, kept as it is.
Free = Annotated[dict[str, Any], "free"]


class Key:
    """What a declaration says beyond name, type and default (facts/config-toml.md 1).

    Args:
        help: one line.
        always: written on save even when zero or empty (write rule ``A``); otherwise only when set (``S``).
        flag: flag of `register` when it deviates from the rule; ``""`` = none.
        env: environment variable when it deviates from the rule; ``""`` = none.
        aliases: further names of the flag.
        prefix: of a table: the flags of its keys start with this and a dash; ``""`` = its keys have no flags.
        choices: the values that have a meaning; others are a warning of `lint`.
        secret: never shown.
    """

    __slots__ = ("aliases", "always", "choices", "env", "flag", "help", "prefix", "secret")

    def __init__(
        self,
        help: str,  # noqa: A002 - reads best at the declarations
        *,
        always: bool = False,
        flag: str | None = None,
        env: str | None = None,
        aliases: tuple[str, ...] = (),
        prefix: str = "",
        choices: tuple[str, ...] = (),
        secret: bool = False,
    ) -> None:
        self.help = help
        self.always = always
        self.flag = flag
        self.env = env
        self.aliases = aliases
        self.prefix = prefix
        self.choices = choices
        self.secret = secret


class Field:
    """One key of one table, resolved.

    `kind` is one of `KINDS`; `optional` keys tell absent (None) from zero; `table` is the structure of the kinds
    ``table`` and ``tables``.
    """

    __slots__ = ("attribute", "key", "kind", "name", "optional", "table")

    def __init__(
        self, attribute: str, name: str, kind: str, key: Key, *, optional: bool, table: type[Table] | None
    ) -> None:
        self.attribute = attribute
        self.name = name
        self.kind = kind
        self.key = key
        self.optional = optional
        self.table = table

    @property
    def is_table(self) -> bool:
        """Whether it is written as ``[…]`` or ``[[…]]``."""
        return self.kind in ("table", "tables", "free", "map", "map-bool", "map-int", "map-list")


#: ``list-…`` are arrays and ``map-…`` tables of what their names say, ``tables`` is an array of tables, ``free`` a
#: table whose keys are not ours.
KINDS = (
    "text", "int", "bool", "float", "duration", "datetime", "policies", "list", "list-int", "list-float",
    "map", "map-bool", "map-int", "map-list", "free", "table", "tables",
)  # fmt: skip

_BY_TYPE: dict[object, str] = {
    str: "text",
    int: "int",
    bool: "bool",
    float: "float",
    list[str]: "list",
    list[int]: "list-int",
    list[float]: "list-float",
    dict[str, str]: "map",
    dict[str, bool]: "map-bool",
    dict[str, int]: "map-int",
    dict[str, list[str]]: "map-list",
}


def names_of(table: type[Table]) -> dict[str, str]:
    """TOML name → attribute, of the keys of a table in their order (attributes that are no keys are left out)."""
    return table.names_


_FOLDED: dict[type[Table], dict[str, str]] = {}
_FIELDS: dict[tuple[type[Table], str], Field] = {}


def folded_names_of(table: type[Table]) -> dict[str, str]:
    """Case-folded TOML name → TOML name."""
    if (known := _FOLDED.get(table)) is None:
        known = _FOLDED[table] = {name.casefold(): name for name in names_of(table)}
    return known


def fields_of(table: type[Table]) -> list[Field]:
    """All keys of a table, in the order in which they are written."""
    return [field_of(table, name) for name in names_of(table)]


def field_of(table: type[Table], name: str) -> Field:
    """The key `name` (as TOML spells it) of a table."""
    if (known := _FIELDS.get((table, name))) is None:
        known = _FIELDS[table, name] = _resolved(table, name)
    return known


def _resolved(table: type[Table], name: str) -> Field:
    attribute = names_of(table)[name]
    # our own text; typing.get_type_hints would resolve the whole table, and import every room of it
    annotated = eval(table.__annotations__[attribute], {}, _Names(table.__module__))  # noqa: S307
    declared, key = get_args(annotated)[0], annotated.__metadata__[-1]
    alias = annotated.__metadata__[0] if len(annotated.__metadata__) > 1 else ""
    parts = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    kind, structure = _kind(alias or next(part for part in parts if part is not type(None)))
    return Field(attribute, name, kind, key, optional=type(None) in parts, table=structure)


class _Names(dict[str, Any]):
    """What annotations may name: the attributes of a module, also those that it imports on first use."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = sys.modules[module]

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None


def _kind(declared: Any) -> tuple[str, type[Table] | None]:
    if isinstance(declared, str):
        return declared, None
    if get_origin(declared) is Annotated:
        return declared.__metadata__[0], None
    if (kind := _BY_TYPE.get(declared)) is not None:
        return kind, None
    if get_origin(declared) is list:
        return "tables", get_args(declared)[0]
    if isinstance(declared, type) and issubclass(declared, Table):
        return "table", declared
    return "datetime", None


_INITIALISMS = {"arn": "ARN", "id": "ID"}


def camel_case(attribute: str) -> str:
    """``role_arn`` → ``RoleARN``: how the tables of GitLab Runner's oldest sections spell their keys."""
    return "".join(_INITIALISMS.get(word, word.capitalize()) for word in attribute.split("_"))


def dashed(attribute: str) -> str:
    """``tls_ca_file`` → ``tls-ca-file``."""
    return attribute.replace("_", "-")
