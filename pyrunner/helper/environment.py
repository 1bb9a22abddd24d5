"""The helper's own environment: the ``--env-file`` with credentials, and expanded words."""

from __future__ import annotations

import os

from pyrunner.base.errors import PyrunnerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

_LINE = r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*[=:]\s*(.*)"
#: A word without any of these means itself.
_SPECIAL = frozenset("$'\"\\")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: str) -> dict[str, str]:
    """Variables of a dotenv file: ``KEY=value``, ``KEY='value'``, ``KEY="value"`` (with ``\\n``), ``#`` comments.

    Raises:
        PyrunnerError: unreadable, or a line that is no assignment (its content is not shown: it may be a secret).
    """
    import re

    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise PyrunnerError(f"--env-file {path}: {error.strerror}") from error
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = re.fullmatch(_LINE, line, re.DOTALL)
        if match is None:
            raise PyrunnerError(f"--env-file {path}:{number}: expected KEY=value")
        values[match.group(1)] = _value(match.group(2).strip())
    return values


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """Lines with their numbers, without comments and empty ones; a double-quoted value may go over several."""
    import re

    waiting, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not waiting:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            start = number
        waiting = f"{waiting}\n{line}" if waiting else line
        value = waiting.partition("=")[2].strip()
        if value[:1] == '"' and re.search(r'(?<!\\)(?:\\\\)*"', value[1:]) is None:
            continue
        yield start, waiting
        waiting = ""
    if waiting:
        yield start, waiting


def _value(text: str) -> str:
    import re

    if text[:1] == "'" and (end := text.find("'", 1)) > 0:
        return text[1:end]
    if text[:1] == '"' and (match := re.match(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)):
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), match.group(1), flags=re.DOTALL)
    return text.partition(" #")[0].rstrip()


def switched_on(name: str) -> bool:
    """Whether the feature flag `name` is on in this process's environment."""
    return os.environ.get(name, "") in ("1", "t", "T", "true", "True", "TRUE")


def expanded(words: Iterable[str], environment: MutableMapping[str, str] | None = None) -> list[str]:
    """Each word expanded as a shell would, with this process's variables."""
    return [word if _SPECIAL.isdisjoint(word) else _expanded(word, environment) for word in words]


def _expanded(word: str, environment: MutableMapping[str, str] | None) -> str:
    from pyrunner.archive.expand import expand

    return expand(word, os.environ if environment is None else environment)
