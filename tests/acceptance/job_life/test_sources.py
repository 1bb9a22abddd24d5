"""get_sources: facts/job-lifecycle.md sections 2 (GIT_CLONE_PATH) and 7.1 to 7.4. Names begin with the section."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from job_life.world import World
from pyrunner.testing.faults import status


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, {"README.md": "one\n", ".gitignore": "*.o\n"}) as made:
        made.repository.commit({"README.md": "two\n"})
        yield made


# --- cases: one job, what its get_sources says and leaves ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job and what must be seen of it.

    `git` are parts of the git commands in this order, `not_git` regular expressions for what begins none of them.
    """

    id: str
    script: list[str] = field(default_factory=lambda: ["true"])
    variables: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    runner: dict[str, Any] = field(default_factory=dict)
    state: str = "success"
    says: list[str] = field(default_factory=list)
    not_says: list[str] = field(default_factory=list)
    git: list[str] = field(default_factory=list)
    not_git: list[str] = field(default_factory=list)


_BAD_STRATEGY = "GIT_STRATEGY: expected either 'clone', 'fetch', 'none' or 'empty' got \"x\", using default value "
CASES = [
    Case(
        id="7.1-strategy-fetch-is-the-default",
        says=["Fetching changes with git depth set to 20...", "Created fresh repository.", "(ref is main)..."],
        git=["init ", "remote set-url origin", "remote add origin", "fetch origin --no-recurse-submodules", "checkout"],
        not_git=["clone"],
    ),
    Case(
        id="7.1-strategy-clone-when-fetch-is-not-allowed",
        fields={"allow_git_fetch": False},
        script=['test -z "$(ls -A $CI_PROJECT_DIR/../x 2>/dev/null)"'],
        says=["Created fresh repository."],
    ),
    Case(
        id="7.1-strategy-none",
        variables={"GIT_STRATEGY": "none"},
        script=["test ! -e .git", "pwd"],
        runner={"pre_get_sources_script": "echo hook-ran"},
        says=["Skipping Git repository setup", "Skipping Git checkout", "Skipping Git submodules setup"],
        not_says=["hook-ran"],
        not_git=["fetch", "init", "checkout"],
    ),
    Case(
        id="7.1-strategy-empty",
        variables={"GIT_STRATEGY": "empty"},
        script=["test ! -e .git", "case $PWD in *proj-empty) ;; *) false;; esac"],
        says=["Skipping Git repository setup and creating an empty build directory", "Skipping Git checkout"],
        not_git=["fetch", "init", "checkout"],
    ),
    Case(
        id="7.1-strategy-unknown-is-a-warning",
        variables={"GIT_STRATEGY": "x"},
        script=["cat README.md"],
        says=[f"WARNING: {_BAD_STRATEGY}'fetch'"],
    ),
    Case(
        id="7.1-strategy-unknown-names-the-real-default",
        variables={"GIT_STRATEGY": "x"},
        fields={"allow_git_fetch": False},
        says=[f"WARNING: {_BAD_STRATEGY}'clone'"],
    ),
    Case(
        id="7.1-depth",
        fields={"git": {"depth": 1}},
        script=["test $(git rev-list --count HEAD) = 1"],
        says=["Fetching changes with git depth set to 1..."],
        git=["--depth 1 --prune --quiet"],
    ),
    Case(
        id="7.1-no-depth",
        fields={"git": {"depth": 0}},
        script=["test $(git rev-list --count HEAD) = 2"],
        says=["Fetching changes..."],
        not_git=["fetch .*--depth", "fetch .*--unshallow"],
    ),
    Case(
        id="7.1-checkout-off",
        variables={"GIT_CHECKOUT": "false"},
        script=["test ! -e README.md"],
        says=["Skipping Git checkout"],
        git=["fetch origin"],
        not_git=["checkout", "clean"],
    ),
    Case(
        id="7.1-checkout-that-is-no-bool",
        variables={"GIT_CHECKOUT": "maybe"},
        script=["test -e README.md"],
        says=['WARNING: GIT_CHECKOUT: expected bool got "maybe", using default value: true'],
    ),
    Case(id="7.1-clean-default", git=["clean -ffdx"]),
    Case(id="7.1-clean-flags", variables={"GIT_CLEAN_FLAGS": "-ffd -e kept"}, git=["clean -ffd -e kept"]),
    Case(id="7.1-clean-none", variables={"GIT_CLEAN_FLAGS": "none"}, not_git=["clean"]),
    Case(
        id="7.1-fetch-flags-replace-the-default",
        variables={"GIT_FETCH_EXTRA_FLAGS": "--no-tags --jobs 1"},
        git=["--depth 20 --no-tags --jobs 1"],
        not_git=["fetch .*--prune"],
    ),
    Case(
        id="7.1-fetch-flags-none",
        variables={"GIT_FETCH_EXTRA_FLAGS": "none"},
        not_git=["fetch .*--prune", "fetch .*--quiet"],
        says=["From http://127.0.0.1"],
    ),
    Case(id="7.1-clone-flags-do-nothing-to-a-fetch", variables={"GIT_CLONE_EXTRA_FLAGS": "--nonsense"}),
    Case(
        id="7.1-lfs-skip-smudge",
        variables={"GIT_LFS_SKIP_SMUDGE": "true"},
        script=["test $GIT_LFS_SKIP_SMUDGE = true"],
        not_git=["lfs"],
    ),
    Case(
        id="7.2-0-nobody-is-asked-for-a-password",
        fields={"hooks": [{"name": "pre_get_sources_script", "script": ["echo $GIT_TERMINAL_PROMPT$GCM_INTERACTIVE"]}]},
        says=["\n0Never\n"],
    ),
    Case(
        id="7.2-f-clone-deletes-first",
        variables={"GIT_STRATEGY": "clone"},
        git=["init", "remote add origin", "fetch origin"],
        says=["Created fresh repository."],
    ),
    Case(
        id="7.2-h-the-branch-is-no-ones-default",
        script=["test $(git config init.defaultBranch) = none", "test $(git config gc.autoDetach) = false"],
        git=["--template"],
    ),
    Case(
        id="7.2-k-detached-head",
        script=["! git symbolic-ref -q HEAD", "test $(git rev-parse HEAD) = $WANTED"],
        git=["checkout -f -q"],
        says=[" as detached HEAD (ref is main)..."],
    ),
    Case(id="7.2-m-no-submodules", says=["Skipping Git submodules setup"], not_git=["submodule"]),
    Case(
        id="7.2-d-correlation-id",
        says=["Gitaly correlation ID: "],
        script=[
            "git config --get-all http.extraHeader | grep X-Gitaly-Correlation-ID",
            "git config transfer.bundleURI",
        ],
    ),
    Case(
        id="7.2-d-no-correlation-id",
        variables={"FF_USE_GITALY_CORRELATION_ID": "false", "FF_USE_GIT_BUNDLE_URIS": "false"},
        not_says=["Gitaly correlation ID"],
        script=["! git config http.extraHeader", "! git config transfer.bundleURI"],
    ),
    Case(
        id="7.2-d-proactive-auth",
        variables={"FF_USE_GIT_PROACTIVE_AUTH": "true"},
        script=["test $(git config http.proactiveAuth) = basic"],
    ),
    Case(
        id="7.2-e-the-external-config-is-known",
        script=['test -n "$(git config -f $RUNNER_TEMP_PROJECT_DIR/.gitlab-runner.ext.conf -l)"'],
    ),
    Case(
        id="7.2-c-no-safe-directory-on-the-shell-executor",
        script=["! git config --global safe.directory"],
        not_git=["config --global --add"],
    ),
    Case(
        id="7.2-c-safe-directory-when-asked",
        runner={"safe_directory_checkout": True},
        script=["test $(git config --global safe.directory) = $CI_PROJECT_DIR"],
    ),
    Case(
        id="3-missing-commit-fails-before-the-script",
        fields={"git": {"sha": "1" * 40}},
        script=["echo script-ran"],
        state="failed",
        not_says=["script-ran", "Created cache"],
        says=["ERROR: Job failed: exit status 128"],
    ),
    Case(
        id="2-clone-path-is-not-allowed",
        variables={"GIT_CLONE_PATH": "$CI_BUILDS_DIR/mine"},
        state="failed",
        says=["setting GIT_CLONE_PATH is not allowed, enable `custom_build_dir` feature"],
    ),
    Case(
        id="2-clone-path",
        variables={"GIT_CLONE_PATH": "$CI_BUILDS_DIR/mine/$CI_CONCURRENT_ID"},
        runner={"custom_build_dir": {"enabled": True}},
        script=["test $PWD = $CI_BUILDS_DIR/mine/0", "cat README.md", "test -d $CI_BUILDS_DIR/mine/0.tmp"],
    ),
    Case(
        id="2-clone-path-outside",
        variables={"GIT_CLONE_PATH": "$CI_BUILDS_DIR/../mine"},
        runner={"custom_build_dir": {"enabled": True}},
        state="failed",
        says=['the GIT_CLONE_PATH="', '/builds/../mine" has to be within "'],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(world: World, case: Case) -> None:
    variables = {"WANTED": world.repository.sha, **case.variables}
    result, commands = world.git_commands(
        *case.script, variables=variables, runner=case.runner, state=case.state, **case.fields
    )
    for text in case.says:
        assert text in result.text, result.text
    for text in case.not_says:
        assert text not in result.text, result.text
    position = 0
    for text in case.git:
        found = [index for index, command in enumerate(commands) if index >= position and text in command]
        assert found, f"{text!r} is not among {commands[position:]}"
        position = found[0]
    for pattern in case.not_git:
        assert not [command for command in commands if re.match(pattern, command)], commands


# --- more than one job, or a closer look ------------------------------------------------------------------------


def test_7_2_j_a_second_job_reuses_the_repository(world: World) -> None:
    world.run("touch left.over ignored.o", "echo mine > README.md")
    world.repository.commit({"README.md": "three\n"})
    second = world.run("cat README.md", "test ! -e left.over -a ! -e ignored.o")
    assert "Created fresh repository." not in second.text
    assert "Reinitialized existing Git repository" in second.text
    assert "three" in second.text


def test_7_1_prune_is_the_default_and_can_be_left_out(world: World) -> None:
    refspecs = {"refspecs": ["+refs/heads/*:refs/remotes/origin/*"]}
    world.repository.push("HEAD:refs/heads/short-lived")
    world.run("git rev-parse origin/short-lived", git=refspecs)
    world.repository.push(":refs/heads/short-lived")
    world.run("git rev-parse origin/short-lived", git=refspecs, variables={"GIT_FETCH_EXTRA_FLAGS": "none"})
    world.run("! git rev-parse -q --verify origin/short-lived", git=refspecs)


def test_7_1_clean_flags_keep_what_they_name(world: World) -> None:
    world.run("touch kept ignored.o gone")
    flags = {"GIT_CLEAN_FLAGS": "-ffdx -e kept"}
    world.run("test -e kept", "test ! -e gone", "test ! -e ignored.o", "touch more", variables=flags)
    world.run("test -e kept", "test -e more", variables={"GIT_CLEAN_FLAGS": "none"})


def test_7_1_checkout_off_leaves_the_work_tree_of_the_last_job(world: World) -> None:
    world.run("echo mine > README.md", "touch new")
    sha = world.repository.commit({"README.md": "three\n"})
    world.run("grep mine README.md", f"git cat-file -e {sha}", "test -e new", variables={"GIT_CHECKOUT": "0"})


def test_7_2_j_a_shallow_repository_is_made_whole(world: World) -> None:
    world.run("test -e .git/shallow", git={"depth": 1})
    result, commands = world.git_commands("test ! -e .git/shallow", git={"depth": 0})
    assert any("fetch origin" in command and "--unshallow" in command for command in commands)
    world.run("test $(git rev-list --count HEAD) = 1", "test -e .git/shallow", git={"depth": 1})
    assert "Fetching changes..." in result.text


def test_7_2_j_tags_and_merge_requests_are_fetched_by_refspec(world: World) -> None:
    world.repository.tag("v1.0")
    tag = world.repository.sha
    sha = world.repository.commit({"README.md": "of the merge request\n"})
    world.repository.push("HEAD:refs/merge-requests/7/head", "+HEAD~1:refs/heads/main")
    refspecs = ["+refs/merge-requests/7/head:refs/merge-requests/7/head", "+refs/tags/*:refs/tags/*"]
    info = {"ref": "refs/merge-requests/7/head", "sha": sha, "refspecs": refspecs}
    result = world.run("cat README.md", f"test $(git rev-parse v1.0) = {tag}", git=info)
    assert "of the merge request" in result.text
    assert f"Checking out {sha[:8]} as detached HEAD (ref is refs/merge-requests/7/head)..." in result.text
    info = {"ref": "v1.0", "sha": tag, "ref_type": "tag", "refspecs": ["+refs/tags/v1.0:refs/tags/v1.0"]}
    assert "(ref is v1.0)..." in world.run("test $(git describe --tags) = v1.0", git=info).text


def test_7_2_j_git_introduces_itself(world: World) -> None:
    world.run()
    seen = world.gitlab.requests_to("GET", r"proj\.git/info/refs")
    assert seen[-1].headers["user-agent"].startswith("gitlab-runner 19.4.0 linux/")
    assert seen[-1].headers["x-gitaly-correlation-id"]


@pytest.mark.parametrize("clean", [True, False], ids=["clean-config", "kept-config"])
def test_7_2_h_sha256_repositories(tmp_path: Path, clean: bool) -> None:
    with World(tmp_path, object_format="sha256") as world:
        for strategy in ("fetch", "fetch", "clone"):
            variables = {"GIT_STRATEGY": strategy}
            runner = {"clean_git_config": clean}
            script = ["test $(git rev-parse --show-object-format) = sha256", "cat README.md"]
            _, commands = world.git_commands(*script, variables=variables, runner=runner)
            assert any("--object-format sha256" in command for command in commands)


LOCKS = [
    *("index.lock", "shallow.lock", "HEAD.lock", "config.lock", "packed-refs.lock"),
    *("refs/heads/main.lock", "refs/remotes/origin/main.lock"),
]


@pytest.mark.parametrize("strategy", ["fetch", "clone"])
def test_7_2_a_locks_of_a_killed_git_stop_no_job(world: World, strategy: str) -> None:
    world.run(*(f"mkdir -p $(dirname .git/{name}); touch .git/{name}" for name in LOCKS))
    world.repository.commit({"README.md": "three\n"})
    world.run("! find .git -name '*.lock' | grep .", variables={"GIT_STRATEGY": strategy})


def _plant(world: World) -> str:
    """What a hostile job leaves for the next one; gives the file that appears when any of it runs."""
    mark = world.base / "planted-ran"
    hooks = "post-checkout reference-transaction post-index-change fsmonitor pre-auto-gc"
    world.run(
        "mkdir -p .git/hooks .git/info",
        f"for h in {hooks}; do printf '#!/bin/sh\\necho $0 >> {mark}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
        f"git config core.fsmonitor 'echo fsmonitor >> {mark}; false'",
        f"git config core.sshCommand 'echo ssh >> {mark}'",
        f"git config credential.helper '!echo helper >> {mark}; cat >> {mark}'",
        f"git config filter.evil.smudge 'echo smudge >> {mark}; cat'",
        "echo '* filter=evil' > .git/info/attributes",
        f"git config http.proxy http://127.0.0.1:1; rm -f {mark}",
        variables={"PLANT": "1"},
        runner={"clean_git_config": True},
    )
    return str(mark)


def test_7_2_b_nothing_that_a_job_planted_runs_in_the_next(world: World) -> None:
    mark = _plant(world)
    world.repository.commit({"README.md": "three\n"})
    world.run("cat README.md", runner={"clean_git_config": True})
    assert not os.path.exists(mark), Path(mark).read_text()
    assert not (world.project / ".git/config").exists(), "what the job set goes with the job"


def test_7_2_b_a_planted_repository_elsewhere_is_not_used(world: World) -> None:
    evil = world.base / "evil"
    world.run(f"mv .git {evil}", f"echo 'gitdir: {evil}' > .git", runner={"clean_git_config": True})
    result = world.run("test -d .git", runner={"clean_git_config": True})
    assert "Created fresh repository." in result.text


def test_7_2_a_a_planted_post_checkout_never_runs(world: World) -> None:
    world.run(
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*"
    )
    world.run("test ! -e ran -a ! -e .git/hooks/post-checkout", variables={"GIT_CLEAN_FLAGS": "none"})


def test_7_2_b_the_template_of_an_earlier_job_is_not_used(world: World) -> None:
    world.run(
        "d=$RUNNER_TEMP_PROJECT_DIR/git-template; mkdir -p $d/hooks",
        "printf '#!/bin/sh\\ntouch $RUNNER_TEMP_PROJECT_DIR/ran\\n' > $d/hooks/reference-transaction",
        "chmod +x $RUNNER_TEMP_PROJECT_DIR/git-template/hooks/*",
    )
    script = ["test ! -e $RUNNER_TEMP_PROJECT_DIR/ran"]
    world.run(*script, runner={"clean_git_config": True}, variables={"GIT_STRATEGY": "clone"})


def test_7_2_i_a_repository_that_pointed_elsewhere_is_set_right(world: World) -> None:
    world.run("git remote set-url origin http://127.0.0.1:1/other.git", "git config include.path /nowhere")
    world.run("git config remote.origin.url", "git ls-remote origin >/dev/null", "git remote remove origin")
    result = world.run("git ls-remote origin >/dev/null", "git remote set-url --add origin http://127.0.0.1:1/x.git")
    assert "Created fresh repository." in result.text
    world.run("test $(git config --get-all remote.origin.url | wc -l) = 1")


def test_7_2_1_hooks_run_in_order_and_are_echoed(world: World) -> None:
    runner = {
        "pre_get_sources_script": "echo hook-1; test ! -e $CI_PROJECT_DIR",
        "post_get_sources_script": "echo hook-4",
        "pre_build_script": "echo pre-build; FROM_PRE=1",
        "post_build_script": "echo post-build $FROM_PRE",
    }
    hooks = [
        {"name": "pre_get_sources_script", "script": ["echo hook-2"]},
        {"name": "post_get_sources_script", "script": ["echo hook-3; test -e README.md; pwd"]},
    ]
    result = world.run("echo script $FROM_PRE", after=["echo after-script"], runner=runner, hooks=hooks)
    sources = result.section("get_sources")
    said = [line for line in sources.splitlines() if line.startswith(("hook-", "$ echo hook-"))]
    assert [line for line in said if line.startswith("hook")] == ["hook-1", "hook-2", "hook-3", "hook-4"]
    assert len(said) == 8
    step = result.section("step_script")
    assert step.index("\npre-build") < step.index("\nscript 1") < step.index("\npost-build 1")
    assert "build" not in result.section("after_script")


@pytest.mark.parametrize("key", ["pre_get_sources_script", "post_get_sources_script"])
def test_7_2_1_a_failing_hook_fails_the_stage(world: World, key: str) -> None:
    result = world.run("echo script-ran", runner={key: "exit 9"}, state="failed")
    assert "script-ran" not in result.text
    assert "ERROR: Job failed: exit status 9" in result.text


def test_7_2_a_second_try_starts_with_a_clean_work_tree(world: World) -> None:
    world.run("touch left.o", "echo mine > README.md; git add README.md")
    world.gitlab.inject("GET", r"info/refs$", status(500), times=2)
    result = world.run("cat README.md", variables={"GET_SOURCES_ATTEMPTS": "3", "GIT_CLEAN_FLAGS": "none"})
    assert result.sections.count("get_sources") == 3
    assert result.sections.count("clear_worktree") == 1
    assert result.text.count("WARNING: Retrying...") == 2
    assert "Deleting tracked and untracked files..." in result.section("clear_worktree")
    assert not (world.project / "left.o").exists()


def test_7_2_sources_that_never_come_fail_the_job(world: World) -> None:
    world.gitlab.inject("GET", r"info/refs$", status(500), times=None)
    artifacts = [{"paths": ["x"], "when": "always", "artifact_type": "archive", "artifact_format": "zip"}]
    result = world.run("echo script-ran", after=["echo after-ran"], state="failed", artifacts=artifacts)
    assert "script-ran" not in result.text
    assert "after-ran" not in result.text
    assert "upload_artifacts_on_failure" in result.sections
    assert "cleanup_file_variables" in result.sections


# --- 7.3 and 7.4: tokens ----------------------------------------------------------------------------------------


def test_7_3_the_token_is_on_the_disk_in_one_private_file_during_the_job_and_nowhere_after(world: World) -> None:
    grep = "grep -rlF --exclude-dir=x $CI_JOB_TOKEN $CI_BUILDS_DIR || true"
    result = world.run(grep, "stat -c mode=%a $RUNNER_TEMP_PROJECT_DIR/.gitlab-runner.ext.conf")
    listed = [line for line in result.section("step_script").splitlines() if line.startswith("/")]
    assert listed == [str(world.temp / ".gitlab-runner.ext.conf")]
    assert "mode=600" in result.text
    assert world.files_with(result.job.token, world.base / "builds") == []
    assert not (world.temp / ".gitlab-runner.ext.conf").exists()
    assert world.git("config", "remote.origin.url") == f"{world.gitlab.url}/group/proj.git"


def test_7_3_the_next_job_uses_its_own_token(world: World) -> None:
    first = world.run()
    second = world.run("git ls-remote origin >/dev/null")
    assert first.job.token != second.job.token
    (world.project / ".git/config").read_text()
    assert world.files_with(first.job.token) == world.files_with(second.job.token) == []


def test_7_3_a_token_without_prefix_does_not_show_in_gits_complaints(world: World) -> None:
    secret = "legacy0token0without0prefix"
    world.gitlab.inject("GET", r"info/refs$", status(500), times=None)
    for number, variables in enumerate(({}, {"GIT_TRACE": "1", "GIT_CURL_VERBOSE": "1"}, {"CI_DEBUG_TRACE": "true"})):
        result = world.run(state="failed", variables=variables, id=9000 + number, token=secret)
        assert secret not in result.raw


def test_7_3_urls_without_tokens(world: World) -> None:
    variables = {"FF_GIT_URLS_WITHOUT_TOKENS": "true"}
    script = [
        "grep -rlF $CI_JOB_TOKEN $CI_BUILDS_DIR && exit 1",
        "test $GIT_CONFIG_GLOBAL = $RUNNER_TEMP_PROJECT_DIR/.glr.gconf || echo unset",
        "git ls-remote origin main >/dev/null",
        "git config user.nickname",
    ]
    (world.home / ".gitconfig").write_text("[user]\n\tnickname = nick-of-the-user\n")
    result = world.run(*script, variables=variables)
    assert "nick-of-the-user" in result.text
    assert not (world.temp / ".glr.gconf").exists()
    seen = world.gitlab.requests_to("GET", r"proj\.git/info/refs")
    assert any("authorization" in request.headers for request in seen)


def test_7_3_instead_of_rules(world: World) -> None:
    script = [
        "git config --get-regexp '^url\\.' | sed \"s/$CI_JOB_TOKEN/TOKEN/g; s/^/rule /\"",
        f"git ls-remote --get-url {world.gitlab.url}0/group/other.git | grep -q TOKEN && exit 1 || true",
    ]
    variables = {"GIT_SUBMODULE_FORCE_HTTPS": "true", "CI_SERVER_HOST": "gitlab.test"}
    extra = {"CI_SERVER_SHELL_SSH_HOST": "ssh.gitlab.test", "CI_SERVER_SHELL_SSH_PORT": "2222"}
    with_creds = world.gitlab.url.replace("://", "://gitlab-ci-token:TOKEN@")
    first = world.run(*script, variables=variables)
    assert _rules(first.text) == {
        (f"{with_creds}/group/proj.git", f"{world.gitlab.url}/group/proj.git"),
        (f"{with_creds}/", f"{world.gitlab.url}/"),
        (f"{with_creds}/", "git@gitlab.test:"),
        (f"{with_creds}/", "ssh://git@gitlab.test/"),
    }
    second = world.run(*script, variables={**variables, **extra})
    assert (f"{with_creds}/", "ssh://git@ssh.gitlab.test:2222/") in _rules(second.text)


def _rules(text: str) -> set[tuple[str, str]]:
    lines = [line.split() for line in text.splitlines() if line.startswith("rule url.")]
    return {(key.removeprefix("url.").removesuffix(".insteadof"), value) for _, key, value in lines}


def test_7_3_clone_url_replaces_the_servers(world: World) -> None:
    port = world.gitlab.url.rpartition(":")[2]
    runner = {"clone_url": f"http://localhost:{port}/"}
    variables = {"CI_PROJECT_PATH": "group/proj"}
    info = {"repo_url": "http://gitlab-ci-token:x@gitlab.invalid/group/proj.git"}
    result = world.run("git config remote.origin.url", runner=runner, variables=variables, git=info)
    assert f"\nhttp://localhost:{port}/group/proj.git\n" in result.text


def test_7_4_helpers_forget_the_token(world: World) -> None:
    log = world.base / "helper.log"
    helper = world.base / "helper"
    helper.write_text(f'#!/bin/sh\necho "$1" >> {log}\ncat >> {log}\n')
    helper.chmod(0o755)
    (world.home / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    result = world.run()
    assert log.read_text().count("erase\n") >= 2, "at the end of get_sources and in the clean-up"
    assert "username=gitlab-ci-token" in log.read_text()
    assert "credential" not in result.text


# --- 6 and 7: clean-up ------------------------------------------------------------------------------------------


def test_6_cleanup_removes_what_the_runner_wrote(world: World) -> None:
    secret = {"key": "KUBECONFIG", "value": "top secret", "file": True, "public": False, "masked": False}
    result = world.run("cat $KUBECONFIG", "echo A=b >> $GITLAB_ENV", extra_variables=[secret])
    assert "top secret" in result.text
    assert {path.name for path in world.temp.iterdir()} <= {"git-template"}
    assert world.files_with("top secret", world.builds) == []


@pytest.mark.parametrize(
    ("strategy", "left"), [("fetch", {".git", ".gitignore", "README.md"}), ("clone", None), ("empty", None)]
)
def test_6_job_cleanup(world: World, strategy: str, left: set[str] | None) -> None:
    variables = {"FF_ENABLE_JOB_CLEANUP": "true", "GIT_STRATEGY": strategy}
    result = world.run("touch new ignored.o", "echo mine > README.md", variables=variables)
    project = world.project.with_name("proj-empty") if strategy == "empty" else world.project
    if left is None:
        assert not project.exists(), result.text
        return
    assert {path.name for path in project.iterdir()} == left
    assert (project / "README.md").read_text() == "two\n"


# --- 7.2 l: LFS -------------------------------------------------------------------------------------------------

LFS_CONFIG = """\
[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\tprocess = git-lfs filter-process
\trequired = true
"""


@pytest.fixture
def lfs(world: World) -> World:
    (world.home / ".gitconfig").write_text(LFS_CONFIG)
    world.repository.commit_lfs({"big.bin": b"large content\n"})
    return world


@pytest.mark.parametrize("flags", [{}, {"FF_GIT_URLS_WITHOUT_TOKENS": "true"}], ids=["tokens", "no-tokens"])
@pytest.mark.parametrize("strategy", ["fetch", "clone"])
def test_7_2_l_large_files_are_pulled(lfs: World, strategy: str, flags: dict[str, str]) -> None:
    variables = {"GIT_STRATEGY": strategy, **flags}
    for _ in range(2):
        result, commands = lfs.git_commands("cat big.bin", "git status --porcelain", variables=variables)
        assert "large content" in result.text
        assert result.section("step_script").endswith("git status --porcelain\n")
        assert lfs.files_with(result.job.token) == []


def test_7_2_l_large_files_can_be_left_out(lfs: World) -> None:
    result = lfs.run("cat big.bin", variables={"GIT_LFS_SKIP_SMUDGE": "true"})
    assert "version https://git-lfs.github.com/spec/v1" in result.text
    assert lfs.gitlab.requests_to("POST", "objects/batch") == []


def test_7_2_l_a_missing_object_fails_the_stage(lfs: World) -> None:
    for path in (lfs.repository.bare / "lfs").rglob("*"):
        if path.is_file():
            path.unlink()
    result = lfs.run("echo script-ran", state="failed")
    assert "script-ran" not in result.text


# --- FF_USE_GIT_NATIVE_CLONE ------------------------------------------------------------------------------------


@pytest.fixture
def new_git(world: World) -> World:
    """Jobs meet a git that says of itself that it is new enough."""
    shims = world.base / "shims"
    shims.mkdir()
    real = shutil.which("git")
    shim = f'#!/bin/bash\n[ "$*" != "clone -h" ] || {{ echo "--[no-]revision <rev>"; exit 129; }}\nexec {real} "$@"\n'
    (shims / "git").write_text(shim)
    (shims / "git").chmod(stat.S_IRWXU)
    world.path_first(shims)
    return world


def test_7_2_native_clone(new_git: World) -> None:
    variables = {"FF_USE_GIT_NATIVE_CLONE": "true", "GIT_STRATEGY": "clone", "GIT_CLONE_EXTRA_FLAGS": "--no-tags"}
    for depth, text in ((1, " with git depth set to 1..."), (0, "...")):
        result, commands = new_git.git_commands("cat README.md", variables=variables, git={"depth": depth})
        assert f"Cloning repository for main{text}" in result.text
        clone = next(command for command in commands if "clone --no-checkout" in command)
        assert "--branch main" in clone
        assert clone.endswith("--no-tags")
        assert ("--depth 1" in clone) == (depth == 1)
        assert not [command for command in commands if "fetch origin" in command]
        assert new_git.files_with(result.job.token) == []


def test_7_2_native_clone_needs_strategy_clone(new_git: World) -> None:
    result = new_git.run("cat README.md", variables={"FF_USE_GIT_NATIVE_CLONE": "true"})
    assert "Cloning repository" not in result.text


def test_7_2_native_clone_with_an_old_git_is_a_fetch(world: World) -> None:
    result = world.run("cat README.md", variables={"FF_USE_GIT_NATIVE_CLONE": "true", "GIT_STRATEGY": "clone"})
    assert "Cloning repository" in result.text or "Created fresh repository." in result.text
