"""Traces as people read them in a terminal."""

from __future__ import annotations

import re

_SECTION = re.compile(rb"section_(?:start|end):\d+:[^\r\n]*\r(?:\x1b\[0K)?")
_CLEAR = re.compile(rb"\x1b\[\d*K")
_COLOR = re.compile(rb"\x1b\[[0-9;]*m")
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1a\x1c-\x1f]|\x1b(?!\[[0-9;]*m)")


def readable(trace: bytes, *, color: bool) -> str:
    """The text of a trace without section markers and control characters; colours stay when `color`."""
    text = _SECTION.sub(b"", trace.replace(b"\r\n", b"\n"))
    text = _CLEAR.sub(b"", text)
    if not color:
        text = _COLOR.sub(b"", text)
    # a carriage return draws a line anew: the last drawing is what a reader would see
    lines = [line.rstrip(b"\r").rpartition(b"\r")[2] for line in text.split(b"\n")]
    return _CONTROL.sub(b"", b"\n".join(lines)).decode(errors="replace")


def tail(text: str, lines: int) -> tuple[str, int]:
    """The last `lines` lines and how many were left out before them."""
    every = text.rstrip("\n").split("\n")
    return "\n".join(every[-lines:]), max(0, len(every) - lines)
