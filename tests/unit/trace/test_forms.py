"""A secret is also found encoded, escaped, quoted and line by line, by the tools that do so."""

from __future__ import annotations

import base64
import html
import itertools
import json
import os
import shlex
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.job.trace.forms import SHORTEST_FORM, SHORTEST_LINE, forms
from pyrunner.job.trace.masker import Masker, Masks
from pyrunner.job.trace.phrases import MASK

#: Every mark that some encoder treats in its own way.
MARKED = "p@ss w0rd/+%é\"'$`\\<&>~!*(),;:=?#[]{}|^"
KEY = "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQ\nC7/x+y==\n-----END KEY-----"


def masked(text: str | bytes, *values: str, size: int = 7) -> bytes:
    masker = Masker(Masks(value.encode() for value in values))
    data = text.encode() if isinstance(text, str) else text
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(map(masker.feed, pieces)) + masker.flush()


def base64_of(value: str, before: bytes = b"", after: bytes = b"") -> Iterable[bytes]:
    data = before + value.encode() + after
    return base64.b64encode(data), base64.urlsafe_b64encode(data)


@pytest.mark.parametrize("value", ["password", "S3cr3t-Value.1", "12345", MARKED, "ÿþýüûú", KEY])
def test_base64_of_the_value_alone_leaves_nothing(value: str) -> None:
    for encoded in base64_of(value):
        assert masked(encoded, value) == MASK
        assert masked(encoded.rstrip(b"="), value) == MASK


@settings(deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), min_size=6, max_size=40).filter(
        lambda value: len(value.strip().encode()) >= 6
    ),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
def test_base64_of_text_around_the_value_keeps_at_most_what_it_shares(value: str, before: bytes, after: bytes) -> None:
    value = value.strip()
    size = len(value.encode())
    for encoded in base64_of(value, before, after):
        rest = masked(encoded, value)
        assert MASK in rest
        # all characters but the two that belong to neighbours as well
        first, last = -(-len(before) * 8 // 6), (len(before) + size) * 8 // 6
        assert encoded[first:last] not in rest
        left = sum(map(len, rest.split(MASK)))
        assert left <= len(encoded) - (last - first)


def test_base64_in_folded_lines() -> None:
    value = "x+y/" * 60
    for width in (64, 76):
        encoded = base64.b64encode(value.encode() + b"\n").decode()
        lines = [encoded[start : start + width] for start in range(0, len(encoded), width)]
        shown = masked("\n".join(lines), value).split(b"\n")
        assert shown[:-1] == [MASK] * (len(lines) - 1)
        assert len(shown[-1].replace(MASK, b"")) < 8


def test_base64_command_of_a_key() -> None:
    out = subprocess.run(["base64"], input=KEY.encode() + b"\n", stdout=subprocess.PIPE, check=True).stdout
    shown = masked(out, KEY).split(b"\n")
    assert all(line.startswith(MASK) and len(line) < len(MASK) + 8 for line in shown if line)


URL_ENCODERS = {
    "quote": urllib.parse.quote,
    "quote_plus": urllib.parse.quote_plus,
    "strict": lambda value: urllib.parse.quote(value, safe=""),
    "php": lambda value: urllib.parse.quote_plus(value).replace("~", "%7E"),
    "java": lambda value: urllib.parse.quote_plus(value, safe="*").replace("~", "%7E"),
    "encodeURIComponent": lambda value: urllib.parse.quote(value, safe="~!*'()"),
    "encodeURI": lambda value: urllib.parse.quote(value, safe="~!*'();/?:@&=+$,#"),
    "go path": lambda value: urllib.parse.quote(value, safe="~$&+:=@"),
    "go user": lambda value: urllib.parse.quote(value, safe="~$&+,;="),
}
SPACED = st.text("abé %+/\"'&=~*!(", min_size=6, max_size=12).filter(lambda value: value.strip() == value)


@pytest.mark.parametrize("encoder", URL_ENCODERS)
@pytest.mark.parametrize("value", [MARKED, "a b+c%20d", "100%25 sure"])
def test_url_encoded(encoder: str, value: str) -> None:
    encoded = URL_ENCODERS[encoder](value)
    assert masked(f"<{encoded}>", value) == b"<" + MASK + b">"
    lower = "%".join(part[:2].lower() + part[2:] if index else part for index, part in enumerate(encoded.split("%")))
    assert masked(f"<{lower}>", value) == b"<" + MASK + b">"


JSON_ENCODERS = {
    "python": json.dumps,
    "raw": lambda value: json.dumps(value, ensure_ascii=False),
    "php": lambda value: json.dumps(value).replace("/", "\\/"),
    "go": lambda value: _escaped(json.dumps(value, ensure_ascii=False), "<>&"),
    "gson": lambda value: _escaped(json.dumps(value, ensure_ascii=False), "<>&='"),
    ".net": lambda value: (
        '"' + _escaped(json.dumps(value)[1:-1].replace('\\"', "\\u0022"), "<>&'+`").replace("\\u00e9", "\\u00E9") + '"'
    ),
    "twice": lambda value: json.dumps(json.dumps(value, ensure_ascii=False)[1:-1], ensure_ascii=False),
}


def _escaped(text: str, marks: str) -> str:
    for mark in marks:
        text = text.replace(mark, f"\\u{ord(mark):04x}" if marks != "<>&'+`" else f"\\u{ord(mark):04X}")
    return text


@pytest.mark.parametrize("encoder", JSON_ENCODERS)
@pytest.mark.parametrize("value", [MARKED, KEY, 'tab\there "quoted" \\ \x01 end'])
def test_json_escaped(encoder: str, value: str) -> None:
    encoded = JSON_ENCODERS[encoder](value)
    shown = masked(f"<{encoded[1:-1]}>", value)
    assert shown == b"<" + MASK + b">"


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_json_of_jq() -> None:
    out = subprocess.run(["jq", "-nc", "--arg", "x", MARKED, "[$x, $x]"], stdout=subprocess.PIPE, check=True).stdout
    assert masked(out, MARKED) == b'["[MASKED]","[MASKED]"]\n'


SHELL_VALUES = [MARKED, "it's a $HOME", "#start; stop", "~tilde\\", KEY, "tab\tand\x01\x1b'quote' é", "a,b=c:~d"]


@pytest.mark.parametrize("value", SHELL_VALUES)
@pytest.mark.parametrize(
    "script",
    [
        "printf '%q' \"$X\"",
        'printf %s "${X@Q}"',
        "export -p | sed -n '/ X=/,$p'",
        'set -x; : "$X"',
        'LC_ALL=C; printf %q "$X"',
    ],
)
def test_shells_own_quoting(script: str, value: str) -> None:
    shown = masked(_output("bash", script, value), value)
    assert MASK in shown
    for part in value.replace("'", "\n").splitlines():
        assert len(part.strip()) < SHORTEST_LINE or part.strip().encode() not in shown


@pytest.mark.skipif(shutil.which("dash") is None, reason="dash is not installed")
@pytest.mark.parametrize("value", SHELL_VALUES)
def test_other_shells_quoting(value: str) -> None:
    assert b"X='" + MASK + b"'" in masked(_output("dash", "export -p", value), value)


@pytest.mark.parametrize("value", SHELL_VALUES)
def test_pythons_and_powershells_quoting(value: str) -> None:
    assert masked(shlex.join(["<", value]), value).replace(b"'", b"") == b"< " + MASK
    assert masked("'" + value.replace("'", "''") + "'", value) == b"'" + MASK + b"'"


def _output(program: str, script: str, value: str) -> bytes:
    environment = {"X": value, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return subprocess.run(
        [program, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    ).stdout


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_value_of_several_lines(newline: str) -> None:
    printed = KEY.replace("\n", newline)
    assert masked(printed, KEY) == MASK
    assert masked(printed, KEY.replace("\n", "\r\n") + "\r\n") == MASK
    for line in KEY.splitlines():
        assert masked(f"  {line}{newline}", KEY) == f"  [MASKED]{newline}".encode()


def test_lines_are_found_escaped_too() -> None:
    value = '{\n  "user": "ci",\n  "password": "<s3cret>"\n}'
    line = '  "password": "<s3cret>"'
    assert masked(json.dumps(line), value) == b'"  [MASKED]"'


def test_short_lines_and_encodings_of_short_values_leave_harmless_text_alone() -> None:
    assert masked("}\nend if\nYWJj a+b\n", "{\nend if\n}", "abc", "a b") == b"}\nend if\nYWJj a+b\n"
    assert masked("a b abc", "abc", "a b") == MASK + b" " + MASK


@given(st.text(max_size=20))
def test_derived_forms_are_never_short(value: str) -> None:
    data = value.encode("utf-8", "surrogatepass").strip()
    for form in forms(data) - {data}:
        assert len(form) >= SHORTEST_FORM or b"\n" in form or b"\r" in form
    assert not data or data in forms(data)


def test_html_is_not_promised() -> None:
    assert html.escape("a<b>c") not in {form.decode() for form in forms(b"a<b>c")}


ENCODERS = [
    *URL_ENCODERS.values(),
    *(lambda value, encoder=encoder: encoder(value)[1:-1] for encoder in JSON_ENCODERS.values()),
    lambda value: base64.b64encode(value.encode()).decode(),
    lambda value: base64.urlsafe_b64encode(b"u:" + value.encode()).decode(),
    lambda value: value.replace("'", "'\\''"),
    lambda value: value,
]
#: Few different characters: values overlap and contain each other.
VALUES = st.text("ab1/+ é'\"\n", min_size=6, max_size=14).map(str.strip).filter(lambda value: len(value) >= 6)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nothing_of_fifty_values_gets_through_in_any_split(data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=1, max_size=50))
    encoded = st.builds(lambda encode, value: encode(value), st.sampled_from(ENCODERS), st.sampled_from(values))
    parts = data.draw(st.lists(st.one_of(encoded, st.text("ab/ =\n", max_size=8)), max_size=12))
    text = "".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    masks = Masks(value.encode() for value in values)
    whole, cut = Masker(masks), Masker(masks)
    pieces = [text[first:last] for first, last in itertools.pairwise([0, *cuts, len(text)])]
    shown = whole.feed(text) + whole.flush()
    assert b"".join(map(cut.feed, pieces)) + cut.flush() == shown
    for rest in shown.split(MASK):
        for value in values:
            for encode in ENCODERS[:-3]:
                assert encode(value).encode() not in rest
            assert value.encode() not in rest
            assert base64.b64encode(value.encode()).rstrip(b"=") not in rest
