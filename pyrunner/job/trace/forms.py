"""The shapes in which a secret gets into a log: as it is, encoded, escaped, quoted, line by line. Pure.

Harmless text must survive, so what is short is left alone: an encoded form below `SHORTEST_FORM` bytes, and a line of
a longer value below `SHORTEST_LINE`. The value itself counts at any length, as GitLab Runner has it.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator

#: Bytes; base64 of a value of five bytes has a part of this length wherever the value stands.
SHORTEST_FORM = 6
#: Bytes of a line of a value of several lines.
SHORTEST_LINE = 8

#: What no encoding but base64 changes.
_PLAIN = re.compile(rb"[0-9A-Za-z._-]*")

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
#: Columns at which tools fold base64: PEM and base64(1).
_FOLDS = (64, 76)
#: Where the part begins that the value alone decides, by how many bytes (modulo 3) stand before it.
_FIRST_CHARACTER = (0, 2, 3)

#: What encoders leave as it is, beside letters, digits, ``.``, ``_`` and ``-``.
_URL_KEPT = (
    b"",  # PHP
    b"~",  # RFC 3986, Go's queries, Python's quote_plus
    b"~/",  # Python's quote
    b"*",  # HTML forms, Java
    b"!*()",  # .NET
    b"~!*'()",  # JavaScript's encodeURIComponent
    b"~!*'();/?:@&=+$,#",  # JavaScript's encodeURI
    b"~$&+:=@",  # Go's path segments
    b"~$&+,/:;=@",  # Go's paths
    b"~$&+,;=",  # Go's user names and passwords
    b"~!$%&'()*+,",  # user names and passwords of browsers and Node
    b"~!$%&'()*+,/:;=@[\\]^|",  # paths of the same
)
_URL_ESCAPES = ([b"%%%02X" % byte for byte in range(256)], [b"%%%02x" % byte for byte in range(256)])

_JSON_NONE: dict[int, str] = {}
# Go; Java's Gson; .NET
_JSON_HTML = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&"})
_JSON_GSON = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&'="})
_JSON_STRICT = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&'+`\x7f"})
_JSON_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")

# `~` and `#` only where the shell would read them
_BASH_BARE = re.compile(rb"[^0-9A-Za-z._/:=@%+#~\x80-\xff-]|(?:^|(?<=[:=]))~|^#")
_BASH_QUOTED = re.compile(rb'[\\"$`]')
_ANSI = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 27: b"\\E"} | {
    byte: b"\\" + bytes([byte]) for byte in b"\\'"
}
_ANSI_SPECIAL = re.compile(rb"[\x00-\x1f\x7f\\']")
_ANSI_SPECIAL_C = re.compile(rb"[\x00-\x1f\x7f-\xff\\']")


def forms(value: bytes) -> set[bytes]:
    """Everything that must not appear in a log when `value` must not; empty for white space."""
    value = value.strip()
    if not value:
        return set()
    wholes, lines = {value}, set()
    if b"\n" in value or b"\r" in value:
        unix = value.replace(b"\r\n", b"\n")
        wholes |= {unix, unix.replace(b"\n", b"\r\n")}
        lines = {line for line in map(bytes.strip, value.splitlines()) if len(line) >= SHORTEST_LINE}
    derived: set[bytes] = set()
    for whole in wholes:
        derived.update(_base64(whole))
    for text in wholes | lines:
        if not _PLAIN.fullmatch(text):
            derived.update(_url(text), _json(text), _shell(text))
    return wholes | lines | {form for form in derived if len(form) >= SHORTEST_FORM}


def _base64(value: bytes) -> Iterator[bytes]:
    """Both alphabets, wherever the value stands in what is encoded, and folded when it stands at the beginning."""
    for lead, first in enumerate(_FIRST_CHARACTER):
        encoded = b2a_base64(bytes(lead) + value, newline=False)[first:]
        # Characters that the value shares with what follows are only known when nothing does, or a line break.
        certain = encoded[: (lead + len(value)) * 8 // 6 - first]
        parts = {certain, encoded.rstrip(b"="), encoded}
        yield from parts
        yield from (part.translate(_URL_SAFE) for part in parts)
        if lead == 0 and len(certain) > min(_FOLDS):
            yield from _folded(parts)


def _folded(texts: Iterable[bytes]) -> Iterator[bytes]:
    for text in texts:
        for width in _FOLDS:
            lines = (text[start : start + width] for start in range(0, len(text), width))
            yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def _url(text: bytes) -> Iterator[bytes]:
    """Percent-encoded by any common encoder, hex digits in either case, a space as ``%20`` or ``+``."""
    special = frozenset(re.sub(rb"[0-9A-Za-z._-]", b"", text))
    for changed in {special.difference(kept) for kept in _URL_KEPT}:
        # the escapes contain `%`
        order = sorted(changed, key=lambda byte: (byte != ord("%"), byte))
        for escapes in _URL_ESCAPES:
            encoded = text
            for byte in order:
                if byte != ord(" "):
                    encoded = encoded.replace(bytes([byte]), escapes[byte])
            yield encoded.replace(b" ", b"%20")
            yield encoded.replace(b" ", b"+")


def _json(value: bytes) -> Iterator[bytes]:
    """Inside a JSON string: raw or ASCII, slashes and HTML's marks escaped or not, and a string in a string."""
    try:
        decoded = value.decode()
    except UnicodeDecodeError:
        return
    raw, ascii_only = (json.dumps(decoded, ensure_ascii=ascii)[1:-1] for ascii in (False, True))
    found = {text.translate(table) for text in (raw, ascii_only) for table in (_JSON_NONE, _JSON_HTML, _JSON_GSON)}
    found.add(ascii_only.replace('\\"', "\\u0022").translate(_JSON_STRICT))
    found |= {form.replace("/", "\\/") for form in found}
    found |= {_JSON_ESCAPE.sub(lambda escape: "\\u" + escape[0][2:].upper(), form) for form in found}
    found.add(json.dumps(raw, ensure_ascii=False)[1:-1])
    yield from (form.encode() for form in found)


def _shell(text: bytes) -> Iterator[bytes]:
    """Between single or double quotes, behind backslashes, or as ``$'…'``; the quotes around it are left out."""
    for quote in (b"'\\''", b"'\"'\"'", b"''"):
        yield text.replace(b"'", quote)
    yield _BASH_QUOTED.sub(rb"\\\g<0>", text)
    yield _BASH_BARE.sub(rb"\\\g<0>", text)
    for special in (_ANSI_SPECIAL, _ANSI_SPECIAL_C):
        yield special.sub(lambda found: _ANSI.get(found[0][0], b"\\%03o" % found[0][0]), text)
