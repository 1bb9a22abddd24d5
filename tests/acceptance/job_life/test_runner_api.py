"""facts/runner-api.md as far as a job's life shows it: sections 5.2, 5.3, 5.6, 5.8, 6.6, 7 and 11."""

from __future__ import annotations

from typing import Any

from pyrunner.config.feature_flags import FEATURE_FLAGS
from pyrunner.testing.faults import drop, status
from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import FAILURE_REASONS, SOURCES, Expect, Row, Strike, job, show, step

SHELL = frozenset(("shell",))
START = ("prepare_executor", "prepare_script", "get_sources")


def refused(id: str, line: str, reason: str = "runner_system_failure", code: int = 3, **fields: Any) -> Row:  # noqa: A002
    """A payload that fails before anything of it runs."""
    mark = " (system failure)" if reason == "runner_system_failure" else ""
    expect = Expect(
        state="failed", reason=reason, exit_code=code, last=f"ERROR: Job failed{mark}: {line}", lacks=["Preparing"]
    )
    return Row(id=id, job=job(**fields), expect=expect)


def image(options: Any) -> dict[str, Any]:
    return {"image": {"name": "ruby", "executor_opts": options}}


OPTIONS = [
    refused(
        "5.3-unknown-option-of-an-executor",
        'Unsupported "image" options [x] for "docker executor"; supported options are [platform user]',
        **image({"docker": {"x": 1, "user": "me"}}),
    ),
    refused(
        "5.3-unknown-option-of-kubernetes",
        'Unsupported "image" options [a b] for "kubernetes executor"; supported options are [user]',
        **image({"kubernetes": {"b": 1, "a": 2}}),
    ),
    refused(
        "5.3-unknown-executor",
        'Unsupported "image" options [podman] for "executor_opts"; supported options are [docker kubernetes]',
        **image({"podman": {}}),
    ),
    refused(
        "5.3-option-of-a-service",
        'Unsupported "service" options [x] for "docker executor"; supported options are [platform user]',
        services=[{"name": "redis"}, {"name": "db", "executor_opts": {"docker": {"x": 1}}}],
    ),
    Row(
        id="5.3-known-options",
        job=job(**image({"docker": {"platform": "p", "user": 1}, "kubernetes": {"user": "1:2"}})),
    ),
]


def given(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"key": "x", "value": {"type": kind, "content": content, **fields}}


def inputs(
    id: str, wanted: str, *given_: dict[str, Any], script: str = "echo '<${{ job.inputs.x }}>'", **fields: Any
) -> Row:  # noqa: A002
    return Row(id=f"5.6-{id}", job=job(script, inputs=list(given_), **fields), expect=Expect(has=[f"\n{wanted}\n"]))


def wrong(id: str, line: str, *given_: dict[str, Any], script: str = "echo ${{ job.inputs.x }}") -> Row:  # noqa: A002
    expect = Expect(
        state="failed",
        reason="runner_configuration_error",
        last=f"ERROR: Job failed: {line}",
        has=["Running with gitlab-runner"],
        lacks=["Preparing"],
    )
    return Row(id=f"5.6-{id}", job=job(script, inputs=list(given_)), expect=expect)


KINDS = "expected one of: string, number, boolean, array, struct"

INPUTS = [
    inputs("string", "<a b>", given("string", "a b")),
    inputs("number", "<1.5>", given("number", 1.5)),
    inputs("whole-number", "<7>", given("number", 7)),
    inputs("boolean", "<true>", given("boolean", True)),
    inputs("array", '<["a",1]>', given("array", ["a", 1])),
    inputs("struct", '<{"a":[true]}>', given("struct", {"a": [True]})),
    inputs("no-spaces", "<v>", given("string", "v"), script="echo '<${{job.inputs.x}}>'"),
    inputs("several-in-a-line", "<v-v>", given("string", "v"), script="echo '<${{ job.inputs.x }}-${{job.inputs.x}}>'"),
    inputs("sensitive-is-no-error-unless-used", "plain", given("string", "v", sensitive=True), script="echo plain"),
    inputs("none-given-leaves-the-text-alone", "<${{ job.inputs.x }}>", script="echo '<${{ job.inputs.x }}>'"),
    inputs(
        "flag-off-leaves-the-text-alone",
        "<${{ job.inputs.x }}>",
        given("string", "v"),
        variables={"FF_ENABLE_JOB_INPUTS_INTERPOLATION": "false"},
    ),
    inputs(
        "other-templates-stay",
        "<${{ other.x }} v>",
        given("string", "v"),
        script="echo '<${{ other.x }} ${{ job.inputs.x }}>'",
    ),
    Row(
        id="5.6-after-script-and-other-steps",
        job=job(
            steps=[
                step("script", "true"),
                step("release", "echo 'release <${{ job.inputs.x }}>'"),
                step("after_script", "echo 'after <${{ job.inputs.x }}>'"),
            ],
            inputs=[given("string", "v")],
        ),
        expect=Expect(has=["\nafter <v>\n"], lacks=["release <v>"]),
    ),
    Row(
        id="5.6-image-and-cache",
        job=job(
            show("CI_JOB_IMAGE"),
            image={"name": "ruby:${{ job.inputs.x }}"},
            cache=[{"key": "key-${{ job.inputs.x }}", "paths": ["p-${{ job.inputs.x }}"], "policy": "pull"}],
            inputs=[given("string", "v")],
        ),
        expect=Expect(variables={"CI_JOB_IMAGE": "ruby:v"}, has=["Checking cache for key-v..."]),
    ),
    wrong("number-for-a-string", 'job input "x": its value is not of type string', given("string", 1)),
    wrong("boolean-for-a-number", 'job input "x": its value is not of type number', given("number", True)),
    wrong("text-for-a-boolean", 'job input "x": its value is not of type boolean', given("boolean", "true")),
    wrong("struct-for-an-array", 'job input "x": its value is not of type array', given("array", {})),
    wrong("array-for-a-struct", 'job input "x": its value is not of type struct', given("struct", [])),
    wrong("null", 'job input "x": its value is not of type string', given("string", None)),
    wrong("unknown-type", f'job input "x": unknown type "date", {KINDS}', given("date", "v")),
    wrong(
        "unknown-input",
        'there is no job input "y", known are: x',
        given("string", "v"),
        script="echo ${{ job.inputs.y }}",
    ),
    wrong(
        "sensitive-in-a-script",
        'job input "x" is sensitive and cannot be used in ${{ job.inputs.x }}',
        given("string", "v", sensitive=True),
    ),
]

RUN = [
    refused("5.8-run-and-script", "the job has both `run` and scripts: only one of them can be executed", run="[]"),
    refused(
        "5.8-run-and-variable-STEPS",
        "the job has `run` and a variable STEPS: only one of them can be used",
        run="[]",
        steps=[],
        variables={"STEPS": "x"},
    ),
    *(
        Row(
            id=f"5.8-run-cannot-be-run-{flag}",
            job=job(run='[{"name":"a","script":"echo hi"}]', steps=[], variables={"FF_CONCRETE": flag}),
            expect=Expect(
                state="failed",
                reason="runner_configuration_error",
                last='ERROR: Job failed: the "shell" executor cannot run CI steps (`run`) in this version',
                lacks=["Preparing"],
            ),
            only=SHELL,
        )
        for flag in ("true", "false")
    ),
]


def accepted(id: str, fault: Any, times: int = 1, **expect: Any) -> Row:  # noqa: A002
    strike = Strike(method="PUT", path="/jobs/@ID@$", fault=fault, times=times)
    return Row(
        id=f"6.6-{id}",
        job=job("touch @ROOM@/ran"),
        server=[strike],
        expect=Expect(delivered=False, **expect),
        only=SHELL,
    )


ACCEPTANCE = [
    Row(id="6.6-commit-comes-before-any-work", job=job(), expect=Expect(updates=("running", "success"))),
    accepted("409-runs-the-job", status(409), files=["@ROOM@/ran"], state="success"),
    accepted("500-runs-the-job", status(500), times=5, files=["@ROOM@/ran"], state="success"),
    accepted("no-answer-runs-the-job", drop(), files=["@ROOM@/ran"], state="success"),
    accepted("403-drops-the-job", status(403), files=["!@ROOM@/ran"], state="", updates=("running",)),
    accepted("404-drops-the-job", status(404), files=["!@ROOM@/ran"], state="", updates=("running",)),
    accepted(
        "canceled-drops-the-job",
        status(200, {"Job-Status": "canceled"}),
        files=["!@ROOM@/ran"],
        state="",
        updates=("running",),
    ),
    accepted(
        "canceling-ends-it-unmapped",
        status(200, {"Job-Status": "canceling"}),
        files=["!@ROOM@/ran"],
        state="failed",
        reason="job_canceled",
    ),
]


def reason(id: str, known: tuple[str, ...], wanted: str, code: int = 0, **fields: Any) -> Row:  # noqa: A002
    """What a server is told that knows only `known` reasons."""
    server = fields.pop("server", ())
    runner = fields.pop("runner", {})
    script = fields.pop("script", "true")
    payload = job(script, reasons=known, **fields)
    expect = Expect(state="failed", reason=wanted, exit_code=code)
    return Row(id=f"7-{id}", job=payload, server=server, runner=runner, expect=expect, only=SHELL)


CLONE_PATH = {"GIT_CLONE_PATH": "/tmp"}
CANCELING = (
    Strike(method="PATCH", path="/jobs/@ID@/trace", fault=status(202, {"Job-Status": "canceling"}, handled=True)),
)
NOBODY = {
    "server": {"url": "http://127.0.0.1:1", "auth": {"name": "jwt", "path": "jwt", "data": {"jwt": "x"}}},
    "engine": {"name": "kv-v2", "path": "kv"},
    "path": "p",
    "field": "f",
}
REASONS = [
    reason("script-failure", (), "script_failure", 1, script="false"),
    reason("job-timeout", (), "job_execution_timeout", script="sleep 60", runner_info={"timeout": 1}),
    reason("configuration-known", ("runner_configuration_error",), "runner_configuration_error", variables=CLONE_PATH),
    reason("configuration-unknown", ("unknown_failure",), "script_failure", variables=CLONE_PATH),
    reason("cancel-known", FAILURE_REASONS, "job_canceled", script="sleep 60", server=CANCELING),
    reason("cancel-unknown", ("script_failure",), "unknown_failure", script="sleep 60", server=CANCELING),
    reason("system-failure", (), "runner_system_failure", runner={"builds_dir": "/dev/null/builds"}),
    reason(
        "outage-unknown",
        (),
        "runner_system_failure",
        secrets={"S": {"vault": NOBODY}},
    ),
]


FLAGS = [
    Row(
        id="11-images-in-the-log-of-the-runner",
        job=job(
            image={"name": "ruby:$TAG"},
            services=[{"name": "redis"}],
            variables={"FF_LOG_IMAGES_CONFIGURED_FOR_JOB": "true", "TAG": "3"},
        ),
        expect=Expect(runner_log=["Image configured for job", "Service image configured for job"]),
    ),
    Row(
        id="11-exit-code-check",
        job=job("set +e", "false", "echo not reached", variables={"FF_ENABLE_BASH_EXIT_CODE_CHECK": "true"}),
        expect=Expect(state="failed", reason="script_failure", exit_code=1, lacks=["\nnot reached\n"]),
    ),
    Row(
        id="11-no-exit-code-check",
        job=job("set +e", "false", "echo reached"),
        expect=Expect(has=["\nreached\n"]),
    ),
    *(
        Row(
            id=f"11-script-is-the-same-with-{name}",
            job=job("cat", "printf '%s\\n' \"quoted 'text' $A\" ä", variables={"A": "v\n'w\"\\x", name: "true"}),
            expect=Expect(has=["\nquoted 'text' v\n'w\"\\x\nä\n"]),
        )
        for name in ("FF_USE_LEGACY_BASH_EVAL", "FF_POSIXLY_CORRECT_ESCAPES", "FF_TEST_FEATURE")
    ),
    Row(
        id="11-job-cleanup-of-a-clone",
        job=job(git_info=SOURCES, variables={"FF_ENABLE_JOB_CLEANUP": "true", "GIT_STRATEGY": "clone"}),
        expect=Expect(files=["!@PROJECT@"]),
        only=SHELL,
    ),
    Row(
        id="11-job-cleanup-of-a-fetch",
        job=job("echo x > left; echo y > README.md", git_info=SOURCES, variables={"FF_ENABLE_JOB_CLEANUP": "true"}),
        expect=Expect(files=["!@PROJECT@/left", "@PROJECT@/README.md"]),
        only=SHELL,
    ),
    Row(
        id="11-gone-flags-mean-nothing",
        job=job(show("FF_SKIP_NOOP_BUILD_STAGES"), variables={"FF_SKIP_NOOP_BUILD_STAGES": "nonsense"}),
        expect=Expect(lacks=["WARNING"], variables={"FF_SKIP_NOOP_BUILD_STAGES": "nonsense"}),
    ),
    *(
        Row(
            id=f"11-default-of-{name}",
            job=job(show(name)),
            expect=Expect(variables={name: "true" if flag.default else "false"}),
        )
        for name, flag in FEATURE_FLAGS.items()
        if name in ("FF_TIMESTAMPS", "FF_USE_DIRECT_DOWNLOAD", "FF_HASH_CACHE_KEYS", "FF_MASK_ALL_DEFAULT_TOKENS")
    ),
]

ROWS = [*FLAGS, *OPTIONS, *INPUTS, *RUN, *ACCEPTANCE, *REASONS]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
