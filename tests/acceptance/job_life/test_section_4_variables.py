"""facts/job-lifecycle.md section 4: variables."""

from __future__ import annotations

from dataclasses import replace

from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import Expect, Row, job, show, step

SHELL = frozenset(("shell",))
DOCKER = frozenset(("docker",))
ON = ("shell", "docker")


def sees(id: str, shown: dict[str, str | None], variables: dict[str, object] | None = None, **fields: object) -> Row:  # noqa: A002
    """A row whose script looks at variables."""
    runner, only = fields.pop("runner", {}), fields.pop("only", frozenset())
    return Row(
        id=id,
        job=job(show(*shown), variables=variables, **fields),  # type: ignore[arg-type]
        runner=runner,  # type: ignore[arg-type]
        expect=Expect(variables=shown),
        only=only,  # type: ignore[arg-type]
    )


ORDER = [
    sees("4.1.1-flags-are-exported-resolved", {"FF_TIMESTAMPS": "true", "FF_NETWORK_PER_BUILD": "false"}),
    sees("4.1.1-flag-of-the-job", {"FF_TEST_FEATURE": "true"}, {"FF_TEST_FEATURE": "1"}),
    sees("4.1.1-flag-that-is-none", {"FF_TEST_FEATURE": "false"}, {"FF_TEST_FEATURE": "perhaps"}),
    sees(
        "4.1.1-flag-of-the-config-beats-the-job",
        {"FF_TEST_FEATURE": "false", "FF_SCRIPT_SECTIONS": "true"},
        {"FF_TEST_FEATURE": "true", "FF_SCRIPT_SECTIONS": "false"},
        runner={"feature_flags": {"FF_TEST_FEATURE": False, "FF_SCRIPT_SECTIONS": True}},
    ),
    sees("4.1.2-image", {"CI_JOB_IMAGE": "ruby:3"}, {"TAG": "3"}, image={"name": "ruby:$TAG"}, only=SHELL),
    sees("4.1.2-no-image", {"CI_JOB_IMAGE": None}),
    sees("4.1.2-short-token", {"CI_RUNNER_SHORT_TOKEN": "@SHORT@"}),
    sees(
        "4.1.2-environment-of-the-config",
        {"OF_CONFIG": "a=b", "EXPANDED": "of job", "OF_JOB": "of job", "CI_SERVER": "yes"},
        {"OF_JOB": "of job"},
        runner={"environment": ["OF_CONFIG=a=b", "EXPANDED=$OF_JOB", "OF_JOB=no", "CI_SERVER=no", "nonsense"]},
    ),
    sees(
        "4.1.3-place-and-numbers",
        {
            "CI_BUILDS_DIR": "@BUILDS@",
            "CI_PROJECT_DIR": "@PROJECT@",
            "CI_CONCURRENT_PROJECT_ID": "0",
            "CI_SERVER": "yes",
            "CI_JOB_STATUS": "running",
            "CI_JOB_TIMEOUT": "3600",
        },
    ),
    sees(
        "4.1.4-no-tls-files-over-plain-http",
        dict.fromkeys(("CI_SERVER_TLS_CA_FILE", "CI_SERVER_TLS_CERT_FILE", "CI_SERVER_TLS_KEY_FILE")),
    ),
    sees(
        "4.1.5-job-overrides-groups-1-to-4",
        {
            "CI_JOB_IMAGE": "a",
            "CI_RUNNER_SHORT_TOKEN": "b",
            "CI_SERVER": "c",
            "CI_JOB_TIMEOUT": "d",
            "CI_BUILDS_DIR": "e",
        },
        {
            "CI_JOB_IMAGE": "a",
            "CI_RUNNER_SHORT_TOKEN": "b",
            "CI_SERVER": "c",
            "CI_JOB_TIMEOUT": "d",
            "CI_BUILDS_DIR": "e",
        },
        image={"name": "ruby"},
        only=SHELL,
    ),
    Row(
        id="4.1.5-last-definition-wins",
        job=job(show("TWICE"), variables={"TWICE": "first"})
        | {"variables": [{"key": "GIT_STRATEGY", "value": "none"}, *({"key": "TWICE", "value": v} for v in "12")]},
        expect=Expect(variables={"TWICE": "2"}),
    ),
    sees(
        "4.1.6-shared-environment",
        {"CI_SHARED_ENVIRONMENT": "true", "CI_DISPOSABLE_ENVIRONMENT": None},
        {"CI_SHARED_ENVIRONMENT": "false"},
        only=SHELL,
    ),
    sees(
        "4.1.6-disposable-environment",
        {"CI_SHARED_ENVIRONMENT": None, "CI_DISPOSABLE_ENVIRONMENT": "true"},
        {"CI_DISPOSABLE_ENVIRONMENT": "false"},
        only=DOCKER,
    ),
    sees(
        "4.1.7-version-is-ours",
        {"CI_RUNNER_VERSION": "19.4.0", "CI_RUNNER_REVISION": "pyrunner", "CI_RUNNER_EXECUTABLE_ARCH": "linux/amd64"},
        {"CI_RUNNER_VERSION": "1", "CI_RUNNER_REVISION": "1", "CI_RUNNER_EXECUTABLE_ARCH": "1"},
    ),
    sees("4.1.9-temp-dir", {"RUNNER_TEMP_PROJECT_DIR": "@PROJECT@.tmp"}, {"RUNNER_TEMP_PROJECT_DIR": "/mine"}),
    sees("4.1-gitlab-env", {"GITLAB_ENV": "@PROJECT@.tmp/gitlab_runner_env"}, {"GITLAB_ENV": "/mine"}),
]

EXPANSION = [
    sees("4.2-expanded-once", {"A": "$C", "B": "x", "C": "x"}, {"A": "$B", "B": "$C", "C": "x"}),
    sees("4.2-raw-stays", {"A": "$B ${B} $$"}, {"A": {"value": "$B ${B} $$", "raw": True}, "B": "x"}),
    sees("4.2-both-forms", {"A": "1-1x-2"}, {"A": "$X-${X}x-$Y", "X": "1", "Y": "2"}),
    sees("4.2-unknown-is-empty", {"A": "<>"}, {"A": "<$NOBODY_KNOWS${NOR_THIS}>"}),
    sees("4.2-double-dollar", {"A": "$X $"}, {"A": "$$X $$", "X": "1"}),
    sees("4.2-special-parameters-are-empty", {"A": "<>2"}, {"A": "<$*$#$@$!$?$0$1$9>$12"}),
    sees("4.2-other-dollars-stay", {"A": "$% $/ a$ $"}, {"A": "$% $/ a$ $"}),
    sees("4.2-no-percent-form", {"A": "%X%"}, {"A": "%X%", "X": "1"}),
    sees("4.2-names-end-where-letters-end", {"A": "1.x-1_"}, {"A": "$X_1.x-${X_1}_", "X_1": "1"}),
    sees("4.2-self-reference", {"PATH_LIKE": "a:a:$PATH_LIKE:x:x"}, {"PATH_LIKE": "a:$PATH_LIKE:x"}),
    sees(
        "4.2-file-by-reference-is-its-path", {"A": "@PROJECT@.tmp/F"}, {"A": "$F", "F": {"value": "text", "file": True}}
    ),
    Row(
        id="4.2-file-content-is-expanded",
        job=job('cat "$F"', variables={"F": {"value": "<$X>", "file": True}, "X": "1"}),
        expect=Expect(has=["<1>"]),
    ),
    Row(
        id="4.2-release-script-is-expanded-by-the-runner",
        job=job(
            steps=[step("script", "echo 'script <$A>'"), step("release", "echo 'release <$A>'")], variables={"A": "x"}
        ),
        expect=Expect(has=["\nscript <$A>\n", "\nrelease <x>\n"]),
    ),
    *(
        Row(
            id=f"4.2-bool-{text}",
            job=job(after=("exit 5",), variables={"AFTER_SCRIPT_IGNORE_ERRORS": text}),
            expect=Expect()
            if ignored
            else Expect(state="failed", reason="script_failure", exit_code=5, last="ERROR: Job failed: @EXIT@ 5"),
        )
        for ignored, texts in ((True, ("true", "T", "1", "TRUE", "yes")), (False, ("false", "F", "0", "7", "False")))
        for text in texts
    ),
]

FILES = [
    Row(
        id="4.3-file-variable",
        job=job(
            show("F"),
            """[ "$(cat "$F"; echo end)" = "$(printf 'a\\nb'; echo end)" ]""",
            'rm "$F"',
            after=('cat "$F"',),
            variables={"F": {"value": "a\nb", "file": True}},
        ),
        expect=Expect(variables={"F": "@PROJECT@.tmp/F"}, has=["\na\nb"], files=["!@PROJECT@.tmp/F"]),
    ),
    Row(
        id="4.3-mode-of-the-umask",
        job=job(
            """printf '%o %s\\n' $((0666 & ~$(umask))) "$(stat -c %a "$F")" | { read a b; [ "$a" = "$b" ]; }""",
            variables={"F": {"value": "", "file": True}},
        ),
    ),
    Row(
        id="4.3-file-variables-are-gone-after-a-failure",
        job=job("exit 1", variables={"F": {"value": "x", "file": True}}),
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=1,
            files=["!@PROJECT@.tmp/F"],
            last="ERROR: Job failed: @EXIT@ 1",
        ),
    ),
]

GITLAB_ENV = [
    Row(
        id="4.4-lines-become-variables-of-later-stages",
        job=job(
            'echo "A=from env" >> "$GITLAB_ENV"',
            show("A"),
            steps=[
                step(
                    "script",
                    'echo "A=one=\'two\' three" >> "$GITLAB_ENV"',
                    'echo "B=\\$(touch @ROOM@/evaluated)" >> "$GITLAB_ENV"',
                ),
                step("more", show("A", "B")),
                step("after_script", 'echo "after <$A>"'),
            ],
            variables={"A": "of job"},
        ),
        expect=Expect(
            variables={"A": "one='two' three", "B": "$(touch @ROOM@/evaluated)"},
            has=["after <one='two' three>"],
            files=["!@ROOM@/evaluated", "!@PROJECT@.tmp/gitlab_runner_env"],
        ),
    ),
    Row(
        id="4.4-what-an-earlier-job-left-is-not-read",
        job=job(show("OLD")),
        before={"@PROJECT@.tmp/gitlab_runner_env": "OLD=1\n"},
        expect=Expect(variables={"OLD": None}),
        only=SHELL,
    ),
    Row(
        id="4.4-last-line-without-newline",
        job=job(steps=[step("script", 'printf X=1 >> "$GITLAB_ENV"'), step("more", show("X"))]),
        expect=Expect(variables={"X": "1"}),
    ),
]

#: Flags are resolved, and values expanded, before any executor hears of the job.
_READ = ("4.1.1-", "4.2-")
ORDER, EXPANSION = (
    [replace(row, only=SHELL) if row.id.startswith(_READ) else row for row in rows] for rows in (ORDER, EXPANSION)
)

ROWS = [*ORDER, *EXPANSION, *FILES, *GITLAB_ENV]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
