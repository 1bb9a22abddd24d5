"""facts/job-lifecycle.md section 3: stages, and 3.1: attempts."""

from __future__ import annotations

from typing import Any

from pyrunner.testing.faults import status
from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import SOURCES, Expect, Row, Strike, job, show, step

SHELL = frozenset(("shell",))
ON = ("shell", "docker")
CACHE = [{"key": "k", "paths": ["kept"], "policy": "pull-push", "when": "always"}]
ARTIFACTS = [{"paths": ["kept"], "when": "always", "artifact_type": "archive", "artifact_format": "zip"}]
ARTIFACT_DOWNLOAD = [{"id": 9, "token": "t", "name": "other", "artifacts_file": {"filename": "a.zip", "size": 5}}]
START = ("prepare_executor", "prepare_script", "get_sources")
END = "cleanup_file_variables"


def dummy(id: str, does: dict[str, str], expect: Expect, **fields: Any) -> Row:  # noqa: A002
    """A row whose stages do as told: ``GET_SOURCES="exit 1"`` (see `pyrunner.testing.dummy_executor`)."""
    runner = {"executor": "dummy", **fields.pop("runner", {})}
    variables = {f"DUMMY_{stage}": deed for stage, deed in does.items()} | fields.pop("variables", {})
    fields = {"cache": CACHE, "artifacts": ARTIFACTS, "dependencies": ARTIFACT_DOWNLOAD, **fields}
    return Row(id=id, job=job(variables=variables, **fields), runner=runner, expect=expect, only=SHELL)


def failed(error: str, code: int = 0, reason: str = "script_failure", **fields: Any) -> Expect:
    """The job fails with this line."""
    return Expect(state="failed", reason=reason, exit_code=code, last=f"ERROR: Job failed: {error}", **fields)


def downloads(deed: str) -> dict[str, str]:
    return {"DOWNLOAD_ARTIFACTS": deed}


STAGES = [
    Row(
        id="3-titles-and-order",
        job=job(
            "echo x > kept",
            after=("echo after",),
            git_info=SOURCES,
            cache=CACHE,
            artifacts=ARTIFACTS,
        ),
        expect=Expect(
            sections=[
                *START,
                "restore_cache",
                "step_script",
                "after_script",
                "archive_cache",
                "upload_artifacts_on_success",
                END,
            ],
            order=[
                "\nPreparing environment\n",
                "\nRunning on ",
                "\nGetting source from Git repository\n",
                "\nRestoring cache\n",
                '\nExecuting "step_script" stage of the job script\n',
                "\nRunning after_script\n",
                "\nRunning after script...\n",
                "\nSaving cache for successful job\n",
                "\nUploading artifacts for successful job\n",
                "\nCleaning up project directory and file based variables\n",
            ],
        ),
    ),
    Row(
        id="3-stages-with-nothing-to-do-leave-no-mark",
        job=job(
            "true",
            steps=[step("script", "true"), step("after_script")],
            cache=[{"key": "k", "paths": []}],
            artifacts=[{"paths": ["kept"], "when": "on_failure"}],
            dependencies=[{"id": 9, "token": "t", "name": "other", "artifacts_file": {"filename": ""}}],
        ),
        expect=Expect(sections=[*START, "step_script", END]),
    ),
    Row(
        id="3-failed-job-has-the-other-variants",
        job=job("echo x > kept; exit 3", after=("echo after",), cache=CACHE, artifacts=ARTIFACTS),
        expect=failed(
            "@EXIT@ 3",
            3,
            sections=[
                *START,
                "restore_cache",
                "step_script",
                "after_script",
                "archive_cache_on_failure",
                "upload_artifacts_on_failure",
                END,
            ],
            order=["\nSaving cache for failed job\n", "\nUploading artifacts for failed job\n"],
        ),
    ),
    Row(
        id="3-steps-in-order-with-names-in-lower-case",
        job=job(steps=[step("script", "echo 1"), step("Release", "echo 2"), step("After_Steps", "echo 3")]),
        expect=Expect(
            sections=[*START, "step_script", "step_release", "step_after_steps", END],
            order=['Executing "step_release" stage of the job script', "\n2\n", 'Executing "step_after_steps" stage'],
        ),
    ),
    Row(
        id="3-failing-step-stops-further-steps",
        job=job(steps=[step("script", "exit 1"), step("release", "echo 2"), step("after_script", "echo after")]),
        expect=failed("@EXIT@ 1", 1, sections=[*START, "step_script", "after_script", END], has=["\nafter\n"]),
    ),
    Row(
        id="3-step-timeout-when-and-allow-failure-mean-nothing-here",
        job=job(
            steps=[
                {**step("script", "exit 1"), "allow_failure": True},
                {**step("release", "echo 2"), "when": "always", "timeout": 1},
            ]
        ),
        expect=failed("@EXIT@ 1", 1, sections=[*START, "step_script", END]),
    ),
    Row(
        id="3-nothing-of-a-shell-survives-its-stage",
        job=job(
            steps=[
                step("script", "export OF_SHELL=1 OF_JOB=changed; cd /; set -x; f() { :; }; touch left"),
                step("more", show("OF_SHELL", "OF_JOB"), "pwd", "type f || true"),
            ],
            variables={"OF_JOB": "value"},
        ),
        expect=Expect(variables={"OF_SHELL": None, "OF_JOB": "value"}, has=["\n@PROJECT@\n"], match=["f: not found$"]),
    ),
    Row(
        id="3-build-scripts-of-the-config-run-in-every-step-in-its-shell",
        job=job(
            steps=[
                step("script", 'echo "script $OF_PRE"; B=1'),
                step("release", "B=2"),
                step("after_script", "echo after"),
            ]
        ),
        runner={"pre_build_script": "export OF_PRE=pre; echo before", "post_build_script": 'echo "post $OF_PRE $B"'},
        expect=Expect(
            order=["\nscript pre\n", "\npost pre 1\n", "\npost pre 2\n", "Running after script", "\nafter\n"],
            match=[r"(?s)\nbefore\n.*\nbefore\n(?!.*\nbefore\n)"],
        ),
    ),
    Row(
        id="3-failing-download-skips-the-steps-and-not-the-uploads",
        job=job(
            after=("echo after",),
            cache=CACHE,
            artifacts=ARTIFACTS,
            dependencies=ARTIFACT_DOWNLOAD,
        ),
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=1,
            sections=[
                *START,
                "restore_cache",
                "download_artifacts",
                "archive_cache_on_failure",
                "upload_artifacts_on_failure",
                END,
            ],
            last="ERROR: Job failed: @EXIT@ 1",
        ),
    ),
    Row(
        id="3-failing-upload-of-artifacts-fails-the-job",
        job=job("echo x > kept", artifacts=ARTIFACTS),
        server=[Strike(method="POST", path="/jobs/@ID@/artifacts", fault=status(403), times=None)],
        expect=failed("@EXIT@ 1", 1, has=["permission denied"]),
    ),
    Row(
        id="3-failing-cache-fails-nothing",
        job=job("echo x > kept", cache=CACHE),
        before={"@HOME@/cache/@SLUG@/k": "a file where the cache should be"},
        expect=Expect(order=["Failed to extract cache", "Failed to create cache"]),
        only=SHELL,
    ),
    dummy(
        "3-failing-sources-skip-the-steps-and-not-the-uploads",
        {"GET_SOURCES": "exit 2"},
        failed(
            "@EXIT@ 2",
            2,
            sections=[*START, "archive_cache_on_failure", "upload_artifacts_on_failure", END],
        ),
        after=("echo after",),
    ),
    dummy(
        "3-failing-restore-skips-the-steps-and-not-the-uploads",
        {"RESTORE_CACHE": "exit 2"},
        failed(
            "@EXIT@ 2",
            2,
            sections=[*START, "restore_cache", "archive_cache_on_failure", "upload_artifacts_on_failure", END],
        ),
    ),
    dummy(
        "3-failing-prepare-script-ends-the-job-at-once",
        {"PREPARE_SCRIPT": "exit 7"},
        failed(
            "prepare environment: @EXIT@ 7. Check https://docs.gitlab.com/runner/shells/#shell-profile-loading "
            "for more information",
            7,
            sections=["prepare_executor", "prepare_script"],
        ),
    ),
    dummy(
        "3-error-of-the-script-comes-before-that-of-the-cache",
        {"STEP_SCRIPT": "exit 3", "ARCHIVE_CACHE_ON_FAILURE": "exit 4", "UPLOAD_ARTIFACTS_ON_FAILURE": "exit 5"},
        failed("@EXIT@ 3", 3),
    ),
    dummy(
        "3-error-of-the-cache-comes-before-that-of-the-artifacts",
        {"ARCHIVE_CACHE": "exit 4", "UPLOAD_ARTIFACTS_ON_SUCCESS": "exit 5"},
        failed("@EXIT@ 4", 4),
    ),
    dummy("3-error-of-the-artifacts", {"UPLOAD_ARTIFACTS_ON_SUCCESS": "exit 5"}, failed("@EXIT@ 5", 5)),
    dummy(
        "3-error-of-the-clean-up-is-only-logged",
        {"CLEANUP_FILE_VARIABLES": "exit 6"},
        Expect(runner_log=["Cleaning up after the job failed"], lacks=["@EXIT@ 6"]),
    ),
]

FAST = {"FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY": "false"}


def attempts_warning(name: str, value: str, text: str) -> Row:
    """A number that is warned of before any executor hears of the job."""
    expect = Expect(has=[f"WARNING: {name}: {text}\n"])
    return Row(id=f"3.1-{name}-{value}", job=job(variables={name: value}), expect=expect, only=SHELL)


ATTEMPTS = [
    dummy(
        "3.1-sources-with-a-cleared-work-tree",
        {"GET_SOURCES": "exit 1"},
        failed(
            "@EXIT@ 1",
            1,
            sections=[*START, "clear_worktree", "get_sources", "get_sources", END],
            order=[
                "WARNING: Retrying...",
                "Deleting all tracked and untracked files due to source fetch failure",
                "WARNING: Retrying...",
            ],
        ),
        variables={"GET_SOURCES_ATTEMPTS": "3", **FAST},
        cache=[],
        artifacts=[],
        dependencies=[],
    ),
    dummy(
        "3.1-restore-cache",
        {"RESTORE_CACHE": "exit 1"},
        failed("@EXIT@ 1", 1, sections=[*START, "restore_cache", "restore_cache", "archive_cache_on_failure", END]),
        variables={"RESTORE_CACHE_ATTEMPTS": "2", **FAST},
        artifacts=[],
    ),
    dummy(
        "3.1-download-artifacts",
        downloads("exit 1"),
        failed("@EXIT@ 1", 1, sections=[*START, "download_artifacts", "download_artifacts", END], has=["Retrying..."]),
        variables={"ARTIFACT_DOWNLOAD_ATTEMPTS": "2", **FAST},
        cache=[],
        artifacts=[],
    ),
    dummy(
        "3.1-one-attempt-by-default",
        {"GET_SOURCES": "exit 1", "RESTORE_CACHE": "exit 1"},
        failed("@EXIT@ 1", 1, lacks=["Retrying..."]),
    ),
    Row(
        id="3.1-second-attempt-gets-the-sources",
        job=job("cat README.md", git_info=SOURCES, variables={"GET_SOURCES_ATTEMPTS": "2", **FAST}),
        server=[Strike(method="GET", path="@SLUG@.git/info/refs", fault=status(404))],
        expect=Expect(
            sections=[*START, "clear_worktree", "get_sources", "step_script", END],
            has=["WARNING: Retrying...", "\nhello\n"],
        ),
    ),
    *(
        attempts_warning(name, value, f"number of attempts out of the range [1, 10], clamping to: {clamped}")
        for name in (
            "GET_SOURCES_ATTEMPTS",
            "RESTORE_CACHE_ATTEMPTS",
            "ARTIFACT_DOWNLOAD_ATTEMPTS",
            "SECRETS_RETRIEVAL_ATTEMPTS",
            "EXECUTOR_JOB_SECTION_ATTEMPTS",
        )
        for value, clamped in (("0", 1), ("11", 10), ("-1", 1))
    ),
    *(
        attempts_warning("GET_SOURCES_ATTEMPTS", value, f'expected int got "{value}", using default value: 1')
        for value in ("many", "1.5", "2 ")
    ),
    Row(
        id="3.1-limits-are-in-range",
        job=job(variables={"GET_SOURCES_ATTEMPTS": "1", "RESTORE_CACHE_ATTEMPTS": "10"}),
        expect=Expect(lacks=["WARNING"]),
        only=SHELL,
    ),
    dummy(
        "3.1-preparation-is-tried-three-times",
        {"PREPARE": "system no room"},
        Expect(
            state="failed",
            reason="runner_system_failure",
            last="ERROR: Job failed (system failure): no room",
            order=["ERROR: Preparation failed: no room\n", "Will be retried in "] * 2
            + ["ERROR: Preparation failed: no room\n"],
            sections=["prepare_executor"],
        ),
    ),
    Row(
        id="3.1-classified-error-of-the-preparation-is-final",
        job=job(variables={"GIT_CLONE_PATH": "/tmp"}),
        expect=Expect(
            state="failed",
            reason="runner_configuration_error",
            lacks=["Preparation failed"],
            sections=["prepare_executor"],
        ),
    ),
]

ROWS = [*STAGES, *ATTEMPTS]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
