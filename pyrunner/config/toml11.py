"""TOML 1.1, which GitLab Runner reads, for Python's parser of TOML 1.0.

What 1.1 adds and configs use: inline tables over several lines, with comments and a comma at the end, and the escapes
``\\e`` and ``\\xHH``.
"""

from __future__ import annotations

import re

_LEXEME = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""(?:"{1,2}(?!"))?|'''
    r"'''.*?'''(?:'{1,2}(?!'))?|"
    r""""(?:[^"\\\n]|\\.)*"|"""
    r"'[^'\n]*'|"
    r"#[^\n]*|[\[\]{},\n\r]|[^\"'#\[\]{},\n\r]+|.",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:e|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CLOSING = {"]": "[", "}": "{"}


def as_toml10(text: str) -> str:
    """The same document in TOML 1.0; what is TOML in neither version stays as it is."""
    written: list[str] = []
    open_brackets: list[str] = []
    for match in _LEXEME.finditer(text):
        lexeme = match[0]
        inside = bool(open_brackets) and open_brackets[-1] == "{"
        if lexeme[0] == '"':
            lexeme = _ESCAPE.sub(_escape, lexeme)
        elif inside and lexeme[0] in "#\r\n":
            lexeme = " "
        elif lexeme in "[{":
            open_brackets.append(lexeme)
        elif lexeme in _CLOSING and open_brackets:
            open_brackets.pop()
            if lexeme == "}":
                _drop_last_comma(written)
        written.append(lexeme)
    return "".join(written)


def _escape(match: re.Match[str]) -> str:
    if match[2] is not None:
        return match[0]
    return f"\\u00{match[1] or '1b'}"


def _drop_last_comma(written: list[str]) -> None:
    position = len(written) - 1
    while position >= 0 and not written[position].strip():
        position -= 1
    if position >= 0 and written[position] == ",":
        written[position] = " "
