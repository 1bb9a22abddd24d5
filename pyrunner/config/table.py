"""`Table`: the base of all config structures.

A class with keyword arguments, defaults and comparison, and nothing else: every command reads the config, and importing
msgspec alone takes longer than all the rest of ``list`` (33 of 76 ms against 10 ms for a bare Python).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Fresh:
    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def fresh(*, default_factory: Callable[[], T]) -> T:
    """A default that is made anew for every table: ``cache: CacheConfig = fresh(default_factory=CacheConfig)``."""
    default: Any = _Fresh(default_factory)
    return cast(T, default)


class Hidden:
    """Stands for a secret value in a `repr`."""

    def __repr__(self) -> str:
        return "…"


@dataclass_transform(kw_only_default=True, field_specifiers=(fresh,))
class Table:
    """A table of config.toml; attributes are the keys in snake_case, in the order in which they are written.

    `rename` gives the TOML name of an attribute. Literal lists and maps are safe as defaults: each table gets its own.
    """

    #: attribute → default, in order
    defaults_: ClassVar[dict[str, Any]] = {}
    #: TOML name → attribute of the keys; attributes without a `Key` are none
    names_: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, *, rename: Callable[[str], str] | None = None) -> None:
        annotations: dict[str, str] = cls.__dict__.get("__annotations__", {})
        cls.defaults_ = {name: cls.__dict__[name] for name in annotations}
        keys = [name for name, text in annotations.items() if "Key(" in text]
        cls.names_ = {rename(name): name for name in keys} if rename else {name: name for name in keys}

    def __init__(self, **values: Any) -> None:
        state = self.__dict__
        for name, default in self.defaults_.items():
            if name in values:
                state[name] = values.pop(name)
            elif isinstance(default, (list, dict)):
                state[name] = default.copy()
            else:
                state[name] = default.make() if isinstance(default, _Fresh) else default
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        from pyrunner.config.keys import fields_of

        # a config ends up in logs and assertion messages: what it holds in secret must not
        values = [(field, getattr(self, field.attribute)) for field in fields_of(type(self))]
        return [
            (field.attribute, Hidden() if field.key.secret else value)
            for field, value in values
            if value not in (None, "", 0, [], {})
        ]
