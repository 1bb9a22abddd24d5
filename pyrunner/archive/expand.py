"""Shell-style expansion of one word: what users write in ``artifacts: paths``, ``name`` and ``cache: paths``.

The runner hands paths over as they stand in the job; the helper commands expand them with their own environment
(facts/job-lifecycle.md 4.2): ``$VAR``, ``${VAR}``, ``${VAR:-word}`` and its relatives, quotes. A word never splits.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATION = re.compile(r"(:?[-+=?]|%%?|##?)(.*)", re.DOTALL)
#: A backslash is taken away only before these: before anything else it may belong to a glob (``\*``).
_ESCAPABLE = "$`\"'\\ \n"


class _MalformedError(ValueError):
    """The word is not shell syntax (an apostrophe in a name, ``$(command)``): it means itself."""


def expand(word: str, environment: Mapping[str, str]) -> str:
    """`word` with variables and quotes resolved; returned as it is where it is no valid shell word."""
    try:
        return _Word(word, environment).whole()
    except _MalformedError:
        return word


class _Word:
    """One pass over a word."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._environment = environment
        self._at = 0

    def whole(self) -> str:
        """The expanded text."""
        parts: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "'":
                parts.append(self._until("'"))
            elif character == '"':
                parts.append(self._double_quoted())
            elif character == "\\":
                parts.append(self._escaped(_ESCAPABLE))
            elif character == "$":
                parts.append(self._parameter())
            else:
                parts.append(character)
        return "".join(parts)

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            raise _MalformedError
        text = self._text[self._at : stop]
        self._at = stop + 1
        return text

    def _double_quoted(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == '"':
                return "".join(parts)
            if character == "\\":
                parts.append(self._escaped('$`"\\\n'))
            elif character == "$":
                parts.append(self._parameter())
            else:
                parts.append(character)
        raise _MalformedError

    def _escaped(self, escapable: str) -> str:
        following = self._text[self._at : self._at + 1]
        if following and following in escapable:
            self._at += 1
            return "" if following == "\n" else following
        return "\\"

    def _parameter(self) -> str:
        if match := _NAME.match(self._text, self._at):
            self._at = match.end()
            return self._environment.get(match.group(), "")
        following = self._text[self._at : self._at + 1]
        if following == "{":
            self._at += 1
            return self._braced(self._balanced())
        if following == "(":
            raise _MalformedError
        return "$"

    def _balanced(self) -> str:
        start, depth = self._at, 1
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "\\":
                self._at += 1
            elif character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    return self._text[start : self._at - 1]
        raise _MalformedError

    def _braced(self, inside: str) -> str:
        if inside.startswith("#") and _NAME.fullmatch(inside, 1):
            return str(len(self._environment.get(inside[1:], "")))
        match = _NAME.match(inside)
        if match is None:
            raise _MalformedError
        name, rest = match.group(), inside[match.end() :]
        value = self._environment.get(name)
        if not rest:
            return value or ""
        operation = _OPERATION.fullmatch(rest)
        if operation is None:
            raise _MalformedError
        return self._operate(value, operation.group(1), operation.group(2))

    def _operate(self, value: str | None, operator: str, word: str) -> str:
        if operator[0] in "%#":
            pattern = _Word(word, self._environment).whole()
            return _trim(value or "", operator, pattern)
        missing = value is None or (operator[0] == ":" and value == "")
        if operator[-1] == "+":
            return "" if missing else _Word(word, self._environment).whole()
        if not missing:
            return value or ""
        if operator[-1] == "?":
            raise _MalformedError
        return _Word(word, self._environment).whole()


def _trim(value: str, operator: str, pattern: str) -> str:
    """``${X%pattern}`` and its three relatives: cut the shortest or longest match off one end."""
    from fnmatch import translate

    match = re.compile(translate(pattern)).match
    ends = range(len(value) + 1)
    if operator[0] == "#":
        order = reversed(ends) if operator == "##" else iter(ends)
        return next((value[end:] for end in order if match(value[:end])), value)
    order = iter(ends) if operator == "%%" else reversed(ends)
    return next((value[:start] for start in order if match(value[start:])), value)
