"""facts/job-lifecycle.md section 2: numbers and directories; section 1: what a job's life shows in the runner's log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_checks import Result, check, plain_log
from pyrunner.testing.job_life import SOURCES, Expect, Row, job, show
from pyrunner.testing.runner_service import RunnerService

SHELL = frozenset(("shell",))
REFUSED = {"state": "failed", "reason": "runner_configuration_error"}
NOT_ALLOWED = "setting GIT_CLONE_PATH is not allowed, enable `custom_build_dir` feature"
CUSTOM = {"custom_build_dir": {"enabled": True}}


def slug(id: str, url: str, path: str) -> Row:  # noqa: A002
    """A row about the project's path for a repository URL."""
    return Row(
        id=f"2-slug-{id}",
        job=job(show("CI_PROJECT_DIR"), git_info={"repo_url": url}),
        expect=Expect(variables={"CI_PROJECT_DIR": f"@BUILDS@/@SHORT@/0/{path}"}),
        only=SHELL,
    )


def clone_path(id: str, value: str, expect: Expect, runner: dict[str, object] = CUSTOM) -> Row:  # noqa: A002
    """A row about ``GIT_CLONE_PATH``."""
    variables = {"GIT_CLONE_PATH": value}
    return Row(
        id=f"2-clone-path-{id}",
        job=job(show("CI_PROJECT_DIR", "RUNNER_TEMP_PROJECT_DIR"), variables=variables),
        runner=runner,
        expect=expect,
        only=SHELL,
    )


ROWS = [
    Row(
        id="1-processing-list",
        job=job(),
        expect=Expect(runner_log=["Checking for jobs... received", "Added job to processing list", "Job succeeded"]),
    ),
    Row(
        id="2-project-dir-holds-token-and-number",
        job=job("pwd", show("CI_PROJECT_DIR", "CI_CONCURRENT_PROJECT_ID")),
        expect=Expect(
            variables={"CI_PROJECT_DIR": "@BUILDS@/@SHORT@/0/@SLUG@", "CI_CONCURRENT_PROJECT_ID": "0"},
            has=["\n@BUILDS@/@SHORT@/0/@SLUG@\n"],
        ),
        only=SHELL,
    ),
    Row(
        id="2-first-job-of-a-runner-is-number-0",
        job=job(show("CI_CONCURRENT_ID")),
        runner={"limit": 1},
        expect=Expect(variables={"CI_CONCURRENT_ID": "0"}),
    ),
    slug("nested", "https://gitlab.example/a/b/c/d.git", "a/b/c/d"),
    slug("without-suffix", "https://gitlab.example/a/b", "a/b"),
    slug("with-port-and-credentials", "http://user:pw@gitlab.example:8080/a/port.git", "a/port"),
    slug("doubled-slashes", "https://gitlab.example//a//doubled.git", "a/doubled"),
    slug("leaving-the-builds-dir", "https://gitlab.example/a/../../b.git", "project-@ID@"),
    slug("without-host", "/srv/git/a/b.git", "project-@ID@"),
    slug("without-path", "https://gitlab.example/", "project-@ID@"),
    slug("none", "", "project-@ID@"),
    Row(
        id="2-empty-strategy-has-a-directory-of-its-own",
        job=job("pwd", show("CI_PROJECT_DIR"), 'test -z "$(ls -A)"', variables={"GIT_STRATEGY": "empty"}),
        before={"@PROJECT@-empty/left-over": ""},
        expect=Expect(variables={"CI_PROJECT_DIR": "@PROJECT@-empty"}, has=["\n@PROJECT@-empty\n"]),
    ),
    Row(
        id="2-temp-dir-stands-beside",
        job=job('test -d "$CI_PROJECT_DIR.tmp"', show("RUNNER_TEMP_PROJECT_DIR")),
        expect=Expect(variables={"RUNNER_TEMP_PROJECT_DIR": "@PROJECT@.tmp"}),
    ),
    Row(
        id="2-cache-dir-has-the-slug",
        job=job("echo x > kept", cache=[{"key": "the-key", "paths": ["kept"], "policy": "pull-push"}]),
        runner={"cache_dir": "@HOME@/the-cache"},
        expect=Expect(
            files=["@HOME@/the-cache/@SLUG@/the-key/cache.zip"],
            order=["Checking cache for the-key...", "Creating cache the-key...", "Created cache"],
        ),
        only=SHELL,
    ),
    Row(
        id="2-sources-are-in-the-project-dir",
        job=job("cat README.md", git_info=SOURCES),
        expect=Expect(has=["\nhello\n"], order=["Fetching changes with git depth", "Created fresh repository."]),
    ),
    clone_path(
        "is-not-allowed-by-default",
        "$CI_BUILDS_DIR/mine",
        Expect(**REFUSED, last=f"ERROR: Job failed: {NOT_ALLOWED}", lacks=["Will be retried"]),
        runner={},
    ),
    clone_path(
        "switched-off",
        "$CI_BUILDS_DIR/mine",
        Expect(**REFUSED, last=f"ERROR: Job failed: {NOT_ALLOWED}"),
        runner={"custom_build_dir": {"enabled": False}},
    ),
    clone_path(
        "is-used-literally",
        "$CI_BUILDS_DIR/mine/@ID@",
        Expect(variables={"CI_PROJECT_DIR": "@BUILDS@/mine/@ID@", "RUNNER_TEMP_PROJECT_DIR": "@BUILDS@/mine/@ID@.tmp"}),
    ),
    clone_path(
        "is-resolved-before-it-is-compared",
        "$CI_BUILDS_DIR/a/../@ID@",
        Expect(variables={"CI_PROJECT_DIR": "@BUILDS@/@ID@"}),
    ),
    clone_path(
        "outside",
        "/tmp/elsewhere",
        Expect(**REFUSED, last='ERROR: Job failed: the GIT_CLONE_PATH="/tmp/elsewhere" has to be within "@BUILDS@"'),
    ),
    clone_path(
        "outside-through-dots",
        "$CI_BUILDS_DIR/../elsewhere",
        Expect(
            **REFUSED,
            last='ERROR: Job failed: the GIT_CLONE_PATH="@BUILDS@/../elsewhere" has to be within "@BUILDS@"',
        ),
    ),
    clone_path(
        "neighbour-with-the-same-beginning",
        "$CI_BUILDS_DIR-other/x",
        Expect(**REFUSED, last='ERROR: Job failed: the GIT_CLONE_PATH="@BUILDS@-other/x" has to be within "@BUILDS@"'),
    ),
]


def test_row(row: Row, result: Result) -> None:
    check(row, result)


def test_2_numbers_are_the_smallest_free_ones(tmp_path: Path) -> None:
    script = ['printf "numbers %s %s\\n" "$CI_CONCURRENT_ID" "$CI_CONCURRENT_PROJECT_ID"']
    waiting = [*script, f"while [ ! -e {tmp_path}/gate-$CI_JOB_ID ]; do echo .; sleep 0.05; done"]

    def of_project(number: int, *commands: str) -> dict[str, Any]:
        payload = job(*commands)
        return {**payload, "job_info": {**payload["job_info"], "project_id": number}}

    def numbers(job_id: int) -> str:
        gitlab.wait_for_trace(job_id, b"numbers ")
        return plain_log(gitlab.job(job_id).trace).partition("\nnumbers ")[2].partition("\n")[0]

    with FakeGitLab(update_interval=1, long_poll=1) as gitlab, RunnerService(gitlab, tmp_path, concurrent=5):
        ids = []
        for project in (1, 2, 1):
            ids.append(gitlab.submit(of_project(project, *waiting)))
            gitlab.wait_for(ids[-1], "running")
        assert [numbers(job_id) for job_id in ids] == ["0 0", "1 0", "2 1"]
        (tmp_path / f"gate-{ids[0]}").touch()
        gitlab.wait_for(ids[0], "success")
        # what the first one had is free again
        assert numbers(gitlab.submit(of_project(2, *script))) == "0 1"
        for job_id in ids[1:]:
            (tmp_path / f"gate-{job_id}").touch()
            gitlab.wait_for(job_id, "success")
