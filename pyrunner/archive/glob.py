"""Doublestar globs: ``*``, ``?``, ``[a-z]``, ``{a,b}`` within a path segment, ``**`` for any number of directories.

Hidden files match like any others, and symbolic links are never followed (facts/cache-artifacts.md 2.1).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

_META = frozenset("*?[{\\")
#: More alternatives than a person writes: `{a,b}{c,d}…` doubles with each group.
_MOST_ALTERNATIVES = 4096


class BadPatternError(ValueError):
    """The pattern is not a glob."""


def is_glob(pattern: str) -> bool:
    """Whether the pattern holds anything that is not literal."""
    return not _META.isdisjoint(pattern)


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a slash-separated relative path matches `pattern` as a whole.

    Raises:
        BadPatternError: unclosed ``[`` or ``{``.
    """
    text = "|".join(f"(?:{_path_regex(part)})" for part in alternatives(pattern))
    matches = _compiled(text)
    return lambda path: matches(path) is not None


def _compiled(regex: str) -> Callable[[str], re.Match[str] | None]:
    # not above: a path without globs, the usual one, is taken before `re` would be imported
    import re

    return re.compile(regex, re.DOTALL).fullmatch


def alternatives(pattern: str) -> list[str]:
    """`pattern` with its ``{a,b}`` written out."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        span = _first_group(text)
        if span is None:
            done.append(text)
            continue
        start, commas, end = span
        edges = [start, *commas, end]
        choices = [text[left + 1 : right] for left, right in zip(edges, edges[1:], strict=False)]
        waiting += [text[:start] + choice + text[end + 1 :] for choice in reversed(choices)]
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise BadPatternError(f"{pattern}: too many alternatives")
    return done


def _first_group(text: str) -> tuple[int, list[int], int] | None:
    """Position of the first ``{``, of its commas and of its ``}``."""
    start, depth, commas, at = -1, 0, list[int](), 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "[":
            at = _class_end(text, at)
        elif character == "{":
            depth += 1
            if depth == 1:
                start = at
        elif character == "," and depth == 1:
            commas.append(at)
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                return start, commas, at
        at += 1
    if depth:
        raise BadPatternError(f"{text}: unclosed {{")
    return None


def _class_end(text: str, start: int) -> int:
    at = start + 1
    if text[at : at + 1] in ("!", "^"):
        at += 1
    first = at
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "]" and at > first:
            return at
        at += 1
    raise BadPatternError(f"{text}: unclosed [")


def _path_regex(pattern: str) -> str:
    segments: list[str] = []
    for segment in pattern.split("/"):
        if segment != "**" or segments[-1:] != ["**"]:
            segments.append(segment)
    regex = ""
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment != "**":
            regex += _segment_regex(segment) + ("" if last else "/")
        elif not last:
            regex += "(?:[^/]+/)*"
        elif regex.endswith("/"):
            # a final `/**` matches the directory itself, too
            regex = regex[:-1] + "(?:/.*)?"
        else:
            regex += ".*"
    return regex


def _segment_regex(segment: str) -> str:
    import re

    regex, at = "", 0
    while at < len(segment):
        character = segment[at]
        if character == "*":
            regex += "[^/]*"
            while segment[at + 1 : at + 2] == "*":
                at += 1
        elif character == "?":
            regex += "[^/]"
        elif character == "[":
            end = _class_end(segment, at)
            regex += _class_regex(segment[at + 1 : end])
            at = end
        elif character == "\\":
            at += 1
            if at == len(segment):
                raise BadPatternError(f"{segment}: nothing follows the last \\")
            regex += re.escape(segment[at])
        else:
            regex += re.escape(character)
        at += 1
    return regex


def _class_regex(inside: str) -> str:
    import re

    negated = inside[:1] in ("!", "^")
    body, at, start = "", 0, inside[1:] if negated else inside
    while at < len(start):
        if start[at] == "\\" and at + 1 < len(start):
            at += 1
            body += re.escape(start[at])
        else:
            body += "-" if start[at] == "-" else re.escape(start[at])
        at += 1
    regex = f"[^/{body}]" if negated else f"(?!/)[{body}]"
    try:
        re.compile(regex)
    except re.error:
        raise BadPatternError(f"[{inside}]: bad range") from None
    return regex


def find(root: str, pattern: str) -> Iterator[str]:
    """Paths below `root` that match, relative to it, each once.

    Raises:
        BadPatternError: see `matcher`.
    """
    seen = set()
    for part in alternatives(pattern):
        for path in _walk(root, "", [segment for segment in part.split("/") if segment not in ("", ".")]):
            if path not in seen:
                seen.add(path)
                yield path


def _walk(root: str, base: str, segments: list[str]) -> Iterator[str]:
    if not segments:
        yield base or "."
        return
    head, rest = segments[0], segments[1:]
    if head == "**":
        yield from _walk_deep(root, base, rest)
    elif not is_glob(head):
        path = _join(base, head)
        if os.path.lexists(os.path.join(root, path)):
            yield from _into(root, path, rest)
    else:
        matches = _compiled(_segment_regex(head))
        for name, is_directory in _list(root, base):
            if matches(name) and (is_directory or not rest):
                yield from _walk(root, _join(base, name), rest)


def _into(root: str, path: str, rest: list[str]) -> Iterator[str]:
    # a literal segment may be a link to a directory; what the pattern finds below it is still refused by the
    # selection when it leads outside
    if not rest or os.path.isdir(os.path.join(root, path)):
        yield from _walk(root, path, rest)


def _walk_deep(root: str, base: str, rest: list[str]) -> Iterator[str]:
    while rest[:1] == ["**"]:
        rest = rest[1:]
    yield from _walk(root, base, rest)
    for name, is_directory in _list(root, base):
        if is_directory:
            yield from _walk_deep(root, _join(base, name), rest)
        elif not rest:
            yield _join(base, name)


def _list(root: str, base: str) -> list[tuple[str, bool]]:
    """Names in a directory and whether each is a directory itself; nothing where it cannot be read."""
    try:
        with os.scandir(os.path.join(root, base)) as items:
            return sorted((item.name, item.is_dir(follow_symlinks=False)) for item in items)
    except OSError:
        return []


def _join(base: str, name: str) -> str:
    return f"{base}/{name}" if base else name
