from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.cache.keys import archive_path, hashed_key, is_fallback_allowed, plain_key, raw_key
from pyrunner.cache.local import LocalArchive


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("main", "main"),
        ("a/b", "a/b"),
        ("a%2fb%2F%2e%2E/c", "a/c"),
        ("..\\..\\x", "x"),
        ("../../etc/passwd", "etc/passwd"),
        ("/abs/", "abs"),
        ("trailing  ", "trailing"),
        ("a/ / ", "a"),
        ("a//./b", "a/b"),
    ],
)
def test_keys_stay_below_the_cache_directory(raw: str, name: str) -> None:
    key = plain_key(raw)
    assert key.name == name
    assert (key.warning != "") == (raw != name)


@pytest.mark.parametrize("raw", ["..", "/", ".", "%2e%2e", "   "])
def test_a_key_of_which_nothing_is_left(raw: str) -> None:
    assert plain_key(raw).name == ""
    assert plain_key(raw).warning == f'cache key "{raw}" could not be sanitized'


def test_the_change_is_told() -> None:
    assert plain_key("a\\b").warning == 'cache key "a\\b" sanitized to "a/b"'


@given(st.text(alphabet="ab./\\%2eEfF \t", max_size=30))
def test_no_key_climbs(raw: str) -> None:
    name = plain_key(raw).name
    assert not name.startswith("/")
    assert ".." not in name.split("/")
    assert plain_key(name).name == name


def test_an_empty_key_is_job_and_ref() -> None:
    assert raw_key("", "build", "feature/x") == "build/feature/x"
    assert raw_key("own", "build", "main") == "own"


def test_hashed_keys_keep_the_readable_one() -> None:
    key = hashed_key("../main")
    assert (len(key.name), key.shown, key.warning) == (64, "../main", "")
    assert archive_path("/cache/group/project", key) == posixpath.join("/cache/group/project", key.name, "cache.zip")


def test_protected_caches_are_no_fallback() -> None:
    assert not is_fallback_allowed("main-protected. .")
    assert is_fallback_allowed("main-non_protecte")


def test_the_alternate_archive_is_taken_over_once(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    archive = LocalArchive(str(tmp_path / "new/cache.zip"))
    assert archive.adopt(str(tmp_path / "old"))
    assert (tmp_path / "new/cache.zip").read_text() == "old"
    (tmp_path / "old").write_text("other")
    assert not archive.adopt(str(tmp_path / "old"))
    assert not archive.adopt("")


def test_metadata_has_lower_case_keys(tmp_path: Path) -> None:
    archive = LocalArchive(str(tmp_path / "cache.zip"))
    archive.write_metadata({"CacheKey": "main"})
    assert (tmp_path / "metadata.json").read_text() == '{"cachekey": "main"}'
    assert (tmp_path / "metadata.json").stat().st_mode & 0o137 == 0
