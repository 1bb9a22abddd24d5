"""The scanner that finds keys in a TOML text: what it finds must be what tomllib reads."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrunner.config.positions import Path, dotted, go_key, outline
from pyrunner.config.save import quoted, toml_key

TEXT = '''# top
concurrent = 1 # one
"quoted key" = 'x'
a.b."c.d" = [1, 2]
[[runners]] # first
  name = """two
lines # no comment"""
  list = [
    "x", # comment with ]
    { inner = 1, "deep" = [ { x = 1 } ] },
  ]
  when = 2026-01-01 10:00:00
  [runners.docker]
    image = "a#b"
[[runners]]
  name = \'\'\'it's\'\'\'
  [[runners.docker.services]]
  [[runners.docker.services]]
    name = "second"
'''


def at(path: Path) -> tuple[int, int]:
    return outline(TEXT).locate(path)


def test_places_of_all_shapes() -> None:
    assert at(("concurrent",)) == (2, 1)
    assert at(("quoted key",)) == (3, 1)
    assert at(("a", "b", "c.d", 1)) == (4, 17)
    assert at(("runners", 0)) == (5, 1)
    assert at(("runners", 0, "name")) == (6, 3)
    assert at(("runners", 0, "list", 1, "inner")) == (10, 7)
    assert at(("runners", 0, "list", 1, "deep", 0, "x")) == (10, 31)
    assert at(("runners", 0, "when")) == (12, 3)
    assert at(("runners", 0, "docker", "image")) == (14, 5)
    assert at(("runners", 1, "name")) == (16, 3)
    assert at(("runners", 1, "docker", "services", 1, "name")) == (19, 5)


def test_a_key_that_is_not_there_is_found_at_its_nearest_parent() -> None:
    assert at(("runners", 1, "token")) == (15, 1)
    assert at(("runners", 1, "docker")) == (17, 3)
    assert at(("nothing",)) == (0, 0)
    assert at(("RUNNERS", 0, "Name")) == (6, 3)


def test_the_last_key_before_a_line() -> None:
    assert go_key(outline(TEXT).last_key(14)) == "runners.docker.image"
    assert go_key(outline("a = 1\nb = = 2").last_key(2)) == "a"


def test_names_in_messages() -> None:
    assert dotted(("runners", 0, "docker", "image")) == "runners[0].docker.image"


_SCALARS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=12)
)
_KEYS = st.text(st.characters(codec="utf-8"), max_size=6)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


def written(value: Any, separator: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{separator}{f',{separator}'.join(written(item, separator) for item in value)}{separator}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(key)} = {written(item, separator)}" for key, item in value.items()) + "}"
    return repr(value)


def values_below(value: Any, path: Path) -> list[tuple[Path, Any]]:
    found = [(path, value)]
    if isinstance(value, dict):
        for key, item in value.items():
            found += values_below(item, (*path, key))
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += values_below(item, (*path, index))
    return found


@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.sampled_from(["", " ", "\n", " # ] } = \" '\n  "]))
def test_every_value_is_found_where_it_stands(document: dict[str, Any], separator: str) -> None:
    # arrays may span lines and hold comments, inline tables may not
    flat = any(isinstance(item, dict) for _, item in values_below(document, ())[1:])
    text = "".join(
        f"{toml_key(key)}\t= {written(value, ' ' if flat else separator)} # note\n" for key, value in document.items()
    )
    assert tomllib.loads(text) == document
    entries = {entry.path: entry for entry in outline(text).entries}
    for path, value in values_below(document, ())[1:]:
        entry = entries[path]
        assert tomllib.loads(f"value = {text[entry.value : entry.end]}") == {"value": value}


@given(st.text())
def test_any_text_is_scanned_without_an_error(text: str) -> None:
    places = outline(text)
    for entry in places.entries:
        assert 0 <= entry.start <= entry.value <= entry.end <= len(text)
        assert places.place(entry.start) >= (1, 1)


def test_endless_nesting_and_repetition_end() -> None:
    outline("a=" + "[" * 100_000)
    outline("a=" + "{b=" * 100_000)
    outline('a="' + "\\" * 100_001)
    outline('a="""' + '""' * 50_000)
