"""facts/job-lifecycle.md sections 3.2 (timeouts), 3.3 (cancel and abort) and 3.4 (exit codes and the final line)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import slow, status
from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import SOURCES, Expect, Row, Strike, When, cancel, force_cancel, job, step

SHELL = frozenset(("shell",))
DOCKER = frozenset(("docker",))
ON = ("shell", "docker")
#: Seconds within which containers are there even on a busy machine.
SLOW = 12
CUT = (
    "WARNING: {stage} could not run to completion because the timeout was exceeded. For more control over job and "
    "script timeouts see: https://docs.gitlab.com/ci/runners/configure_runners/#set-script-and-after_script-timeouts\n"
)
CACHE = [{"key": "k", "paths": ["kept"], "when": "always"}]
START = ("prepare_executor", "prepare_script", "get_sources")
END = "cleanup_file_variables"
#: A runner hears of a cancel in the answers to what it sends, so the script has to print.
BUSY = "echo begun; i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo $i; sleep 0.1; done"
AFTER = ('echo "after <$CI_JOB_STATUS>"',)


def timed_out(line: str, **fields: Any) -> Expect:
    return Expect(state="failed", reason="job_execution_timeout", last=f"ERROR: Job failed: {line}", **fields)


def dummy(id: str, does: dict[str, str], expect: Expect, **fields: Any) -> Row:  # noqa: A002
    runner = {"executor": "dummy", **fields.pop("runner", {})}
    variables = {f"DUMMY_{stage}": deed for stage, deed in does.items()} | fields.pop("variables", {})
    return Row(id=id, job=job(variables=variables, **fields), runner=runner, expect=expect, only=SHELL)


def ignored(id: str, name: str, value: str, warning: str) -> Row:  # noqa: A002
    """A value of a timeout variable that is warned of, and has no effect."""
    return Row(
        id=f"3.2-{id}-{name}",
        job=job("sleep 0.1", after=("echo after",), variables={name: value}),
        expect=Expect(has=[f"WARNING: {warning}\n", "\nafter\n"], order=["WARNING: ", 'Preparing the "']),
        only=SHELL,
    )


TIMEOUTS = [
    Row(
        id="3.2-default", job=job('echo "<$CI_JOB_TIMEOUT>"', runner_info={"timeout": 0}), expect=Expect(has=["<7200>"])
    ),
    Row(
        id="3.2-negative",
        job=job('echo "<$CI_JOB_TIMEOUT>"', runner_info={"timeout": -5}),
        expect=Expect(has=["<7200>"]),
    ),
    *(
        Row(
            id="3.2-job-timeout-stops-everything",
            job=job("sleep 60", after=AFTER, runner_info={"timeout": limit}, cache=CACHE),
            expect=timed_out(
                f"execution took longer than {limit}s seconds",
                sections=[*START, "restore_cache", "step_script"],
                has=[CUT.format(stage="step_script")],
                lacks=["after <"],
            ),
            only=place,
        )
        for place, limit in ((SHELL, 3), (DOCKER, SLOW))
    ),
    Row(
        id="3.2-job-timeout-covers-get-sources",
        job=job(git_info=SOURCES, runner_info={"timeout": 3}),
        server=[Strike(method="GET", path="@SLUG@.git/info/refs", fault=slow(20))],
        expect=timed_out(
            "execution took longer than 3s seconds", sections=START, has=[CUT.format(stage="get_sources")]
        ),
        only=SHELL,
    ),
    Row(
        id="3.2-job-timeout-in-after-script",
        job=job(after=("echo after; sleep 60",), runner_info={"timeout": 3}),
        expect=timed_out("execution took longer than 3s seconds", sections=[*START, "step_script", "after_script"]),
        only=SHELL,
    ),
    dummy(
        "3.2-job-timeout-covers-the-preparation",
        {"PREPARE": "hang"},
        timed_out("execution took longer than 1s seconds", sections=["prepare_executor"]),
        runner_info={"timeout": 1},
    ),
    dummy(
        "3.2-prepare-timeout",
        {"PREPARE": "hang"},
        timed_out("prepare timeout: exceeded timeout of 200ms", sections=["prepare_executor"]),
        runner={"prepare_timeout": "200ms"},
    ),
    dummy(
        "3.2-prepare-timeout-covers-prepare-script",
        {"PREPARE_SCRIPT": "hang"},
        timed_out(
            "prepare timeout: exceeded timeout of 200ms",
            sections=["prepare_executor", "prepare_script"],
            has=[CUT.format(stage="prepare_script")],
        ),
        runner={"prepare_timeout": "200ms"},
    ),
    dummy(
        "3.2-get-sources-timeout-ends-the-job-at-once",
        {"GET_SOURCES": "hang"},
        timed_out(
            "get sources timeout: exceeded timeout of 200ms", sections=START, has=[CUT.format(stage="get_sources")]
        ),
        runner={"get_sources_timeout": "200ms"},
        variables={"GET_SOURCES_ATTEMPTS": "3"},
        cache=CACHE,
        after=AFTER,
    ),
    *(
        Row(
            id=f"3.2-{key}-{word}",
            job=job("sleep 0.3"),
            runner={key: value},
            expect=Expect(runner_log=[f"{key} is not between zero and the job timeout, using the job timeout"]),
        )
        for key in ("prepare_timeout", "get_sources_timeout")
        for word, value in (("longer-than-the-job", "2h"), ("zero", "0s"), ("negative", "-1s"))
    ),
    Row(
        id="3.2-script-timeout-alone",
        job=job("echo begin; sleep 60", after=AFTER, variables={"RUNNER_SCRIPT_TIMEOUT": "1.5s"}, cache=CACHE),
        expect=timed_out(
            "script timeout: context deadline exceeded",
            sections=[*START, "restore_cache", "step_script", "after_script", "archive_cache_on_failure", END],
            has=["\nbegin\n", "after <timedout>", CUT.format(stage="step_script")],
        ),
    ),
    Row(
        id="3.2-script-timeout-is-for-all-steps-together",
        job=job(
            steps=[step("script", "sleep 0.5"), step("more", "sleep 60"), step("further", "true")],
            variables={"RUNNER_SCRIPT_TIMEOUT": "2s"},
        ),
        expect=timed_out(
            "script timeout: context deadline exceeded", sections=[*START, "step_script", "step_more", END]
        ),
        only=SHELL,
    ),
    Row(
        id="3.2-script-timeout-in-hours-and-minutes",
        job=job(variables={"RUNNER_SCRIPT_TIMEOUT": "0h10m30s"}),
        expect=Expect(lacks=["WARNING"]),
    ),
    Row(
        id="3.2-after-script-timeout",
        job=job(after=("echo begun; sleep 60",), variables={"RUNNER_AFTER_SCRIPT_TIMEOUT": "1.5s"}, cache=CACHE),
        expect=Expect(
            sections=[*START, "restore_cache", "step_script", "after_script", "archive_cache", END],
            order=[
                "\nbegun\n",
                CUT.format(stage="after_script"),
                "WARNING: after_script failed, but job will continue unaffected: context deadline exceeded\n",
            ],
        ),
    ),
    *(
        row
        for name in ("RUNNER_SCRIPT_TIMEOUT", "RUNNER_AFTER_SCRIPT_TIMEOUT")
        for row in (
            ignored("number", name, "10", f"Ignoring malformed {name} timeout: 10"),
            ignored("nonsense", name, "soon", f"Ignoring malformed {name} timeout: soon"),
            ignored("relative", name, "-5m", f"Ignoring relative {name} timeout: -5m"),
            ignored("too-long", name, "2h", f"{name} timeout: 2h is longer than job timeout. Setting to job timeout"),
        )
    ),
    Row(
        id="3.2-too-long-leaves-the-default",
        job=job("sleep 60", after=AFTER, variables={"RUNNER_SCRIPT_TIMEOUT": "2h"}, runner_info={"timeout": 1}),
        expect=timed_out("execution took longer than 1s seconds", lacks=["after <"]),
    ),
]


def canceled(**fields: Any) -> Expect:
    return Expect(state="failed", reason="job_canceled", last="ERROR: Job failed: canceled", **fields)


def refuse(gitlab: FakeGitLab, job_id: int) -> None:
    """From now on the job's token is worth nothing."""
    gitlab.inject("*", rf"/jobs/{job_id}(/trace)?$", status(403), times=None)


CANCEL = [
    Row(
        id="3.3-canceling-during-the-steps",
        job=job(BUSY, after=AFTER, cache=CACHE, artifacts=[{"paths": ["x"], "when": "on_failure"}]),
        server=[When(text="begun\n", then=cancel)],
        expect=canceled(
            sections=[
                *START,
                "restore_cache",
                "step_script",
                "after_script",
                "archive_cache_on_failure",
                "upload_artifacts_on_failure",
                END,
            ],
            order=["WARNING: script canceled externally (UI, API)\n", "Running after_script", "after <canceled>"],
            lacks=["could not run to completion"],
        ),
    ),
    Row(
        id="3.3-canceling-stops-further-steps",
        job=job(steps=[step("script", BUSY), step("more", "true")]),
        server=[When(text="begun\n", then=cancel)],
        expect=canceled(sections=[*START, "step_script", END]),
    ),
    Row(
        id="3.3-canceling-before-the-steps-is-an-abort",
        job=job(after=AFTER, git_info=SOURCES, cache=CACHE, variables={"GET_SOURCES_ATTEMPTS": "3"}),
        server=[
            Strike(method="GET", path="@SLUG@.git/info/refs", fault=slow(20)),
            When(request="@SLUG@.git/info/refs", then=cancel),
        ],
        expect=canceled(sections=START, lacks=["after <", "Retrying"]),
    ),
    Row(
        id="3.3-canceling-after-the-steps-comes-too-late",
        job=job(after=(BUSY.replace("600", "25"),)),
        server=[When(text="begun\n", then=cancel)],
        expect=Expect(delivered=False, lacks=["canceled externally"]),
    ),
    Row(
        id="3.3-canceled-aborts",
        job=job(BUSY, after=("touch @ROOM@/after",), cache=CACHE),
        server=[When(text="begun\n", then=force_cancel)],
        expect=Expect(
            state="failed",
            reason="job_canceled",
            delivered=False,
            files=["!@ROOM@/after"],
            runner_log=["Job failed: canceled"],
        ),
    ),
    Row(
        id="3.3-403-aborts",
        job=job(BUSY, after=("touch @ROOM@/after",)),
        server=[When(text="begun\n", then=refuse)],
        expect=Expect(
            state="failed",
            reason="job_canceled",
            delivered=False,
            files=["!@ROOM@/after"],
            runner_log=["Job failed: canceled"],
        ),
    ),
    Row(
        id="3.3-job-status-failed-aborts",
        job=job("sleep 60", after=("touch @ROOM@/after",)),
        server=[
            Strike(method="PATCH", path="/jobs/@ID@/trace", fault=status(202, {"Job-Status": "failed"}, handled=True))
        ],
        expect=canceled(files=["!@ROOM@/after"]),
    ),
    Row(
        id="3.3-canceled-script-gets-sigterm-in-all-its-processes",
        job=job(
            "echo begun; (trap 'touch @ROOM@/child; exit' TERM; for i in $(seq 99); do echo $i; sleep .1; done) & wait",
        ),
        server=[When(text="begun\n", then=cancel)],
        expect=canceled(files=["@ROOM@/child"]),
        only=SHELL,
    ),
]

NEVER_MIND = "WARNING: after_script failed, but job will continue unaffected: @EXIT@ 5\n"

AFTER_SCRIPT = [
    Row(id="3.3-after-script-success", job=job(after=AFTER), expect=Expect(has=["\nafter <success>\n"])),
    Row(
        id="3.3-after-script-failed",
        job=job("exit 2", after=AFTER),
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=2,
            has=["\nafter <failed>\n"],
            last="ERROR: Job failed: @EXIT@ 2",
        ),
    ),
    Row(
        id="3.3-after-script-empty-list",
        job=job(steps=[step("script", "true"), step("after_script")]),
        expect=Expect(lacks=["after_script", "after script"]),
    ),
    Row(
        id="3.3-after-script-failure-is-only-told",
        job=job(after=("exit 5",)),
        expect=Expect(has=[NEVER_MIND], raw=[b"\x1b[0;33mWARNING: after_script failed, but"]),
    ),
    Row(
        id="3.3-after-script-failure-counts-when-asked",
        job=job(after=("exit 5",), variables={"AFTER_SCRIPT_IGNORE_ERRORS": "false"}, cache=CACHE),
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=5,
            lacks=["unaffected"],
            has=["Saving cache for failed job"],
            last="ERROR: Job failed: @EXIT@ 5",
        ),
    ),
    Row(
        id="3.3-after-script-failure-does-not-hide-that-of-the-script",
        job=job("exit 4", after=("exit 5",), variables={"AFTER_SCRIPT_IGNORE_ERRORS": "false"}),
        expect=Expect(state="failed", reason="script_failure", exit_code=4, last="ERROR: Job failed: @EXIT@ 4"),
    ),
    Row(
        id="3.3-after-script-without-the-build-scripts",
        job=job(after=("echo after",)),
        runner={"pre_build_script": "echo pre-build", "post_build_script": "echo post-build"},
        expect=Expect(match=[r"(?s)post-build\n.*Running after script\.\.\.\n\$ echo after\nafter\n"]),
    ),
]


def exits(  # noqa: PLR0913 - a row's columns
    id: str,  # noqa: A002
    script: str,
    code: int,
    text: str = "",
    more: Sequence[str] = (),
    only: frozenset[str] = SHELL,
) -> Row:
    last = f"ERROR: Job failed: {text or f'@EXIT@ {code}'}"
    expect = Expect(state="failed", reason="script_failure", exit_code=code, last=last, lacks=more)
    return Row(id=f"3.4-{id}", job=job(script, "echo not reached"), expect=expect, only=only)


EXIT_CODES = [
    *(exits(f"exit-{code}", f"exit {code}", code) for code in (1, 2, 42, 127, 255)),
    *(exits(f"exit-{code}-of-a-container", f"exit {code}", code, only=DOCKER) for code in (1, 42, 127, 255)),
    exits("killed-in-a-container", "sh -c 'kill -9 $$'", 137, only=DOCKER),
    exits("pipe-in-a-container", "(exit 9) | cat", 9, only=DOCKER),
    exits("failing-command", "false", 1),
    exits("missing-command", "no-such-command-here", 127),
    exits("pipe", "(exit 9) | cat", 9),
    exits("killed", "kill -9 $BASHPID; true", -1, "signal: killed"),
    exits("syntax-error", "if then fi", 2, more=["not reached"]),
    dummy(
        "3.4-large-codes-are-signed",
        {"STEP_SCRIPT": "exit 4294967295"},
        Expect(state="failed", reason="script_failure", exit_code=-1),
    ),
    dummy(
        "3.4-windows-code",
        {"STEP_SCRIPT": "exit 3221225786"},
        Expect(state="failed", reason="script_failure", exit_code=-1073741510),
    ),
    Row(id="3.4-success", job=job(), expect=Expect(raw=[b"\x1b[32;1mJob succeeded\x1b[0;m\n"])),
    Row(
        id="3.4-classified",
        job=job("exit 3"),
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=3,
            raw=[b"\x1b[31;1mERROR: Job failed: @EXIT@ 3\x1b[0;m\n"],
        ),
    ),
    dummy(
        "3.4-system-failure",
        {"STEP_SCRIPT": "system no disk"},
        Expect(
            state="failed",
            reason="runner_system_failure",
            raw=[b"\x1b[31;1mERROR: Job failed (system failure): no disk\x1b[0;m\n"],
        ),
    ),
]

#: What is read from job and config before any executor hears of them.
_READ = ("3.2-default", "3.2-negative", "3.2-prepare_timeout", "3.2-get_sources_timeout", "3.2-script-timeout-in-hours")
TIMEOUTS = [replace(row, only=SHELL) if row.id.startswith(_READ) else row for row in TIMEOUTS]

ROWS = [*TIMEOUTS, *CANCEL, *AFTER_SCRIPT, *EXIT_CODES]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
