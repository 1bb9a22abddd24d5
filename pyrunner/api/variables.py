"""Job variables: one ordered list, later definitions win, expansion is pure (facts/job-lifecycle.md section 4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from pyrunner.api.wire import JobVariable

_REFERENCE = re.compile(r"\$(?:\$|\{([^}]*)\}|([*#@!?0-9])|([A-Za-z0-9_]+)|)")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class Variables:
    """An ordered, immutable list of variables with lookup and expansion.

    `file_path` maps the key of a *file* variable to the path that its value takes when referenced.
    """

    def __init__(self, items: Iterable[JobVariable], file_path: Callable[[str], str] = lambda key: key) -> None:
        self._items = tuple(items)
        self._by_key = {item.key: item for item in self._items}
        self._file_path = file_path

    def __iter__(self) -> Iterator[JobVariable]:
        """All definitions in order, duplicates included."""
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> str:
        """Value of `key` as it stands (for a file variable: its content), empty when unknown."""
        item = self._by_key.get(key)
        return item.value if item else ""

    def value(self, key: str) -> str:
        """What a reference to `key` yields: the path for a file variable, else the value; empty when unknown."""
        item = self._by_key.get(key)
        if item is None:
            return ""
        return self._file_path(key) if item.file else item.value

    def find(self, key: str) -> JobVariable | None:
        """The winning definition of `key`."""
        return self._by_key.get(key)

    def flag(self, key: str) -> bool:
        """Boolean reading; what is none counts as false."""
        return read_bool(self.get(key)) is True

    def expand(self, text: str) -> str:
        """Replace ``$name`` and ``${name}`` in `text` once."""
        return expand(text, self.value)

    def expanded(self) -> Variables:
        """All non-raw values expanded once, against the unexpanded list."""
        return Variables(
            (
                item
                if item.raw or "$" not in item.value
                else JobVariable(
                    key=item.key,
                    value=expand(item.value, self.value),
                    public=item.public,
                    file=item.file,
                    masked=item.masked,
                    raw=item.raw,
                )
                for item in self._items
            ),
            self._file_path,
        )

    def plus(self, items: Iterable[JobVariable]) -> Variables:
        """A new list with `items` behind this one's."""
        return Variables((*self._items, *items), self._file_path)

    def last(self) -> list[JobVariable]:
        """The winning definitions only, in order of their first appearance."""
        return [self._by_key[key] for key in dict.fromkeys(item.key for item in self._items)]


def read_bool(text: str) -> bool | None:
    """A boolean variable (4.2): a word in any case, or an integer of which only 1 is true; None for the rest."""
    lowered = text.strip().lower()
    if lowered in ("true", "t"):
        return True
    if lowered in ("false", "f"):
        return False
    return int(lowered[:20]) == 1 if _INTEGER.fullmatch(lowered) else None


def expand(text: str, lookup: Callable[[str], str]) -> str:
    """Expand ``$name`` and ``${name}`` with `lookup` (section 4.2).

    ``$$`` is a dollar, special parameters (``$*``, ``$1`` …) are empty, a ``$`` before anything else stays. Digits
    after ``$`` are single: ``$12`` is the parameter 1 and a ``2``.
    """

    def one(match: re.Match[str]) -> str:
        whole = match.group(0)
        if whole == "$$":
            return "$"
        braces, special, name = match.groups()
        if special is not None:
            return ""
        if name is not None:
            return lookup(name)
        return lookup(braces) if braces is not None else whole

    return _REFERENCE.sub(one, text) if "$" in text else text
