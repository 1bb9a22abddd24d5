"""Where each key stands in a TOML text: for errors that point, and for edits that touch nothing else.

`tomllib` decides what is valid and what values are; this scanner only finds places, so it is lenient, never raises and
runs only when something has to be said about a file or changed in it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass

from pyrunner.config.decode import Path

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_LONG_BASIC = re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{1,2}(?!"))?', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''.*?'''(?:'{1,2}(?!'))?", re.DOTALL)
_PLAIN = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\]}#=]+")
#: Deeper than any config and far from Python's recursion limit.
_DEPTH = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A key, a table header or an element of an array.

    `start` is the offset of the key (of the ``[`` of a header), `value` and `end` enclose the value (of a header: its
    own text). `header` is ``""``, ``"table"`` or ``"array"``.
    """

    path: Path
    start: int
    value: int
    end: int
    header: str = ""


class Outline:
    """All entries of a text, in its order."""

    def __init__(self, text: str, entries: list[Entry]) -> None:
        self.text = text
        self.entries = entries
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._exact: dict[Path, Entry] = {}
        self._below: dict[Path, Entry] = {}
        for entry in entries:
            # keys match in any case, and who asks may know only the proper one
            path = _folded(entry.path)
            self._exact.setdefault(path, entry)
            for length in range(1, len(path)):
                self._below.setdefault(path[:length], entry)

    def find(self, path: Path) -> Entry | None:
        """The entry of `path`; for a table without a header the first entry in it; else that of the nearest parent."""
        path = _folded(path)
        while path:
            if (entry := self._exact.get(path) or self._below.get(path)) is not None:
                return entry
            path = path[:-1]
        return None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column of what `find` finds; (0, 0) when the text has nothing of it."""
        entry = self.find(path)
        return self.place(entry.start) if entry else (0, 0)

    def line(self, number: int) -> str:
        """The text of a line, from 1, without its newline."""
        start = self._lines[number - 1]
        return self.text[start:].split("\n", 1)[0].rstrip("\r")

    def paths_on(self, line: int) -> list[Path]:
        """The keys with text on a line."""
        first = self._lines[line - 1]
        last = self._lines[line] if line < len(self._lines) else len(self.text) + 1
        return [entry.path for entry in self.entries if entry.start < last and entry.end > first]

    def last_key(self, line: int) -> Path:
        """The last key that begins on or before a line: what a syntax error is about."""
        found: Path = ()
        for entry in self.entries:
            if self.place(entry.start)[0] > line:
                break
            found = entry.path
        return found


def outline(text: str) -> Outline:
    """Scan a text; stops silently where it is not TOML."""
    scanner = _Scanner(text)
    try:
        scanner.document()
    except _StopScan:
        return Outline(text, scanner.entries)
    return Outline(text, scanner.entries)


def dotted(path: Path) -> str:
    """``runners[0].docker.image``."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def _folded(path: Path) -> Path:
    return tuple(part.casefold() if isinstance(part, str) else part for part in path)


def go_key(path: Path) -> str:
    """``runners.docker.image``: how decoding errors name a key."""
    return ".".join(part for part in path if isinstance(part, str))


class _StopScan(Exception):  # noqa: N818 - not an error: the rest of the text is not TOML
    pass


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.entries: list[Entry] = []
        self._elements: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table, 0)

    def _header(self) -> Path:
        start = self.at
        double = self.text.startswith("[[", start)
        self.at += 2 if double else 1
        keys = self._keys()
        self._expect("]]" if double else "]")
        path = self._enter(keys, new=double)
        self.entries.append(
            Entry(path=path, start=start, value=start, end=self.at, header="array" if double else "table")
        )
        return path

    def _enter(self, keys: list[str], *, new: bool) -> Path:
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if new and position == len(keys) - 1:
                self._elements[path] = self._elements.get(path, -1) + 1
            if path in self._elements:
                path = (*path, self._elements[path])
        return path

    def _pair(self, table: Path, depth: int) -> None:
        start = self.at
        path = (*table, *self._keys())
        self._expect("=")
        self._skip(_SPACE)
        value, position = self.at, len(self.entries)
        self._value(path, depth)
        self.entries.insert(position, Entry(path=path, start=start, value=value, end=self.at))

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while len(keys) < _DEPTH:
            self._skip(_SPACE)
            keys.append(self._key())
            self._skip(_SPACE)
            if not self._take("."):
                return keys
        raise _StopScan

    def _key(self) -> str:
        for pattern in (_BARE_KEY, _BASIC, _LITERAL):
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return _unquoted(match[0])
        raise _StopScan

    def _value(self, path: Path, depth: int) -> None:
        if depth > _DEPTH:
            raise _StopScan
        first = self.text[self.at : self.at + 1]
        if first == "[":
            self._array(path, depth + 1)
        elif first == "{":
            self._inline_table(path, depth + 1)
        else:
            self._scalar()

    def _scalar(self) -> None:
        for pattern in (_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL, _PLAIN):
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return
        raise _StopScan

    def _array(self, path: Path, depth: int) -> None:
        self.at += 1
        for index in range(len(self.text)):
            self._skip(_BLANK)
            if self._take("]"):
                return
            start, position = self.at, len(self.entries)
            self._value((*path, index), depth)
            self.entries.insert(position, Entry(path=(*path, index), start=start, value=start, end=self.at))
            self._skip(_BLANK)
            if not self._take(","):
                self._expect("]")
                return

    def _inline_table(self, path: Path, depth: int) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self._take("}"):
                return
            self._pair(path, depth)
            self._skip(_BLANK)
            if not self._take(","):
                self._expect("}")
                return

    def _skip(self, pattern: re.Pattern[str]) -> None:
        if match := pattern.match(self.text, self.at):
            self.at = match.end()

    def _take(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _StopScan


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except tomllib.TOMLDecodeError:
        raise _StopScan from None
