"""get_sources against real repositories over HTTP that want the job's token."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.wire import GitInfo, Hook, JobResponse, JobVariable
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ScriptContext
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.shell_contract import run_script, script_context

sys.path.insert(0, str(Path(__file__).parent))
from git_http import git_server  # noqa: E402

TOKEN = "glcbt-64_secret.token"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path, "group/proj", {"README.md": "one\n", ".gitignore": "*.o\n"})
    made.commit({"README.md": "two\n"})
    return made


@pytest.fixture
def server(repository: GitRepository) -> Iterator[tuple[str, list[dict[str, str]]]]:
    with git_server(repository.root, f"gitlab-ci-token:{TOKEN}") as served:
        yield served


@pytest.fixture(params=["bash", "sh"])
def job(
    request: pytest.FixtureRequest, tmp_path: Path, repository: GitRepository, server: tuple[str, list[Any]]
) -> Job:
    return Job(request.param, tmp_path / "run", repository, server[0])


class Job:
    """A job whose stages are run one by one."""

    def __init__(self, shell_name: str, base: Path, repository: GitRepository, url: str) -> None:
        base.mkdir()
        self.shell_name = shell_name
        self.base = base
        info = GitInfo(
            repo_url=f"{url}/group/proj.git".replace("://", f"://gitlab-ci-token:{TOKEN}@"),
            ref="main",
            sha=repository.sha,
            refspecs=["+refs/heads/main:refs/remotes/origin/main"],
        )
        payload = JobResponse(id=7, token=TOKEN, git_info=info)
        token = JobVariable(key="CI_JOB_TOKEN", value=TOKEN)
        self.context: ScriptContext = script_context(
            base, job=payload, config=RunnerConfig(url=url), git_strategy="fetch", variables=[token]
        )
        self.project = Path(self.context.project_dir)

    def set(self, **changes: Any) -> None:
        variables = [JobVariable(key=key, value=value) for key, value in changes.pop("variables", {}).items()]
        self.context = replace(self.context, variables=self.context.variables.plus(variables), **changes)

    def run(self, stage: str = "get_sources", code: int = 0) -> str:
        script = shell(self.shell_name).script(stage, self.context)
        assert script is not None
        result = run_script([self.shell_name], script, self.base)
        assert result.returncode == code, result.stdout.decode()
        return result.stdout.decode()

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.project, stdout=subprocess.PIPE, check=True, text=True)
        return done.stdout.strip()


def notices(output: str) -> list[str]:
    return [line[7:-5] for line in output.splitlines() if line.startswith("\x1b[32;1m")]


def test_a_fresh_repository_then_a_second_job(job: Job, repository: GitRepository) -> None:
    output = job.run()
    assert notices(output) == [
        "Fetching changes...",
        "Created fresh repository.",
        f"Checking out {repository.sha[:8]} as detached HEAD (ref is main)...",
        "Skipping Git submodules setup",
    ]
    assert "Initialized empty Git repository in" in output
    (job.project / "left.over").write_text("x")
    (job.project / "ignored.o").write_text("x")
    (job.project / "README.md").write_text("changed")
    job.context.job.git_info.sha = repository.commit({"NEW": "three\n"})
    output = job.run()
    assert "Created fresh repository." not in output
    assert (job.project / "NEW").read_text() == "three\n"
    assert (job.project / "README.md").read_text() == "two\n"
    assert sorted(path.name for path in job.project.iterdir()) == [".git", ".gitignore", "NEW", "README.md"]


def test_the_token_is_not_in_the_repository_and_gone_after_cleanup(job: Job) -> None:
    job.run()
    assert job.git("config", "remote.origin.url").endswith("/group/proj.git")
    for path in job.project.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()
    external = Path(job.context.temp_dir, ".gitlab-runner.ext.conf")
    assert TOKEN in external.read_text()
    assert external.stat().st_mode & 0o077 == 0
    assert job.git("ls-remote", "origin", "main")
    job.run("cleanup_file_variables")
    assert not external.exists()


def test_a_token_never_goes_to_a_host_that_only_starts_alike(job: Job) -> None:
    job.run()
    host = job.context.config.url
    url = job.git("ls-remote", "--get-url", f"{host}/other/thing.git")
    assert TOKEN in url
    assert TOKEN not in job.git("ls-remote", "--get-url", f"{host}0/other/thing.git")


def test_urls_without_tokens_use_a_credential_helper(job: Job) -> None:
    job.set(flags={"FF_GIT_URLS_WITHOUT_TOKENS": True})
    job.run()
    for path in job.base.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


def test_depth_and_unshallowing(job: Job) -> None:
    job.context.job.git_info.depth = 1
    assert "Fetching changes with git depth set to 1..." in job.run()
    assert job.git("rev-list", "--count", "HEAD") == "1"
    job.context.job.git_info.depth = 0
    job.run()
    assert job.git("rev-list", "--count", "HEAD") == "2"


def test_clone_starts_from_nothing(job: Job) -> None:
    job.run()
    (job.project / ".git" / "marker").write_text("old")
    job.set(git_strategy="clone")
    assert "Created fresh repository." in job.run()
    assert not (job.project / ".git" / "marker").exists()


def test_native_clone_falls_back_on_an_old_git(job: Job, repository: GitRepository) -> None:
    job.set(git_strategy="clone", flags={"FF_USE_GIT_NATIVE_CLONE": True})
    output = job.run()
    assert "Cloning repository for main..." in output or "Fetching changes..." in output
    assert job.git("rev-parse", "HEAD") == repository.sha


def test_locks_of_a_killed_git_do_not_stop_the_next_job(job: Job) -> None:
    job.run()
    for name in ("index.lock", "shallow.lock", "HEAD.lock", "config.lock", "refs/remotes/origin/main.lock"):
        (job.project / ".git" / name).write_text("")
    job.run()
    assert not list(job.project.glob(".git/**/*.lock"))


def test_planted_config_and_hooks_are_removed_when_asked(job: Job) -> None:
    job.run()
    job.git("config", "core.sshCommand", "evil")
    hooks = job.project / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "reference-transaction").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "reference-transaction").chmod(0o700)
    job.set(clean_git_config=True)
    job.run()
    assert "evil" not in (job.project / ".git/config").read_text()
    assert not hooks.exists()


def test_clean_flags_and_checkout_follow_the_variables(job: Job) -> None:
    job.run()
    (job.project / "kept.o").write_text("x")
    (job.project / "gone.txt").write_text("x")
    job.set(variables={"GIT_CLEAN_FLAGS": "-ffd -e nothing"})
    job.run()
    assert (job.project / "kept.o").exists()
    assert not (job.project / "gone.txt").exists()
    (job.project / "README.md").write_text("mine")
    job.set(variables={"GIT_CHECKOUT": "false"})
    assert "Skipping Git checkout" in job.run()
    assert (job.project / "README.md").read_text() == "mine"


def test_hooks_run_around_in_order(job: Job) -> None:
    job.context.config.pre_get_sources_script = "echo hook1"
    job.context.config.post_get_sources_script = "echo hook4"
    job.context.job.hooks = [
        Hook(name="pre_get_sources_script", script=["echo hook2"]),
        Hook(name="post_get_sources_script", script=["echo hook3; test -e README.md"]),
    ]
    output = job.run().splitlines()
    assert [line for line in output if line.startswith("hook")] == ["hook1", "hook2", "hook3", "hook4"]


def test_git_introduces_itself_with_the_correlation_id(job: Job, server: tuple[str, list[dict[str, str]]]) -> None:
    job.set(correlation_id='01AB"c')
    assert 'Gitaly correlation ID: 01AB"c' in job.run()
    assert {headers.get("X-Gitaly-Correlation-ID") for headers in server[1]} == {'01AB"c'}
    assert server[1][0]["User-Agent"].startswith("gitlab-runner 19.4.0 linux/")


def test_a_clone_url_replaces_the_servers(job: Job) -> None:
    job.context.config.clone_url = job.context.config.url
    job.context.job.git_info.repo_url = "https://gitlab-ci-token:x@wrong.example.com/group/proj.git"
    job.set(variables={"CI_PROJECT_PATH": "group/proj"})
    job.run()
    assert job.git("config", "remote.origin.url") == f"{job.context.config.url}/group/proj.git"


def test_a_missing_commit_fails_the_stage(job: Job) -> None:
    job.context.job.git_info.sha = "1" * 40
    job.run(code=128)


def test_clear_worktree_leaves_nothing_but_git(job: Job) -> None:
    job.run("clear_worktree")
    job.run()
    (job.project / "left.o").write_text("x")
    assert "Deleting tracked and untracked files..." in job.run("clear_worktree")
    assert [path.name for path in job.project.iterdir()] == [".git"]
    job.run()
    assert (job.project / "README.md").exists()


def test_job_cleanup_resets_the_project(job: Job) -> None:
    job.run()
    (job.project / "left.over").write_text("x")
    (job.project / "README.md").write_text("x")
    job.set(flags={"FF_ENABLE_JOB_CLEANUP": True})
    job.run("cleanup_file_variables")
    assert not (job.project / "left.over").exists()
    assert (job.project / "README.md").read_text() == "two\n"
    job.set(git_strategy="clone")
    job.run("cleanup_file_variables")
    assert not job.project.exists()


def test_relative_build_directories_work(job: Job) -> None:
    def relative(path: str) -> str:
        return str(Path(path).relative_to(job.base))

    paths = {name: relative(getattr(job.context, name)) for name in ("builds_dir", "project_dir", "temp_dir")}
    job.set(**paths)
    job.run()
    assert (job.project / "README.md").exists()
    assert job.git("ls-remote", "origin", "main")


@pytest.mark.parametrize("strategy", ["normal", "recursive"])
def test_submodules_are_fetched_with_the_jobs_token(
    job: Job, repository: GitRepository, tmp_path: Path, strategy: str
) -> None:
    _add_submodules(repository, tmp_path)
    job.context.job.git_info.sha = repository.sha
    job.set(variables={"GIT_SUBMODULE_STRATEGY": strategy})
    output = notices(job.run())
    suffix = " recursively" if strategy == "recursive" else ""
    assert f"Updating/initializing submodules{suffix}..." in output
    assert "Updated submodules" in output
    assert "Configuring submodules to use parent git credentials..." in output
    assert (job.project / "middle/file").exists()
    assert (job.project / "middle/inner/file").exists() == (strategy == "recursive")
    (job.project / "middle/dirt").write_text("x")
    lock = job.project / ".git/modules/middle/index.lock"
    lock.write_text("")
    job.run()
    assert not (job.project / "middle/dirt").exists()
    for path in job.project.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
    job.set(flags={"FF_ENABLE_JOB_CLEANUP": True})
    job.run("cleanup_file_variables")


def _add_submodules(repository: GitRepository, tmp_path: Path) -> None:
    """`repository` gets ``middle``, which has ``inner``; all by relative URL."""
    made = {}
    for name in ("inner", "middle"):
        made[name] = GitRepository(tmp_path / name, f"group/{name}", {"file": name})
        (repository.root / "group" / f"{name}.git").symlink_to(made[name].bare)
    for outer, name in ((made["middle"], "inner"), (repository, "middle")):
        outer.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(made[name].bare), name)
        outer.git("config", "-f", ".gitmodules", f"submodule.{name}.url", f"../{name}.git")
        outer.commit({})
