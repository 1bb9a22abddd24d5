"""Caches: facts/job-lifecycle.md section 8, facts/cache-artifacts.md 1.1, 1.2 and 4. Names begin with the section."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from job_life.world import Result, World

FILL = ("mkdir -p c", "echo cached > c/file")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def cache(**fields: Any) -> list[dict[str, Any]]:
    """One entry."""
    return [{"key": "k", "paths": ["c/"], "policy": "pull-push", **fields}]


def run(world: World, *script: str, cache: list[dict[str, Any]], **fields: Any) -> Result:
    """A job without sources in an empty directory, so that only the cache brings files."""
    variables = {"GIT_STRATEGY": "empty", **fields.pop("variables", {})}
    return world.run(*script, cache=cache, variables=variables, **fields)


def archives(world: World) -> dict[str, Path]:
    """Archives by key."""
    return {str(path.parent.relative_to(world.cache)): path for path in sorted(world.cache.rglob("cache.zip"))}


# --- keys -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Key:
    """How a key of a payload is shown and stored; `shown` is the name unless given."""

    id: str
    key: str
    name: str = ""
    shown: str | None = None
    says: list[str] = field(default_factory=list)
    hashed: bool = False


def digest(text: str) -> str:
    """Directory of a hashed key."""
    return hashlib.sha256(text.encode()).hexdigest()


def sanitized(key: str, name: str) -> Key:
    """A key that is changed, with a warning."""
    return Key(
        id=f"8.1-sanitised-{name or 'nothing'}-{len(key)}", key=key, name=name, says=[f'"{key}" sanitized to "{name}"']
    )


KEYS = [
    Key(id="8.1-plain", key="k", name="k"),
    Key(id="8.1-with-slashes", key="group/of/keys", name="group/of/keys"),
    Key(id="8.1-variables", key="$CI_JOB_NAME-${REF}", name="test-main"),
    Key(id="8.1-unknown-variables-are-empty", key="a$NOBODY-b", name="a-b"),
    Key(id="8.1-default-is-job-and-ref", key="", name="job/main"),
    Key(id="8.1-spaces-inside-stay", key="a b", name="a b"),
    Key(id="8.1-quotes-and-dollars", key="a'b\"$$c", name="a'b\"$c"),
    Key(id="8.1-non-ascii", key="clé-λ", name="clé-λ"),
    sanitized("%2e%2E%2fescape", "escape"),
    sanitized("a%2Fb", "a/b"),
    sanitized("..\\..\\up", "up"),
    sanitized("../../up/./x", "up/x"),
    sanitized("tail  ", "tail"),
    sanitized("tail/ \t", "tail"),
    sanitized("/root", "root"),
    Key(id="8.1-nothing-left", key="..", shown="", says=['"cache key ".." could not be sanitized'[1:]]),
    Key(id="8.1-nothing-left-of-dots", key="%2e%2e/", shown="", says=['cache key "%2e%2e/" could not be sanitized']),
    Key(id="8.1-hashed", key="k", name=digest("k"), shown="k", hashed=True),
    Key(id="8.1-hashed-without-sanitising", key="../up", name=digest("../up"), shown="../up", hashed=True),
    Key(id="8.1-hashed-default", key="", name=digest("job/main"), shown="job/main", hashed=True),
]


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case.id)
def test_key(world: World, case: Key) -> None:
    variables = {"CI_JOB_NAME": "test", "REF": "main", "FF_HASH_CACHE_KEYS": str(case.hashed).lower()}
    result = run(world, *FILL, cache=cache(key=case.key), variables=variables)
    for text in case.says:
        assert text in result.text
    shown = case.name if case.shown is None else case.shown
    if not shown:
        assert "Skipping cache extraction due to empty cache key" in result.text
        assert "Skipping cache archiving due to empty cache key" in result.text
        assert archives(world) == {}
        return
    assert f"Checking cache for {shown}..." in result.section("restore_cache")
    assert f"Creating cache {shown}..." in result.section("archive_cache")
    assert list(archives(world)) == [case.name]
    assert json.loads((world.cache / case.name / "metadata.json").read_text()) == {"cachekey": shown}
    second = run(world, "cat c/file", cache=cache(key=case.key), variables=variables)
    assert "Successfully extracted cache" in second.text


# --- fallback keys ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """Which keys are tried, given that there is a cache of key `there`."""

    id: str
    tried: list[str]
    there: str = "none"
    keys: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    says: str = ""
    found: bool = False


REFUSED = 'CACHE_FALLBACK_KEY "{}" not allowed to end in "-protected"'
FALLBACKS = [
    Fallback(id="8.2-only-the-key", tried=["k"]),
    Fallback(id="8.2-first-hit-stops", there="k", keys=["f1"], tried=["k"], found=True),
    Fallback(id="8.2-in-order", there="f2", keys=["f1", "f2", "f3"], tried=["k", "f1", "f2"], found=True),
    Fallback(id="8.2-expanded", there="f-x", keys=["f-$X"], variables={"X": "x"}, tried=["k", "f-x"], found=True),
    Fallback(id="8.2-empty-ones-are-left-out", keys=["", "$NOBODY", "f"], tried=["k", "f"]),
    Fallback(id="8.2-sanitised", keys=["../f"], tried=["k", "f"], says='cache key "../f" sanitized to "f"'),
    Fallback(
        id="8.2-the-variable-is-last",
        there="v",
        keys=["f1"],
        variables={"CACHE_FALLBACK_KEY": "v"},
        tried=["k", "f1", "v"],
        found=True,
    ),
    Fallback(
        id="8.2-protected-is-refused",
        there="v-protected",
        variables={"CACHE_FALLBACK_KEY": "v-protected"},
        tried=["k"],
        says=REFUSED.format("v-protected"),
    ),
    Fallback(
        id="8.2-protected-with-a-tail-is-refused",
        there="v-protected",
        variables={"CACHE_FALLBACK_KEY": "v-protected. ."},
        tried=["k"],
        says=REFUSED.format("v-protected. ."),
    ),
    Fallback(
        id="8.2-protected-in-fallback-keys-is-the-servers-business",
        there="f-protected",
        keys=["f-protected"],
        tried=["k", "f-protected"],
        found=True,
    ),
]


@pytest.mark.parametrize("case", FALLBACKS, ids=lambda case: case.id)
def test_fallback(world: World, case: Fallback) -> None:
    run(world, *FILL, cache=cache(key=case.there, policy="push"))
    result = run(world, "cat c/file || true", cache=cache(fallback_keys=case.keys), variables=case.variables)
    tried = [line for line in result.text.splitlines() if line.startswith("Checking cache for ")]
    assert tried == [f"Checking cache for {key}..." for key in case.tried]
    assert case.says in result.text
    assert ("Successfully extracted cache" in result.text) == case.found
    assert result.text.count("Failed to extract cache") == len(case.tried) - case.found
    if case.found:
        assert "k" in archives(world), "saving always uses the key"


# --- policies and outcomes --------------------------------------------------------------------------------------

PUSHED, NOT_PUSHED = "Creating cache k...", "Not uploading cache k due to policy"
PULLED, NOT_PULLED = "Checking cache for k...", "Not downloading cache k due to policy"


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("pull-push", [PULLED, PUSHED]),
        ("", [PULLED, PUSHED]),
        ("pull", [PULLED, NOT_PUSHED]),
        ("push", [NOT_PULLED, PUSHED]),
        ("$POLICY", [PULLED, NOT_PUSHED]),
        ("${NOBODY}", [PULLED, PUSHED]),
    ],
)
def test_1_1_policy(world: World, policy: str, says: list[str]) -> None:
    result = run(world, *FILL, cache=cache(policy=policy), variables={"POLICY": "pull"})
    shown = [text for text in (PULLED, NOT_PULLED, PUSHED, NOT_PUSHED) if text in result.text]
    assert shown == says


def test_1_1_an_unknown_policy_fails_the_job(world: World) -> None:
    result = run(world, "echo script-ran", cache=cache(policy="sometimes"), state="failed")
    assert "unknown cache policy sometimes" in result.text
    assert "script-ran" not in result.text


@pytest.mark.parametrize("state", ["success", "failed"])
@pytest.mark.parametrize("when", ["", "on_success", "on_failure", "always"])
def test_1_1_when(world: World, when: str, state: str) -> None:
    result = run(world, *FILL, "true" if state == "success" else "exit 3", cache=cache(when=when), state=state)
    saved = when == "always" or (when == "on_failure") == (state == "failed")
    assert ("k" in archives(world)) == saved
    assert "restore_cache" in result.sections
    stage = "archive_cache" if state == "success" else "archive_cache_on_failure"
    assert (stage in result.sections) == saved


def test_1_1_entries_without_files_leave_no_section(world: World) -> None:
    result = run(world, cache=[{"key": "k", "paths": [], "untracked": False}, {"key": "l", "paths": None}])
    assert not {"restore_cache", "archive_cache"} & set(result.sections)


def test_1_1_several_entries(world: World) -> None:
    entries = [*cache(key="one"), *cache(key="two", paths=["d"]), *cache(key="three", policy="pull")]
    result = run(world, *FILL, "mkdir d; echo 2 > d/x", cache=entries)
    assert set(archives(world)) == {"one", "two"}
    assert "Not uploading cache three due to policy" in result.text
    run(world, "cat c/file d/x", cache=entries)


def test_1_1_untracked(world: World) -> None:
    entry = cache(paths=[], untracked=True)
    result = world.run("echo new > new.file; mkdir d; echo deep > d/deep", cache=entry)
    assert "untracked: found 2 files" in result.text
    assert sorted(zipfile.ZipFile(archives(world)["k"]).namelist()) == ["d/deep", "new.file"]
    world.run("cat new.file d/deep", cache=entry)


# --- archives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("archive_format", ["zip", "zipzstd", "tarzstd", "", "rar"])
@pytest.mark.parametrize("level", ["fastest", "slowest"])
def test_8_3_formats_and_levels(world: World, archive_format: str, level: str) -> None:
    variables = {"CACHE_COMPRESSION_FORMAT": archive_format, "CACHE_COMPRESSION_LEVEL": level}
    fill = ("mkdir -p c/empty", "seq 2000 > c/file", "ln -s file c/link", "chmod 755 c/file")
    run(world, *fill, cache=cache(), variables=variables)
    content = archives(world)["k"].read_bytes()
    assert content.startswith(b"\x28\xb5\x2f\xfd" if archive_format == "tarzstd" else b"PK\x03\x04")
    if archive_format in ("zip", "", "rar"):
        with zipfile.ZipFile(archives(world)["k"]) as archive:
            method = archive.getinfo("c/file").compress_type
            assert method == (zipfile.ZIP_STORED if level == "fastest" else zipfile.ZIP_DEFLATED)
    script = ("test $(tail -1 c/link) = 2000", "test -x c/file -a -d c/empty -a -h c/link")
    result = run(world, *script, cache=cache(), variables=variables)
    assert "Successfully extracted cache" in result.text


def test_8_3_a_bad_level_is_a_warning(world: World) -> None:
    result = run(world, *FILL, cache=cache(), variables={"CACHE_COMPRESSION_LEVEL": "ultra"})
    assert 'compression level "ultra" is invalid, falling back to default' in result.text
    assert "Created cache" in result.text


def test_8_3_an_archive_that_is_up_to_date_is_kept(world: World) -> None:
    run(world, *FILL, cache=cache())
    before = archives(world)["k"].stat()
    result = run(world, "cat c/file", cache=cache())
    assert "Archive is up to date!" in result.text
    after = archives(world)["k"].stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    result = run(world, "echo more > c/more", cache=cache())
    assert "Archive is up to date!" not in result.text
    assert "c/more" in zipfile.ZipFile(archives(world)["k"]).namelist()


def test_8_3_nothing_to_cache_keeps_the_old_archive(world: World) -> None:
    run(world, *FILL, cache=cache())
    result = run(world, "rm -r c", cache=cache())
    assert "No files to cache." in result.text
    assert "c/: no matching files. Ensure that the artifact path is relative to the working directory" in result.text
    assert "Created cache" in result.text
    assert "k" in archives(world)


def test_8_3_paths_are_expanded_by_the_shells_rules(world: World) -> None:
    entry = cache(paths=["$DIR/*.txt", "${NOBODY:-c}/file", "**/deep"])
    script = (*FILL, "mkdir d; touch d/a.txt d/b.bin", "mkdir -p x/y; touch x/y/deep")
    run(world, *script, cache=entry, variables={"DIR": "d"})
    assert sorted(zipfile.ZipFile(archives(world)["k"]).namelist()) == ["c/file", "d/a.txt", "x/y/deep"]


def test_9_files_outside_of_the_project_are_left_out(world: World) -> None:
    (world.base / "secret").write_text("secret")
    result = run(world, *FILL, cache=cache(paths=["c/", "../../../../../secret", str(world.base / "secret")]))
    assert "artifact path is not a subpath of project directory" in result.text
    assert sorted(zipfile.ZipFile(archives(world)["k"]).namelist()) == ["c/", "c/file"]


def test_1_2_the_archive_is_named_relative_to_the_project(world: World) -> None:
    result = run(world, *FILL, cache=cache(), variables={"CI_DEBUG_TRACE": "true"})
    assert f"--file {os.path.relpath(world.cache, world.project)}/k/cache.zip" in result.text


def test_1_2_a_cache_survives_a_change_of_the_hashing_flag(world: World) -> None:
    run(world, *FILL, cache=cache())
    hashed = {"FF_HASH_CACHE_KEYS": "true"}
    run(world, *FILL, cache=cache(), variables=hashed)
    assert list(archives(world)) == [digest("k")], "the archiver renames what it finds under the other name"
    assert "Successfully extracted cache" in run(world, "cat c/file", cache=cache(), variables=hashed).text


def test_1_4_modes_of_local_files(world: World) -> None:
    run(world, *FILL, cache=cache(key="deep/k"))
    path = archives(world)["deep/k"]
    modes = [oct(part.stat().st_mode & 0o777) for part in (path, path.with_name("metadata.json"), path.parent)]
    assert modes == ["0o600", "0o640", "0o700"]
    assert not list(path.parent.glob("archive_*"))


# --- failures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [False, True], ids=["kept", "cleaned"])
def test_8_2_a_broken_archive_fails_no_job(world: World, clean: bool) -> None:
    run(world, *FILL, cache=cache())
    archives(world)["k"].write_bytes(archives(world)["k"].read_bytes()[:-30])
    hook = [{"name": "post_get_sources_script", "script": ["mkdir -p c; echo stale > c/stale"]}]
    variables = {"FF_CLEAN_UP_FAILED_CACHE_EXTRACT": str(clean).lower(), "GIT_STRATEGY": "clone"}
    result = world.run("ls c || true", cache=cache(), variables=variables, hooks=hook)
    assert "Failed to extract cache" in result.text
    assert ("Removing c/" in result.text) == clean
    assert ("\nstale\n" in result.section("step_script")) != clean


def test_8_2_a_cache_that_cannot_be_made_fails_no_job(world: World) -> None:
    world.cache.parent.mkdir(parents=True)
    world.cache.write_text("in the way")
    result = run(world, *FILL, cache=cache())
    assert "Failed to create cache" in result.text
    assert "Job succeeded" in result.text


def test_8_2_a_missing_runner_command_fails_no_job(world: World) -> None:
    shims = world.base / "shims"
    (world.home / ".bash_profile").write_text('command() { [ "$2" != "$MISSING" ] && builtin command "$@"; }\n')
    shims.mkdir()
    result = run(world, *FILL, cache=cache(), variables={"MISSING": _command(world)})
    assert f"Missing {_command(world)}. Extracting cache is disabled." in result.text
    assert f"Missing {_command(world)}. Creating cache is disabled." in result.text


def _command(world: World) -> str:
    from pyrunner.executors.shell.directories import runner_command

    return runner_command()


def test_8_2_only_the_failed_try_cleans(world: World) -> None:
    run(world, *FILL, cache=cache(key="good"))
    variables = {"FF_CLEAN_UP_FAILED_CACHE_EXTRACT": "true"}
    result = run(world, "cat c/file", cache=cache(fallback_keys=["good"]), variables=variables)
    assert result.text.count("Removing c/") == 1
    assert "\ncached\n" in result.text


def test_3_1_restoring_is_tried_as_often_as_asked(world: World) -> None:
    result = run(world, cache=cache(), variables={"RESTORE_CACHE_ATTEMPTS": "3"})
    assert result.sections.count("restore_cache") == 1, "a missing cache is no failure of the stage"


def test_1_2_jobs_of_all_slots_share_the_cache(world: World) -> None:
    run(world, *FILL, cache=cache())
    assert archives(world)["k"] == world.base / "cache/group/proj/k/cache.zip"


@pytest.mark.parametrize(
    ("runner", "variables", "says"),
    [
        ({}, {}, ["--timeout 10"]),
        ({}, {"CACHE_REQUEST_TIMEOUT": "3"}, ["--timeout 3"]),
        ({}, {"CACHE_REQUEST_TIMEOUT": "soon"}, ["--timeout 10"]),
        ({"cache": {"MaxUploadedArchiveSize": 77}}, {}, ["--max-uploaded-archive-size 77"]),
    ],
)
def test_1_4_what_the_archiver_is_told(
    world: World, runner: dict[str, Any], variables: dict[str, str], says: list[str]
) -> None:
    variables = {**variables, "CI_DEBUG_TRACE": "true"}
    result = run(world, *FILL, cache=cache(), runner=runner, variables=variables)
    command = next(line for line in result.text.splitlines() if " cache-archiver --file " in line)
    for text in says:
        assert text in command
    assert ("--max-uploaded-archive-size" in command) == bool(runner)
