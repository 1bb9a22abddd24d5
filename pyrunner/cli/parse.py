"""Command line and environment → `Invocation`, with the grammar of Go's flag package (facts/commands.md 1).

One or two dashes mean the same, ``--flag value`` and ``--flag=value`` too; a boolean flag never takes the next word.
Neither argparse nor click can be taught this grammar without giving up one of its forms.
"""

from __future__ import annotations

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyrunner.cli.spec import Flag

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class Invocation:
    """The parsed call of a command: typed access to flag values by flag name, and the arguments.

    `given` holds the names of the flags that were set by flag or environment; `root` is the invocation of the program
    itself (global options), and `program` the name it was called by.
    """

    def __init__(self, values: dict[str, object], arguments: list[str], given: frozenset[str]) -> None:
        self.values = values
        self.arguments = arguments
        self.given = given
        self.root: Invocation = self
        self.program = "pyrunner"

    def text(self, name: str) -> str:
        """Value of a ``text`` flag."""
        return str(self.values[name])

    def flag(self, name: str) -> bool:
        """Value of a ``bool`` flag."""
        return bool(self.values[name])

    def number(self, name: str) -> int:
        """Value of an ``int`` flag."""
        value = self.values[name]
        return value if isinstance(value, int) else 0

    def seconds(self, name: str) -> float:
        """Value of a ``duration`` or ``float`` flag."""
        value = self.values[name]
        return float(value) if isinstance(value, (int, float)) else 0.0

    def items(self, name: str) -> list[str]:
        """Value of a ``list`` or ``comma`` flag."""
        value = self.values[name]
        return [str(item) for item in value] if isinstance(value, list) else []

    def pairs(self, name: str) -> dict[str, str]:
        """Value of a ``map`` flag."""
        value = self.values[name]
        return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else {}


def parse(
    flags: Iterable[Flag], words: Sequence[str], environment: Mapping[str, str], *, interspersed: bool = False
) -> Invocation:
    """Read `words` after the command's name.

    Raises:
        UsageError: with Go's texts, e.g. ``flag provided but not defined: -x``.
    """
    known = list(flags)
    by_name = {name: flag for flag in known for name in (flag.name, *flag.aliases)}
    values: dict[str, object] = {flag.name: _copy(flag.default) for flag in known}
    given = set()
    for flag in known:
        if (found := _from_environment(flag, environment)) is not None:
            values[flag.name] = found
            given.add(flag.name)
    arguments: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            arguments += rest
            break
        if len(word) < 2 or not word.startswith("-"):
            arguments.append(word)
            if not interspersed:
                arguments += rest
                break
            continue
        name, text = _take(word, rest, by_name)
        flag = by_name[name]
        _store(flag, text, values, fresh=flag.name not in given or flag.name in given and flag.kind == "comma")
        given.add(flag.name)
    return Invocation(values, arguments, frozenset(given))


def _take(word: str, rest: list[str], by_name: Mapping[str, Flag]) -> tuple[str, str]:
    name, equals, text = word.lstrip("-").partition("=") if not word.startswith("---") else (word[2:], "", "")
    if name in ("help", "h") and name not in by_name:
        raise HelpRequested
    flag = by_name.get(name)
    if flag is None:
        raise UsageError(f"flag provided but not defined: -{name}", hint=_did_you_mean(name, by_name))
    if equals:
        return name, text
    if not flag.takes_value:
        return name, "true"
    if not rest:
        raise UsageError(f"flag needs an argument: -{name}")
    return name, rest.pop(0)


class HelpRequested(Exception):  # noqa: N818 - not an error
    """``--help`` was given."""


def _did_you_mean(name: str, by_name: Mapping[str, Flag]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [known for known in by_name if len(known) > 1], 1)
    return f"did you mean --{near[0]}?" if near else ""


def _copy(value: object) -> object:
    if isinstance(value, list):
        return list(value)
    return dict(value) if isinstance(value, dict) else value


def _from_environment(flag: Flag, environment: Mapping[str, str]) -> object:
    for variable in flag.env:
        text = environment.get(variable)
        if text is None:
            continue
        if flag.kind == "bool" and text == "":
            return True
        if text == "" and flag.kind in ("text", "list", "map", "map-bool", "comma", "json", "bool?", "int?"):
            continue
        try:
            return convert(flag, text, zero(flag.kind))
        except ValueError:
            raise UsageError(
                f"could not parse {text} as {flag.kind} value for flag {flag.name}: environment variable {variable}"
            ) from None
    return None


def _store(flag: Flag, text: str, values: dict[str, object], *, fresh: bool) -> None:
    before = zero(flag.kind) if fresh else values[flag.name]
    try:
        values[flag.name] = convert(flag, text, before)
    except ValueError as error:
        raise UsageError(f'invalid value "{text}" for flag -{flag.name}: {error}') from None
    if flag.strict_choices and text not in flag.choices:
        raise UsageError(f'invalid value "{text}" for flag -{flag.name}: expected one of {", ".join(flag.choices)}')


def convert(flag: Flag, text: str, before: object) -> object:
    """The value that `text` gives to a flag whose value so far is `before` (matters for lists and maps).

    Raises:
        ValueError: with the parser's words for what is wrong.
    """
    kind = flag.kind
    if kind in ("bool", "bool?"):
        return boolean(text)
    if kind in ("int", "int?"):
        return _number(text)
    if kind == "float":
        return float(text)
    if kind == "duration":
        from pyrunner.base.durations import parse_duration

        return parse_duration(text)
    if kind == "list":
        return [*before, text] if isinstance(before, list) else [text]
    if kind == "comma":
        return [item.strip() for item in text.split(",") if item.strip()]
    if kind in ("map", "map-bool"):
        return _pair(kind, text, before)
    if kind == "json":
        import json

        return json.loads(text)
    return text


def boolean(text: str) -> bool:
    """Go's ParseBool."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("expected true or false")


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _pair(kind: str, text: str, before: object) -> dict[str, object]:
    key, colon, value = text.partition(":")
    if not colon:
        raise ValueError("expected key:value")
    pair: dict[str, object] = {key: boolean(value) if kind == "map-bool" else value}
    return {**before, **pair} if isinstance(before, dict) else pair
