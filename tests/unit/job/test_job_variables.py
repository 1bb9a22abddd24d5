from __future__ import annotations

from dataclasses import replace

from pyrunner.api.wire import JobVariable
from pyrunner.job.variables import Paths, TlsFiles, VariableSources, job_variables, masked_values, with_status

SOURCES = VariableSources(
    flags={"FF_A": True, "FF_B": False},
    flag_names=frozenset(("FF_A", "FF_B")),
    job=[
        JobVariable(key="FF_A", value="false"),
        JobVariable(key="NAME", value="$OTHER/${CI_PROJECT_DIR}"),
        JobVariable(key="OTHER", value="x"),
        JobVariable(key="RAW", value="$OTHER", raw=True),
        JobVariable(key="SECRET", value=" s3cret ", masked=True),
        JobVariable(key="KEYFILE", value="content", file=True),
        JobVariable(key="REF", value="$KEYFILE"),
        JobVariable(key="CI_RUNNER_VERSION", value="mine"),
        JobVariable(key="CI_SERVER", value="no"),
    ],
    image="ruby:$OTHER",
    short_token="abc",
    environment=["FROM_CONFIG=1", "ignored", "OTHER=config", "=nameless"],
    concurrent_id=1,
    concurrent_project_id=2,
    job_timeout=3600.0,
    tls=TlsFiles(ca="PEM"),
    shared_environment=True,
    runner_version="19.4.0",
    runner_revision="r",
    executable_arch="linux/amd64",
)
PATHS = Paths(builds_dir="/b", project_dir="/b/$p", temp_dir="/b/$p.tmp")


def test_order_is_the_documented_one() -> None:
    keys = [item.key for item in job_variables(SOURCES, PATHS)]
    assert keys == [
        "FF_A",
        "FF_B",
        "CI_JOB_IMAGE",
        "CI_RUNNER_SHORT_TOKEN",
        "FROM_CONFIG",
        "OTHER",
        "CI_BUILDS_DIR",
        "CI_PROJECT_DIR",
        "CI_CONCURRENT_ID",
        "CI_CONCURRENT_PROJECT_ID",
        "CI_SERVER",
        "CI_JOB_STATUS",
        "CI_JOB_TIMEOUT",
        "CI_SERVER_TLS_CA_FILE",
        "NAME",
        "OTHER",
        "RAW",
        "SECRET",
        "KEYFILE",
        "REF",
        "CI_RUNNER_VERSION",
        "CI_SERVER",
        "CI_SHARED_ENVIRONMENT",
        "CI_RUNNER_VERSION",
        "CI_RUNNER_REVISION",
        "CI_RUNNER_EXECUTABLE_ARCH",
        "RUNNER_TEMP_PROJECT_DIR",
    ]


def test_job_overrides_the_runner_but_not_its_version_or_flags() -> None:
    variables = job_variables(SOURCES, PATHS)
    assert variables.get("CI_SERVER") == "no"
    assert variables.get("OTHER") == "x"
    assert variables.get("CI_RUNNER_VERSION") == "19.4.0"
    assert variables.get("FF_A") == "true"


def test_values_are_expanded_once_and_paths_never() -> None:
    variables = job_variables(SOURCES, PATHS)
    assert variables.get("NAME") == "x//b/$p"
    assert variables.get("RAW") == "$OTHER"
    assert variables.get("CI_JOB_IMAGE") == "ruby:x"
    assert variables.get("REF") == "/b/$p.tmp/KEYFILE"
    assert variables.get("CI_JOB_TIMEOUT") == "3600"


def test_without_paths_nothing_names_a_directory() -> None:
    variables = job_variables(SOURCES)
    assert variables.find("CI_PROJECT_DIR") is None
    assert variables.find("RUNNER_TEMP_PROJECT_DIR") is None


def test_disposable_environment() -> None:
    variables = job_variables(replace(SOURCES, shared_environment=False), PATHS)
    assert variables.get("CI_DISPOSABLE_ENVIRONMENT") == "true"
    assert variables.find("CI_SHARED_ENVIRONMENT") is None


def test_status_is_overwritten_even_when_the_job_sets_its_own() -> None:
    sources = replace(SOURCES, job=[JobVariable(key="CI_JOB_STATUS", value="fake")])
    assert with_status(job_variables(sources, PATHS), "failed").get("CI_JOB_STATUS") == "failed"


def test_masked_values_are_trimmed() -> None:
    assert masked_values(job_variables(SOURCES, PATHS)) == ["s3cret"]
