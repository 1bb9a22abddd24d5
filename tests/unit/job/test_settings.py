from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.job.settings import Limits, Settings, read_settings


def read(limits: Limits | None = None, **variables: str) -> Settings:
    return read_settings(variables.get, limits or Limits(job_timeout=3600))


def test_defaults() -> None:
    settings = read(Limits())
    assert settings.timeouts.job == 7200
    assert settings.timeouts.after_script == 300
    assert settings.timeouts.script is None
    assert settings.git_strategy == "fetch"
    assert settings.warnings == settings.timeout_warnings == settings.log_warnings == ()


def test_clone_without_leave_to_fetch() -> None:
    assert read(Limits(allow_git_fetch=False)).git_strategy == "clone"


def test_bad_strategy_keeps_the_default() -> None:
    settings = read(GIT_STRATEGY="x")
    assert settings.git_strategy == "fetch"
    assert settings.warnings == (
        "GIT_STRATEGY: expected either 'clone', 'fetch', 'none' or 'empty' got \"x\", using default value 'fetch'",
    )


@pytest.mark.parametrize(
    ("text", "value", "warning"),
    [
        ("3", 3, ""),
        ("0", 1, "GET_SOURCES_ATTEMPTS: number of attempts out of the range [1, 10], clamping to: 1"),
        ("11", 10, "GET_SOURCES_ATTEMPTS: number of attempts out of the range [1, 10], clamping to: 10"),
        ("1_0", 1, 'GET_SOURCES_ATTEMPTS: expected int got "1_0", using default value: 1'),
        ("many", 1, 'GET_SOURCES_ATTEMPTS: expected int got "many", using default value: 1'),
        ("9" * 5000, 10, "GET_SOURCES_ATTEMPTS: number of attempts out of the range [1, 10], clamping to: 10"),
    ],
)
def test_attempts(text: str, value: int, warning: str) -> None:
    settings = read(GET_SOURCES_ATTEMPTS=text)
    assert settings.attempts.get_sources == value
    assert settings.warnings == ((warning,) if warning else ())


@pytest.mark.parametrize(
    ("text", "value", "warning"),
    [
        ("10m", 600, None),
        ("1h30m", None, "RUNNER_SCRIPT_TIMEOUT timeout: 1h30m is longer than job timeout. Setting to job timeout"),
        ("10", None, "Ignoring malformed RUNNER_SCRIPT_TIMEOUT timeout: 10"),
        ("-1s", None, "Ignoring relative RUNNER_SCRIPT_TIMEOUT timeout: -1s"),
    ],
)
def test_script_timeout(text: str, value: float | None, warning: str | None) -> None:
    settings = read(RUNNER_SCRIPT_TIMEOUT=text)
    assert settings.timeouts.script == value
    assert settings.timeout_warnings == ((warning,) if warning else ())


def test_too_long_after_script_timeout_keeps_its_default() -> None:
    assert read(RUNNER_AFTER_SCRIPT_TIMEOUT="5h").timeouts.after_script == 300


@pytest.mark.parametrize(("value", "used"), [(10.0, 10.0), (0.0, None), (-1.0, None), (7200.0, None), (None, None)])
def test_prepare_timeout_has_to_fit_the_job(value: float | None, used: float | None) -> None:
    settings = read(Limits(job_timeout=3600, prepare_timeout=value))
    assert settings.timeouts.prepare == used
    assert bool(settings.log_warnings) == (value is not None and used is None)


def test_debug_trace_can_be_forbidden() -> None:
    settings = read(Limits(debug_trace_disabled=True), CI_DEBUG_TRACE="true")
    assert not settings.debug_trace
    assert settings.warnings == ("CI_DEBUG_TRACE: usage is disabled on this Runner",)


def test_bad_booleans_are_told_and_keep_their_default() -> None:
    settings = read(GIT_CHECKOUT="x", AFTER_SCRIPT_IGNORE_ERRORS="maybe")
    assert settings.after_script_ignore_errors
    assert settings.warnings == (
        'GIT_CHECKOUT: expected bool got "x", using default value: true',
        'AFTER_SCRIPT_IGNORE_ERRORS: expected bool got "maybe", using default value: true',
    )


@given(
    st.dictionaries(
        st.sampled_from(["GIT_STRATEGY", "GET_SOURCES_ATTEMPTS", "RUNNER_SCRIPT_TIMEOUT", "GIT_CHECKOUT"]), st.text()
    )
)
def test_no_value_crashes(variables: dict[str, str]) -> None:
    settings = read(**variables)
    assert 1 <= settings.attempts.get_sources <= 10
    assert settings.git_strategy in ("fetch", "clone", "none", "empty")
