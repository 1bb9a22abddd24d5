"""Quoting for POSIX-like shells: any text without NUL comes out of the shell unchanged."""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z0-9,./@_-]+")
#: What can stand in an ANSI-C string as it is.
_PLAIN = re.compile(r"[ !-&(-\[\]-~]*")
_SHORT = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
_ANSI_C = {
    code: _SHORT.get(chr(code), f"\\x{code:02x}")
    for code in range(1, 256)
    if not 0x20 <= code <= 0x7E or chr(code) in _SHORT
}
_DOUBLE = str.maketrans({character: "\\" + character for character in '\\"$`'})


def to_bytes(text: str) -> bytes:
    """The bytes of `text`: surrogate escapes stand for themselves; NUL, which no shell can hold, is dropped."""
    try:
        return text.encode("utf-8", "surrogateescape").replace(b"\0", b"")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").replace(b"\0", b"")


def ansi_c(text: str) -> str:
    r"""Quote for bash, busybox and ksh: bare, ``''`` or ``$'…'`` with ``\xNN``; the result is plain ASCII."""
    if _BARE.fullmatch(text):
        return text
    if not text:
        return "''"
    if _PLAIN.fullmatch(text):
        return f"$'{text}'"
    return "$'" + to_bytes(text).decode("latin-1").translate(_ANSI_C) + "'"


def posix(text: str) -> str:
    """Quote for every POSIX shell: bare, ``''`` or double quotes."""
    if _BARE.fullmatch(text):
        return text
    if not text:
        return "''"
    return '"' + text.replace("\0", "").translate(_DOUBLE) + '"'


def single(text: str) -> str:
    """Single quotes: for text that holds many characters that double quotes would escape."""
    return "'" + text.replace("\0", "").replace("'", "'\\''") + "'"
