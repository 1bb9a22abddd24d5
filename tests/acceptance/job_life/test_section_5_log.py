"""facts/job-lifecycle.md section 5: what a job's log looks like, byte for byte where that matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import Expect, Row, job, step

SHELL = frozenset(("shell",))
ON = ("shell", "docker")
TIMELESS = {"FF_TIMESTAMPS": "false"}
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
CLEAR, RESET, GREEN = b"\x1b[0K", b"\x1b[0;m", b"\x1b[32;1m"
MULTI = "if true; then\n  echo inside\nfi"


def log(id: str, *script: str, expect: Expect, variables: dict[str, Any] | None = None, **fields: Any) -> Row:  # noqa: A002
    """A row whose log has no timestamps."""
    runner = fields.pop("runner", {})
    return Row(
        id=id, job=job(*script, variables={**TIMELESS, **(variables or {})}, **fields), runner=runner, expect=expect
    )


def masks(id: str, hidden: dict[str, str], *script: str, has: tuple[str, ...], lacks: tuple[str, ...] = ()) -> Row:  # noqa: A002
    """A row with masked variables; none of their values may be in the log."""
    variables = {key: {"value": value, "masked": True} for key, value in hidden.items()}
    secrets = [value.strip().encode() for value in hidden.values() if value.strip()]
    return Row(
        id=f"5.6-{id}",
        job=job(*script, variables=variables),
        expect=Expect(has=has, lacks=lacks, raw_lacks=secrets),
    )


HEADER = [
    log(
        "5.1-header",
        expect=Expect(
            raw=[
                CLEAR + b"Running with gitlab-runner 19.4.0 (pyrunner)" + RESET + b"\n" + CLEAR + b"  on runner-",
                b", system ID: s_0123456789ab" + RESET + b"\n",
                CLEAR + b"  feature flags: FF_TIMESTAMPS:false" + RESET + b"\n",
            ],
            match=[r"\ARunning with .*\n  on runner-\d+ @SHORT@, system ID: s_0123456789ab\n  feature flags: "],
        ),
    ),
    Row(id="5.1-no-flags-line-at-the-defaults", job=job(), expect=Expect(lacks=["feature flags:"])),
    log(
        "5.1-flags-that-differ-in-order",
        expect=Expect(has=["  feature flags: FF_NETWORK_PER_BUILD:true, FF_TEST_FEATURE:true, FF_TIMESTAMPS:false\n"]),
        variables={"FF_TEST_FEATURE": "true", "FF_NETWORK_PER_BUILD": "true", "FF_USE_FASTZIP": "true"},
    ),
]

LINES = [
    log("5.2-runner-plain", expect=Expect(raw=[CLEAR + b"Using Shell (bash) executor..." + RESET + b"\n"])),
    log("5.2-runner-info", expect=Expect(raw=[GREEN + b"Job succeeded" + RESET + b"\n"])),
    log(
        "5.2-runner-warning",
        expect=Expect(raw=[b'\x1b[0;33mWARNING: GIT_CHECKOUT: expected bool got "x"']),
        variables={"GIT_CHECKOUT": "x"},
    ),
    log(
        "5.2-runner-error",
        "exit 1",
        expect=Expect(
            state="failed",
            reason="script_failure",
            exit_code=1,
            raw=[b"\x1b[31;1mERROR: Job failed: @EXIT@ 1" + RESET + b"\n"],
        ),
    ),
    log("5.2-script-notice", expect=Expect(raw=[GREEN + b"Skipping Git repository setup" + RESET + b"\n"])),
    log("5.2-command-echo", "echo a b", expect=Expect(raw=[GREEN + b"$ echo a b" + RESET + b"\na b\n"])),
    log(
        "5.2-echo-is-not-expanded",
        "echo $HOME_OF '$X' \"\\$Y\" `echo z`",
        expect=Expect(has=["\n$ echo $HOME_OF '$X' \"\\$Y\" `echo z`\n"]),
        variables={"HOME_OF": "house"},
    ),
    log(
        "5.2-multi-line-command",
        MULTI,
        expect=Expect(
            raw=[GREEN + b"$ if true; then # collapsed multi-line command" + RESET + b"\ninside\n"],
            lacks=["section_script_step"],
        ),
    ),
    log(
        "5.2-stdout-and-stderr-in-order",
        "echo 1; echo 2 >&2; echo 3; echo 4 >&2",
        expect=Expect(has=["\n1\n2\n3\n4\n"]),
    ),
]

FEATURES = {"trace_sections": True, "failure_reasons": []}

SECTIONS = [
    log(
        "5.3-markers",
        expect=Expect(
            raw=[
                CLEAR + b'\x1b[36;1mPreparing the "@PLACE@" executor' + RESET + RESET + b"\n",
                CLEAR + b"\x1b[36;1mPreparing environment" + RESET + RESET + b"\n",
                b":prepare_executor\r" + CLEAR + CLEAR + b"\x1b[36;1mPreparing",
                b":prepare_executor\r" + CLEAR + b"section_start:",
            ],
            sections=["prepare_executor", "prepare_script", "get_sources", "step_script", "cleanup_file_variables"],
        ),
    ),
    log(
        "5.3-none-unless-the-server-knows-them",
        MULTI,
        features={"trace_sections": False, "failure_reasons": []},
        expect=Expect(raw_lacks=[b"section_start", b"section_end"], has=["Preparing environment"]),
        variables={"FF_SCRIPT_SECTIONS": "true"},
    ),
    log(
        "5.3-script-sections",
        "echo one",
        MULTI,
        steps=[step("script", "echo one", MULTI), step("after_script", MULTI)],
        variables={"FF_SCRIPT_SECTIONS": "true"},
        expect=Expect(
            sections=[
                "prepare_executor",
                "prepare_script",
                "get_sources",
                "step_script",
                "section_script_step_1",
                "after_script",
                "section_after_script_step_0",
                "cleanup_file_variables",
            ],
            raw=[
                b":section_script_step_1[hide_duration=true,collapsed=true]\r" + CLEAR + GREEN + b"$ if true; then\n",
                b"  echo inside\nfi" + RESET + b"\nsection_end:",
                b":section_script_step_1\r" + CLEAR + b"\ninside\n",
            ],
        ),
    ),
]

STAMPS = [
    Row(
        id="5.5-every-line-has-its-time",
        job=job("echo one; echo two >&2"),
        expect=Expect(stamped=True, raw=[b" 00O " + CLEAR + b"Running with", b"Z 01O one\n"]),
    ),
    Row(
        id="5.5-markers-are-entries-of-their-own",
        job=job(),
        expect=Expect(
            raw_match=[
                rf"{STAMP} 00O section_start:\d+:prepare_executor\r\x1b\[0K\n"
                rf"{STAMP} 00O\+\x1b\[0K\x1b\[36;1mPreparing the",
            ]
        ),
    ),
    Row(
        id="5.5-a-progress-bar-is-flushed",
        job=job("sleep 0.3; printf '10%%\\r'; sleep 0.3; printf '20%%\\r'; sleep 0.3; echo done"),
        expect=Expect(raw_match=[rf"{STAMP} 01O 10%\r\n{STAMP} 01O\+20%\r\n{STAMP} 01O\+done\n"]),
    ),
    Row(
        id="5.5-long-lines-are-continued",
        job=job("head -c 20000 /dev/zero | tr '\\0' x; sleep 0.3; echo; echo after"),
        expect=Expect(raw_match=[rf"{STAMP} 01O x+\n{STAMP} 01O\+", rf"{STAMP} 01O after\n"], has=["x" * 20000 + "\n"]),
    ),
    Row(
        id="5.5-unfinished-line-at-the-end",
        job=job("printf unfinished"),
        expect=Expect(raw_match=[rf"{STAMP} 01O unfinished\n{STAMP} 00O section_end"]),
    ),
    Row(
        id="5.5-off",
        job=job("echo one", variables=TIMELESS),
        expect=Expect(raw=[b"\none\n"], raw_lacks=[b" 01O ", b" 00O "]),
    ),
]

MASKS = [
    masks("phrase", {"A": "s3cr3t-value"}, 'echo "<$A>"', has=("<[MASKED]>",)),
    masks("white-space-around", {"A": "  padded-secret \n"}, 'echo "<$A>"', has=("<  [MASKED] \n>",)),
    masks("longest-first", {"A": "secret", "B": "secret-longer"}, 'echo "<$B> <$A>"', has=("<[MASKED]> <[MASKED]>",)),
    masks("no-minimum-length", {"A": "zq"}, "echo '<zq>'", has=("<[MASKED]>",)),
    masks("case-matters", {"A": "CaseMatters"}, "echo casematters", has=("\ncasematters\n",)),
    masks("split-over-writes", {"A": "split-secret"}, "printf split-; sleep 0.2; echo secret", has=("\n[MASKED]\n",)),
    masks("header", {"A": "s_0123456789ab"}, "true", has=("system ID: [MASKED]\n",)),
    masks("echo-of-the-command", {"A": "in-the-command"}, "echo in-the-command", has=("$ echo [MASKED]\n[MASKED]\n",)),
    masks("empty", {"A": "  "}, "echo 'a  b'", has=("\na  b\n",), lacks=("[MASKED]",)),
    Row(
        id="5.6-phrase-after-expansion",
        job=job("echo pre-$B-post", variables={"A": {"value": "pre-$B-post", "masked": True}, "B": "mid"}),
        expect=Expect(has=["\n[MASKED]\n"], raw_lacks=[b"pre-mid-post"]),
    ),
    Row(
        id="5.6-phrase-with-a-directory",
        job=job("pwd", variables={"A": {"value": "$CI_PROJECT_DIR", "masked": True}}),
        expect=Expect(has=["\n[MASKED]\n"]),
    ),
    *(
        Row(
            id=f"5.6-url-parameter-{name}",
            job=job(f"echo 'http://x/?a=1&{name}=value-of-it&b=2'", f"echo '/?{name.upper()}=value-of-it next'"),
            expect=Expect(
                has=[f"\nhttp://x/?a=1&{name}=[MASKED]&b=2\n", f"\n/?{name.upper()}=[MASKED] next\n"],
                raw_lacks=[b"value-of-it"],
            ),
        )
        for name in (
            "private_token",
            "authenticity_token",
            "rss_token",
            "x-amz-signature",
            "x-amz-credential",
            "x-amz-security-token",
        )
    ),
    Row(
        id="5.6-other-url-parameters-stay",
        job=job("echo 'http://x/?token=kept&private_tokens=kept'"),
        expect=Expect(has=["\nhttp://x/?token=kept&private_tokens=kept\n"]),
    ),
    *(
        Row(
            id=f"5.6-token-prefix-{prefix.strip('-_=')}",
            job=job(f"echo '<{prefix}aB3._=-x>'"),
            expect=Expect(has=[f"\n<{prefix}[MASKED]>\n"]),
        )
        for prefix in (
            "glpat-",
            "gloas-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glrtr-",
            "glptt-",
            "glft-",
            "glimt-",
            "glagent-",
            "glsoat-",
            "glffct-",
            "_gitlab_session=",
            "gltok-",
        )
    ),
    Row(
        id="5.6-only-glpat-without-the-flag",
        job=job("echo glpat-abc gldt-abc", variables={"FF_MASK_ALL_DEFAULT_TOKENS": "false"}),
        expect=Expect(has=["\nglpat-[MASKED] gldt-abc\n"]),
    ),
    Row(
        id="5.6-prefixes-of-the-server",
        job=job(
            "echo own-abc glpat-abc",
            features={"trace_sections": True, "failure_reasons": [], "token_mask_prefixes": ["own-"]},
        ),
        expect=Expect(has=["\nown-[MASKED] glpat-[MASKED]\n"]),
    ),
    Row(
        id="5.6-prefix-alone-stays",
        job=job("echo 'glpat- x'"),
        expect=Expect(has=["\nglpat- x\n"]),
    ),
]

COLLECTED = "Job execution will continue but no more output will be collected."
CUT = (
    b"\n\x1b[33;1mJob's log exceeded limit of 1024 bytes.\n"
    b"Job execution will continue but no more output will be collected.\x1b[0;m\n"
)

LIMIT = [
    log(
        "5.7-limit",
        "head -c 5000 /dev/zero | tr '\\0' x",
        "touch @ROOM@/ran",
        runner={"output_limit": 1},
        expect=Expect(ends=CUT, files=["@ROOM@/ran"], lacks=["Job succeeded"], last=COLLECTED),
    ),
    log(
        "5.7-default-is-4-MiB",
        "head -c 4194304 /dev/zero | tr '\\0' x",
        expect=Expect(ends=CUT.replace(b"1024", b"4194304"), lacks=["Job succeeded"], last=COLLECTED),
    ),
    log(
        "5.7-invalid-utf-8-is-replaced",
        "printf 'a\\377b\\303\\244c\\342\\202d\\n'",
        expect=Expect(raw=["\na\ufffdb\u00e4c\ufffdd\n".encode()]),
    ),
]


def policy(id: str, *lines: str, lacks: tuple[str, ...] = (), **options: Any) -> Row:  # noqa: A002
    return Row(
        id=f"5.8-{id}",
        job=job("echo script", policy_options={"policy_name": "scan all", **options}),
        expect=Expect(order=[*lines, 'Executing "step_script" stage'] if lines else (), lacks=lacks),
    )


NAMED = 'Job triggered by policy "scan all".\n'
POLICY = [
    policy("policy-job", NAMED, "precedence", execution_policy_job=True),
    policy(
        "override-allowed", NAMED, "may override", execution_policy_job=True, policy_variables_override_allowed=True
    ),
    policy(
        "override-refused-with-exceptions",
        NAMED,
        "do not override",
        "A, B",
        execution_policy_job=True,
        policy_variables_override_allowed=False,
        policy_variables_override_exceptions=["A", "B"],
    ),
    policy("other-job", lacks=("policy",), execution_policy_job=False),
]

#: What the runner writes and searches itself is the same whoever runs the job.
_OF_RUNNER = ("5.1-", "5.6-", "5.8-", "5.2-runner-plain")
ROWS = [*HEADER, *LINES, *SECTIONS, *STAMPS, *MASKS, *LIMIT, *POLICY]
ROWS = [replace(row, only=SHELL) if row.id.startswith(_OF_RUNNER) else row for row in ROWS]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
