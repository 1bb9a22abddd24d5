"""facts/job-lifecycle.md section 12: settings that are wrong."""

from __future__ import annotations

from typing import Any

from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import SOURCES, Expect, Row, job

STRATEGY = "GIT_STRATEGY: expected either 'clone', 'fetch', 'none' or 'empty' got \"x\", using default value '{}'\n"


def warned(id: str, variables: dict[str, str], *texts: str, **fields: Any) -> Row:  # noqa: A002
    """A row whose settings are warned of before the executor is prepared."""
    runner = fields.pop("runner", {})
    expect = Expect(order=[f"WARNING: {texts[0]}", *texts[1:], 'Preparing the "'])
    return Row(id=f"12-{id}", job=job(variables=variables, **fields), runner=runner, expect=expect)


ROWS = [
    Row(id="12-nothing-to-warn-of", job=job(git_info=SOURCES), expect=Expect(lacks=["WARNING"])),
    warned("strategy-fetch", {"GIT_STRATEGY": "x"}, STRATEGY.format("fetch"), git_info=SOURCES),
    warned("strategy-clone", {"GIT_STRATEGY": "x"}, STRATEGY.format("clone"), git_info=SOURCES, allow_git_fetch=False),
    warned("checkout", {"GIT_CHECKOUT": "x"}, 'GIT_CHECKOUT: expected bool got "x", using default value: true\n'),
    warned(
        "force-https",
        {"GIT_SUBMODULE_FORCE_HTTPS": "x"},
        'GIT_SUBMODULE_FORCE_HTTPS: expected bool got "x", using default value: false\n',
    ),
    warned(
        "skip-smudge",
        {"GIT_LFS_SKIP_SMUDGE": "x"},
        'GIT_LFS_SKIP_SMUDGE: expected bool got "x", using default value: false\n',
    ),
    warned(
        "after-script",
        {"AFTER_SCRIPT_IGNORE_ERRORS": "x"},
        'AFTER_SCRIPT_IGNORE_ERRORS: expected bool got "x", using default value: true\n',
    ),
    warned(
        "debug-services",
        {"CI_DEBUG_SERVICES": "x"},
        'CI_DEBUG_SERVICES: expected bool got "x", using default value: false\n',
    ),
    warned(
        "debug-trace", {"CI_DEBUG_TRACE": "x"}, 'CI_DEBUG_TRACE: expected bool got "x", using default value: false\n'
    ),
    warned("flag", {"FF_TEST_FEATURE": "x"}, "FF_TEST_FEATURE: could not parse feature flag, expected bool, got x\n"),
    warned(
        "debug-trace-disabled",
        {"CI_DEBUG_TRACE": "true"},
        "CI_DEBUG_TRACE: usage is disabled on this Runner\n",
        runner={"debug_trace_disabled": True},
    ),
    Row(
        id="12-disabled-debug-trace-shows-nothing",
        job=job("echo one", variables={"CI_DEBUG_TRACE": "1"}),
        runner={"debug_trace_disabled": True},
        expect=Expect(lacks=["+ echo one", "++ "]),
    ),
    Row(
        id="12-debug-trace-shows-what-runs",
        job=job("echo one", variables={"CI_DEBUG_TRACE": "1"}),
        expect=Expect(match=[r"^\++ echo one$"], lacks=["WARNING"]),
    ),
    Row(
        id="12-all-in-one-warning",
        job=job(
            variables={"GIT_CHECKOUT": "x", "FF_TEST_FEATURE": "y", "GET_SOURCES_ATTEMPTS": "99", "CI_DEBUG_TRACE": "z"}
        ),
        expect=Expect(
            raw_match=[r"(?s)\A(?!.*WARNING.*WARNING).*WARNING: "],
            has=[
                "GIT_CHECKOUT: expected",
                "FF_TEST_FEATURE: could not",
                "GET_SOURCES_ATTEMPTS: number",
                "CI_DEBUG_TRACE: ",
            ],
        ),
    ),
    Row(
        id="12-flag-that-the-config-sets-is-not-read",
        job=job(variables={"FF_TEST_FEATURE": "x"}),
        runner={"feature_flags": {"FF_TEST_FEATURE": True}},
        expect=Expect(lacks=["WARNING"]),
    ),
]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
