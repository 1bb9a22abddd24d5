"""Cache keys: nothing gets out of the cache directory, whatever the key."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.api.wire import GitInfo, JobInfo, JobResponse, JobVariable
from pyrunner.shells.stages.cache_key import (
    archive_path,
    cache_key,
    fallback_keys,
    main_key,
    sanitized,
)
from pyrunner.testing.shell_contract import script_context


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("key", "key"),
        ("a/b", "a/b"),
        ("a/../b", "b"),
        ("../../etc", "etc"),
        ("a%2fb%2E%2e/c", "a/b../c"),
        ("%2e%2e/%2E%2E/x", "x"),
        ("a\\b", "a/b"),
        ("trailing  \t", "trailing"),
        ("a/  ", "a"),
        ("/lead//double/", "lead/double"),
        ("..", ""),
        ("   ", ""),
        ("", ""),
    ],
)
def test_sanitising(raw: str, clean: str) -> None:
    assert sanitized(raw) == clean


@given(st.text(st.sampled_from("./\\ %2eEfF2a\t\u00a0"), max_size=30))
def test_no_key_leaves_the_cache_directory(raw: str) -> None:
    clean = sanitized(raw)
    parts = clean.split("/") if clean else []
    assert not {"", ".", ".."} & set(parts)
    assert posixpath.normpath("/root/" + clean).startswith("/root")


def test_a_changed_key_warns_and_a_hopeless_one_too() -> None:
    assert cache_key("a\\b", hashed=False).warning == 'cache key "a\\b" sanitized to "a/b"'
    assert cache_key("..", hashed=False).warning == 'cache key ".." could not be sanitized'


def test_hashed_keys_are_the_digest_of_the_raw_key_and_know_the_plain_name() -> None:
    key = cache_key("a/../b", hashed=True)
    assert len(key.name) == 64
    assert (key.human, key.alternate, key.warning) == ("a/../b", "b", "")
    assert cache_key("b", hashed=False).alternate == cache_key("b", hashed=True).name


def test_the_default_key_is_job_and_ref(tmp_path: Path) -> None:
    job = JobResponse(job_info=JobInfo(name="build"), git_info=GitInfo(ref="main"))
    context = script_context(tmp_path, job=job, variables=[JobVariable(key="K", value="v")])
    assert main_key(context, "").name == "build/main"
    assert main_key(context, "x-$K").name == "x-v"


def test_the_protected_namespace_is_no_fallback(tmp_path: Path) -> None:
    refused = JobVariable(key="CACHE_FALLBACK_KEY", value="main-protected. ")
    keys, warnings = fallback_keys(script_context(tmp_path, variables=[refused]), ["one", "", ".."])
    assert [key.name for key in keys] == ["one"]
    assert warnings[0] == 'CACHE_FALLBACK_KEY "main-protected. " not allowed to end in "-protected"'
    allowed = JobVariable(key="CACHE_FALLBACK_KEY", value="main")
    keys, _ = fallback_keys(script_context(tmp_path, variables=[allowed]), ["one"])
    assert [key.name for key in keys] == ["one", "main"]


def test_archives_are_named_relative_to_the_project(tmp_path: Path) -> None:
    context = script_context(tmp_path)
    assert archive_path(context, "k") == "../../../../../cache/group/proj/k/cache.zip"
    relative = script_context(tmp_path, project_dir="builds/g/p", project_cache_dir="cache/g/p")
    assert archive_path(relative, "k") == "../../../cache/g/p/k/cache.zip"
    mixed = script_context(tmp_path, project_dir="builds/g/p")
    assert archive_path(mixed, "k") == f"{tmp_path}/cache/group/proj/k/cache.zip"
