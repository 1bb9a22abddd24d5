from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrunner.archive.glob import BadPatternError, find, matcher


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.txt", ["a.txt", ".txt"], ["d/a.txt", "a.txtx"]),
        ("?at", ["cat"], ["/at", "at"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[!a]x", ["bx"], ["ax", "/x"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[]x]", ["]", "x"], ["["]),
        ("**/*.o", ["a.o", "x/a.o", "x/y/a.o"], ["a.oo"]),
        ("a/**", ["a", "a/b", "a/b/c"], ["ab", "b/a"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az", "a/bz"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("{a,b}/c", ["a/c", "b/c"], ["c/c", "a,b/c"]),
        ("{a/b,c}.x", ["a/b.x", "c.x"], ["b.x"]),
        ("x{,y}", ["x", "xy"], ["xyy"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"], ["b"]),
        (r"\*", ["*"], ["a"]),
        (r"\{a\}", ["{a}"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("ä\n*", ["ä\nx"], ["ä"]),
    ],
)
def test_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    matches = matcher(pattern)
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in other if matches(path)] == []


@pytest.mark.parametrize("pattern", ["[a", "{a", "[z-a]", "a\\", "[", "{" * 20 + "a,b" * 3])
def test_a_broken_pattern_is_told(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        matcher(pattern)


def test_alternatives_that_explode_are_refused() -> None:
    with pytest.raises(BadPatternError, match="too many"):
        matcher("{a,b}" * 30)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").touch()
    (tmp_path / "link").symlink_to("real")
    assert sorted(find(str(tmp_path), "**/file")) == ["real/file"]
    assert sorted(find(str(tmp_path), "*")) == ["link", "real"]
    assert sorted(find(str(tmp_path), "li*/file")) == []


NAMES = st.sampled_from(["a", "b", "ab", "c.txt", ".h"])
PARTS = st.sampled_from(["a", "*", "**", "?", "[ab]", "{a,b}", "a*", "*.txt", "[!a]*", "{a/b,c}"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8), st.lists(PARTS, min_size=1, max_size=4))
def test_finding_agrees_with_matching(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]], parts: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for path in paths:
        (root / "/".join(path)).mkdir(parents=True, exist_ok=True)
    everything = [
        os.path.relpath(os.path.join(directory, name), root) for directory, names, _ in os.walk(root) for name in names
    ]
    pattern = "/".join(parts)
    matches = matcher(pattern)
    assert sorted(set(find(str(root), pattern)) - {"."}) == sorted(path for path in everything if matches(path))
