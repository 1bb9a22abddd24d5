"""One value of a pipeline file together with its place and name: what keyword readers read from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.yaml_source import Items, Place, Reference, Table, Value

#: GitLab's limit for lists of lists in scripts.
MAX_SCRIPT_NESTING = 10
MAX_COMMANDS = 10_000

_UNITS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
    "w": 604800, "wk": 604800, "wks": 604800, "week": 604800, "weeks": 604800,
    "mo": 2592000, "mos": 2592000, "month": 2592000, "months": 2592000,
    "y": 31557600, "yr": 31557600, "yrs": 31557600, "year": 31557600, "years": 31557600,
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


class Spot(Struct, frozen=True, kw_only=True):
    """A value, where it stands and what it is called, e.g. ``build:artifacts:when``.

    The reading methods raise `PipelineError` with all three.
    """

    value: Value
    place: Place
    name: str

    def error(self, message: str, *, hint: str = "") -> PipelineError:
        """An error about this value."""
        return self.place.error(f"{self.name}: {message}", hint=hint)

    def wrong(self, expected: str, *, hint: str = "") -> PipelineError:
        """An error that says what is here and what should be."""
        return self.error(f"must be {expected}, not {described(self.value)}", hint=hint)

    def text(self) -> str:
        """A text that is not empty."""
        if isinstance(self.value, str) and self.value:
            return self.value
        hint = f'quote it: "{_yaml(self.value)}"' if isinstance(self.value, (int, float)) else ""
        raise self.wrong("a text", hint=hint)

    def texts(self) -> tuple[str, ...]:
        """A list of texts; one text alone counts as a list of it."""
        if isinstance(self.value, str):
            return (self.text(),)
        return tuple(item.text() for item in self.items("a text or a list of texts"))

    def flag(self) -> bool:
        """True or false."""
        if isinstance(self.value, bool):
            return self.value
        raise self.wrong("true or false")

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        if isinstance(self.value, int) and not isinstance(self.value, bool) and low <= self.value <= high:
            return self.value
        raise self.wrong(f"a whole number from {low} to {high}")

    def numbers(self, low: int, high: int) -> tuple[int, ...]:
        """One whole number or a list of them."""
        if isinstance(self.value, Items):
            return tuple(item.number(low, high) for item in self.items("a list"))
        return (self.number(low, high),)

    def one_of(self, choices: Sequence[str]) -> str:
        """One of the given words."""
        if isinstance(self.value, str) and self.value in choices:
            return self.value
        near = suggestion(str(self.value), choices)
        raise self.wrong(f"one of {', '.join(choices)}", hint=near)

    def seconds(self) -> int:
        """A duration in words (``1h 30m``, ``2 days``, ``3600`` seconds), in seconds."""
        text = str(self.value) if isinstance(self.value, (str, int)) and not isinstance(self.value, bool) else ""
        total = duration(text)
        if total is None:
            raise self.wrong("a duration such as 1h 30m")
        return total

    def table(self, expected: str) -> Table:
        """A mapping; `expected` words it for the message."""
        if isinstance(self.value, Table):
            return self.value
        raise self.wrong(expected)

    def items(self, expected: str) -> list[Spot]:
        """The items of a list, each named like the list itself."""
        if not isinstance(self.value, Items):
            raise self.wrong(expected)
        pairs = zip(self.value, self.value.places, strict=True)
        return [Spot(value=value, place=place, name=self.name) for value, place in pairs]

    def fields(
        self, known: Iterable[str], expected: str = "a mapping", *, refused: Iterable[str] = ()
    ) -> dict[str, Spot]:
        """The entries of a mapping, which may only have the keys in `known`; entries that are null are left out."""
        table, names, later = self.table(expected), tuple(known), tuple(refused)
        found = {}
        for key, value in table.items():
            place = table.places[key]
            if key in later:
                raise place.error(f"the keyword {self.name}:{key} is not supported in this version")
            if key not in names:
                raise place.error(
                    f"unknown keyword {self.name}:{key}", hint=suggestion(key, names) or f"known: {', '.join(names)}"
                )
            if value is not None:
                found[key] = Spot(value=value, place=place, name=f"{self.name}:{key}")
        return found

    def commands(self) -> tuple[str, ...]:
        """A script: a text or a list of texts; lists inside are flattened, at most 10 deep, like GitLab does."""
        if isinstance(self.value, str):
            return (self.value,)
        found: list[str] = []
        self._flatten(found, 0)
        return tuple(found)

    def _flatten(self, found: list[str], depth: int) -> None:
        if depth > MAX_SCRIPT_NESTING:
            raise self.error(f"lists are nested more than {MAX_SCRIPT_NESTING} levels deep")
        for item in self.items("a command or a list of commands"):
            if isinstance(item.value, Items):
                item._flatten(found, depth + 1)
            elif isinstance(item.value, str):
                found.append(item.value)
            else:
                raise item.wrong("a command or a list of commands", hint=_command_hint(item.value))
            if len(found) > MAX_COMMANDS:
                raise self.error(f"has more than {MAX_COMMANDS} commands")


def _command_hint(value: Value) -> str:
    if isinstance(value, Table):
        return "a command with a colon and a space must be quoted: - 'echo \"a: b\"'"
    return f'quote it: "{_yaml(value)}"' if isinstance(value, (bool, int, float)) else ""


def _yaml(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def described(value: Value) -> str:
    """A value in words that are short enough for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, Table):
        return "a mapping"
    if isinstance(value, Items):
        return "a list"
    if isinstance(value, Reference):
        return "a reference"
    if isinstance(value, str):
        return f'"{value[:40]}"' if value else "an empty text"
    return f"the {'boolean' if isinstance(value, bool) else 'number'} {_yaml(value)[:40]}"


def suggestion(word: str, known: Iterable[str]) -> str:
    """``did you mean …?``, or nothing when no known word is near."""
    near = get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]}?" if near else ""


def duration(text: str) -> int | None:
    """Seconds of a duration in words, or None when it is not one; ``never`` is 0."""
    words = text.strip().lower()
    if words == "never":
        return 0
    if words.isascii() and words.isdigit():
        return int(words) if len(words) < 12 else None
    rest = re.sub(r",|\band\b", " ", words).strip()
    total = 0.0
    while rest:
        part = _PART.match(rest)
        if part is None or part[2] not in _UNITS:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        rest = rest[part.end() :].strip()
    return int(total) if words and total < 1e12 else None
