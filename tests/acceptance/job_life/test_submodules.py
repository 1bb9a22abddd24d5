"""Submodules over HTTP: facts/job-lifecycle.md 7.5 and ``GIT_SUBMODULE_*`` of 7.1, with the URL rules of 7.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from job_life.world import Result, World
from pyrunner.testing.faults import status
from pyrunner.testing.git_repository import GitRepository

RECURSIVE = {"GIT_SUBMODULE_STRATEGY": "recursive"}
NORMAL = {"GIT_SUBMODULE_STRATEGY": "normal"}
FILES = ["middle/file", "middle/inner/file", "other/file"]


class Nested(World):
    """The project has ``middle``, which has ``inner``, and ``other``."""

    def __init__(self, base: Path, url: Callable[[str, str], str] | None = None) -> None:
        super().__init__(base)
        spell = url or (lambda _, name: f"../{name}.git")
        self.parts = {name: self.add_repository(name) for name in ("inner", "middle", "other")}
        self.parts["middle"].add_submodule("inner", self.parts["inner"], spell(self.gitlab.url, "inner"))
        for name in ("middle", "other"):
            self.repository.add_submodule(name, self.parts[name], spell(self.gitlab.url, name))

    def add_repository(self, name: str) -> GitRepository:
        """A further project of the group, on the same server."""
        made = GitRepository(self.base / "git", f"group/{name}", {"file": f"{name} 1\n"})
        made.commit({"file": f"{name} 2\n"})
        return made

    def there(self) -> set[str]:
        """Which of `FILES` there are after a job."""
        return {name for name in FILES if (self.project / name).exists()}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Nested]:
    with Nested(tmp_path) as made:
        yield made


def notices(result: Result) -> list[str]:
    """What the runner itself says of the sources."""
    lines = result.section("get_sources").splitlines()
    return [line for line in lines if line.endswith("...") or line.startswith(("Updated", "Skipping Git"))]


def test_7_5_none_is_the_default(world: Nested) -> None:
    result, commands = world.git_commands("test -d middle -a ! -e middle/file")
    assert "Skipping Git submodules setup" in notices(result)
    assert not [command for command in commands if command.startswith("submodule")]


def test_7_1_an_unknown_strategy_fails_the_stage(world: Nested) -> None:
    result = world.run("echo script-ran", variables={"GIT_SUBMODULE_STRATEGY": "all"}, state="failed")
    assert "unknown GIT_SUBMODULE_STRATEGY" in result.text
    assert "script-ran" not in result.text


def test_7_5_normal(world: Nested) -> None:
    result = world.run("cat middle/file", "test ! -e middle/inner/file", variables=NORMAL)
    said = [line for line in notices(result) if "ubmodules" in line]
    assert said == [
        "Updating/initializing submodules with git depth set to 20...",
        "Updated submodules",
        "Configuring submodules to use parent git credentials...",
    ]
    assert "middle 2" in result.text


def test_7_5_recursive(world: Nested) -> None:
    result = world.run("cat middle/inner/file other/file", variables=RECURSIVE)
    assert "Updating/initializing submodules recursively with git depth set to 20..." in notices(result)
    assert "inner 2\nother 2" in result.text


def test_7_5_none_of_it_without_git(world: Nested) -> None:
    for strategy in ("none", "empty"):
        result = world.run(variables={**RECURSIVE, "GIT_STRATEGY": strategy})
        assert "Skipping Git submodules setup" in notices(result)


def test_7_5_order_of_the_commands(world: Nested) -> None:
    variables = {**RECURSIVE, "GIT_SUBMODULE_DEPTH": "3", "GIT_SUBMODULE_UPDATE_FLAGS": "--jobs 2"}
    variables |= {"GIT_SUBMODULE_PATHS": "middle other", "GIT_CLEAN_FLAGS": "-ffd"}
    log = world.base / "trace"
    world.run(variables={**variables, "GIT_TRACE": str(log)})
    ran = [line.partition("submodule ")[2] for line in log.read_text().splitlines() if "exec: git-submodule" in line]
    expected = [
        "init",
        "sync --recursive -- middle other",
        "foreach --recursive 'git clean -ffd'",
        "foreach --recursive 'git reset --hard'",
        "update --init --recursive --depth 3 --jobs 2 -- middle other",
        "sync --recursive -- middle other",
        "foreach --recursive 'git clean -ffd'",
    ]
    assert ran[: len(expected)] == expected
    assert ran[len(expected)].startswith("foreach --quiet --recursive 'git config --replace-all include.path ")


def test_7_1_depth(world: Nested) -> None:
    count = "git -C middle rev-list --count HEAD"
    fresh = {"GIT_STRATEGY": "clone", **NORMAL}
    assert "\n1\n" in world.run(count, variables={**fresh, "GIT_SUBMODULE_DEPTH": "1"}, git={"depth": 0}).text
    result = world.run(count, variables={**fresh, "GIT_SUBMODULE_DEPTH": "0"}, git={"depth": 1})
    assert "\n3\n" in result.text
    assert "Updating/initializing submodules..." in notices(result)
    assert "\n1\n" in world.run(count, variables=fresh, git={"depth": 1}).text


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ("other", {"other/file"}),
        ("middle", {"middle/file", "middle/inner/file"}),
        ("middle other", set(FILES)),
        (":(exclude)other", {"middle/file", "middle/inner/file"}),
    ],
)
def test_7_1_paths(world: Nested, paths: str, left: set[str]) -> None:
    world.run(variables={**RECURSIVE, "GIT_SUBMODULE_PATHS": paths})
    assert world.there() == left


def test_7_1_an_exclusion_of_nothing_is_rejected(world: Nested) -> None:
    result = world.run(variables={**NORMAL, "GIT_SUBMODULE_PATHS": ":(exclude) other"}, state="failed")
    assert "GIT_SUBMODULE_PATHS: invalid submodule pathspec" in result.text


def test_7_1_update_flags_follow_the_branch(world: Nested) -> None:
    world.parts["other"].commit({"file": "other 3\n"})
    assert "other 2" in world.run("cat other/file", variables=NORMAL).text
    variables = {**NORMAL, "GIT_SUBMODULE_UPDATE_FLAGS": "--remote"}
    for name in ("middle", "other"):
        world.repository.git("config", "-f", ".gitmodules", f"submodule.{name}.branch", "main")
    world.repository.commit({})
    assert "other 3" in world.run("cat other/file", variables=variables).text


def test_7_5_a_failing_update_is_tried_again(world: Nested) -> None:
    world.gitlab.inject("GET", r"group/other\.git/info/refs$", status(500), times=2)
    result = world.run("cat other/file", variables=NORMAL)
    assert "Updating submodules failed. Retrying..." in result.text
    assert "other 2" in result.text


def test_7_5_a_failing_update_with_remote_fetches_the_heads_first(world: Nested) -> None:
    variables = {**NORMAL, "GIT_SUBMODULE_UPDATE_FLAGS": "--remote"}
    for name in ("middle", "other"):
        world.repository.git("config", "-f", ".gitmodules", f"submodule.{name}.branch", "main")
    world.repository.commit({})
    world.run(variables=variables)
    world.gitlab.inject("GET", r"group/other\.git/info/refs$", status(500), times=1)
    result, commands = world.git_commands("cat other/file", variables=variables)
    assert "Updating submodules failed. Retrying..." in result.text
    assert "fetch origin '+refs/heads/*:refs/remotes/origin/*'" in commands


def test_7_5_an_update_that_never_works_fails_the_stage(world: Nested) -> None:
    world.gitlab.inject("GET", r"group/other\.git/info/refs$", status(500), times=None)
    result = world.run("echo script-ran", variables=NORMAL, state="failed")
    assert "script-ran" not in result.text


def test_7_5_what_a_job_leaves_in_a_submodule_is_gone_for_the_next(world: Nested) -> None:
    world.run("touch middle/dirt middle/inner/dirt", "echo mine > other/file", variables=RECURSIVE)
    world.run("cat other/file", "! ls middle/dirt middle/inner/dirt 2>/dev/null", variables=RECURSIVE)
    world.run("touch middle/kept", variables={**RECURSIVE, "GIT_CLEAN_FLAGS": "none"})
    world.run("test -e middle/kept", variables={**RECURSIVE, "GIT_CLEAN_FLAGS": "none"})


@pytest.mark.parametrize("clean", [True, False], ids=["clean-config", "kept-config"])
def test_7_2_a_leftovers_in_submodules_stop_no_job(world: Nested, clean: bool) -> None:
    runner = {"clean_git_config": clean}
    names = ("index.lock", "shallow.lock", "HEAD.lock", "config.lock")
    modules = (".git/modules/middle", ".git/modules/middle/modules/inner")
    mark = world.base / "planted-ran"
    hook = f"printf '#!/bin/sh\\ntouch {mark}\\n'"
    plant = [f"{hook} > {module}/hooks/post-checkout; chmod +x {module}/hooks/*" for module in modules]
    locks = [f"touch {module}/{name}" for module in modules for name in names]
    mkdir = [f"mkdir -p {module}/hooks" for module in modules]
    for part in world.parts.values():
        part.commit({"new": "x"})
    world.run(*mkdir, *plant, *locks, variables=RECURSIVE, runner=runner)
    world.run("cat middle/inner/file", "! find .git -name '*.lock' | grep .", variables=RECURSIVE, runner=runner)
    assert not mark.exists()


def test_7_5_urls_that_change_are_followed(world: Nested) -> None:
    world.run(variables=NORMAL)
    moved = world.add_repository("moved")
    moved.git("fetch", "--quiet", str(world.parts["other"].bare), "+main:refs/heads/taken")
    moved.push("refs/heads/taken:refs/heads/taken")
    world.repository.git("config", "-f", ".gitmodules", "submodule.other.url", "../moved.git")
    world.repository.commit({})
    result = world.run("git -C other config remote.origin.url", variables=NORMAL)
    assert f"{world.gitlab.url}/group/moved.git" in result.text


@pytest.mark.parametrize("strategy", ["normal", "recursive"])
@pytest.mark.parametrize("flags", [{}, {"FF_GIT_URLS_WITHOUT_TOKENS": "true"}], ids=["tokens", "no-tokens"])
def test_7_3_the_token_is_in_no_submodule(world: Nested, strategy: str, flags: dict[str, str]) -> None:
    variables = {"GIT_SUBMODULE_STRATEGY": strategy, **flags}
    script = [
        "git -C middle ls-remote origin >/dev/null",
        "include=include.path=$RUNNER_TEMP_PROJECT_DIR/.gitlab-runner.ext.conf",
        "git -C middle -c $include submodule update --init >/dev/null && cat middle/inner/file",
        "grep -rlF $CI_JOB_TOKEN $CI_PROJECT_DIR && exit 1 || true",
    ]
    result = world.run(*script, variables=variables)
    assert "inner 2" in result.text
    assert world.files_with(result.job.token) == []
    second = world.run("cat middle/file", variables=variables)
    assert world.files_with(second.job.token) == []


def test_7_3_absolute_urls_of_the_server(tmp_path: Path) -> None:
    with Nested(tmp_path, lambda server, name: f"{server}/group/{name}.git") as world:
        result = world.run("cat middle/inner/file", variables=RECURSIVE)
        assert "inner 2" in result.text
        assert world.files_with(result.job.token) == []


SPELLINGS = {
    "scp": (lambda _, name: f"git@gitlab.test:group/{name}.git", {}),
    "ssh": (lambda _, name: f"ssh://git@gitlab.test/group/{name}.git", {}),
    "ssh-port": (
        lambda _, name: f"ssh://git@gitlab.test:2222/group/{name}.git",
        {"CI_SERVER_SHELL_SSH_HOST": "gitlab.test", "CI_SERVER_SHELL_SSH_PORT": "2222"},
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("flags", [{}, {"FF_GIT_URLS_WITHOUT_TOKENS": "true"}], ids=["tokens", "no-tokens"])
def test_7_1_force_https(tmp_path: Path, spelling: str, flags: dict[str, str]) -> None:
    url, extra = SPELLINGS[spelling]
    variables = {**RECURSIVE, "GIT_SUBMODULE_FORCE_HTTPS": "true", "CI_SERVER_HOST": "gitlab.test", **extra, **flags}
    with Nested(tmp_path, url) as world:
        result = world.run("cat middle/inner/file", variables=variables)
        assert "inner 2" in result.text
        assert world.files_with(result.job.token) == []


def test_7_1_ssh_stays_ssh_without_force_https(tmp_path: Path) -> None:
    url, _ = SPELLINGS["scp"]
    log = tmp_path / "ssh.log"
    with Nested(tmp_path, url) as world:
        ssh = {"GIT_SSH_COMMAND": f"echo ssh >> {log}; false", "CI_SERVER_HOST": "gitlab.test"}
        world.run(variables={**NORMAL, **ssh}, state="failed")
    assert log.read_text().startswith("ssh\n")


def test_7_5_large_files_of_submodules(world: Nested) -> None:
    config = '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\trequired = true\n'
    (world.home / ".gitconfig").write_text(config)
    world.parts["other"].commit_lfs({"big.bin": b"large content\n"})
    world.repository.git("-C", "other", "pull", "--quiet", "origin", "main")
    world.repository.commit({})
    result = world.run("cat other/big.bin", variables=NORMAL)
    assert "Pulling LFS files..." in result.text
    assert "large content" in result.text
    assert world.files_with(result.job.token) == []
    skipped = world.run(
        "cat other/big.bin", variables={**NORMAL, "GIT_LFS_SKIP_SMUDGE": "true", "GIT_STRATEGY": "clone"}
    )
    assert "Pulling LFS files..." not in skipped.text
    assert "oid sha256" in skipped.text


@pytest.mark.parametrize("strategy", ["normal", "recursive"])
def test_6_job_cleanup_reaches_submodules(world: Nested, strategy: str) -> None:
    variables = {"GIT_SUBMODULE_STRATEGY": strategy, "FF_ENABLE_JOB_CLEANUP": "true"}
    world.run("touch middle/dirt", "echo mine > other/file", variables=variables)
    assert not (world.project / "middle/dirt").exists()
    assert (world.project / "other/file").read_text() == "other 2\n"
