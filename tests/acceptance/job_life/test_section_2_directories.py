"""facts/job-lifecycle.md section 2: numbers and directories; section 1: what a job's life shows in the runner's log."""

from __future__ import annotations

from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import SOURCES, Expect, Row, job, show

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
