from __future__ import annotations

import posixpath
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.errors import SystemFailure
from pyrunner.job.directories import Place, project_slug, resolve_directories

PLACE = Place(
    builds_dir="/builds",
    cache_dir="/cache",
    shared=True,
    short_token="abcdefghi",
    concurrent_project_id=2,
    repo_url="https://gitlab-ci-token:secret@gitlab.example/group/sub/proj.git",
    project_id=7,
)


def test_shared_builds_dir_holds_token_and_number() -> None:
    directories = resolve_directories(PLACE)
    assert directories.project_dir == "/builds/abcdefghi/2/group/sub/proj"
    assert directories.temp_dir == "/builds/abcdefghi/2/group/sub/proj.tmp"
    assert directories.project_cache_dir == "/cache/group/sub/proj"


def test_builds_dir_of_its_own_holds_the_slug_only() -> None:
    assert resolve_directories(replace(PLACE, shared=False)).project_dir == "/builds/group/sub/proj"


def test_empty_strategy_has_a_directory_of_its_own() -> None:
    directories = resolve_directories(replace(PLACE, git_strategy="empty", shared=False))
    assert directories.project_dir == "/builds/group/sub/proj-empty"
    assert directories.project_cache_dir == "/cache/group/sub/proj"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "not a url",
        "/local/path.git",
        "https://host/",
        "https://host/a/../../etc",
        "https://host/%2e%2e/x",
        "http://[x",
    ],
)
def test_unusable_repo_url_never_leaves_the_builds_dir(url: str) -> None:
    assert project_slug(url, 7) == "project-7"


@given(st.text())
def test_slug_is_always_a_clean_relative_path(path: str) -> None:
    slug = project_slug(f"https://host/{path}", 7)
    assert slug
    assert not slug.startswith("/")
    assert posixpath.normpath(slug) == slug
    assert ".." not in slug.split("/")


def test_clone_path_must_be_allowed() -> None:
    with pytest.raises(SystemFailure, match="setting GIT_CLONE_PATH is not allowed") as caught:
        resolve_directories(replace(PLACE, clone_path="/builds/x"))
    assert caught.value.reason == "runner_configuration_error"


@pytest.mark.parametrize("path", ["/elsewhere", "/builds/../etc", "/buildsx/y", "relative"])
def test_clone_path_outside_builds_dir_is_refused(path: str) -> None:
    with pytest.raises(SystemFailure, match='the GIT_CLONE_PATH=".*" has to be within "/builds"'):
        resolve_directories(replace(PLACE, clone_path=path, custom_allowed=True))


def test_clone_path_is_used_literally() -> None:
    place = replace(PLACE, clone_path="/builds/go/src/x", custom_allowed=True)
    assert resolve_directories(place).project_dir == "/builds/go/src/x"


@pytest.mark.parametrize(
    ("key", "text"), [("builds_dir", "the builds_dir is not"), ("cache_dir", "the cache_dir is not")]
)
def test_missing_root_is_a_configuration_error(key: str, text: str) -> None:
    with pytest.raises(SystemFailure, match=text) as caught:
        resolve_directories(replace(PLACE, **{key: ""}))
    assert caught.value.reason == "runner_configuration_error"
    assert not caught.value.retriable
