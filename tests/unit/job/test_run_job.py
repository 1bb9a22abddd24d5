"""`run_job` with an executor that does what variables say, and a trace that nobody takes away."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.api.wire import JobResponse, decode_job
from pyrunner.base.errors import JobError, SystemFailure
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import Environment, ExecutorCommand, PrepareOptions
from pyrunner.executors.provider import DefaultExecutorProvider
from pyrunner.job.cancel import JobCancel
from pyrunner.job.context import JobSetting, job_context
from pyrunner.job.opening import open_trace
from pyrunner.job.outcome import Outcome
from pyrunner.job.run import run_job
from pyrunner.job.trace import JobTrace
from pyrunner.job.validate import check_payload
from pyrunner.testing.dummy_executor import DummyExecutor

REASONS = ["script_failure", "job_canceled", "runner_interrupted"]


def payload(**fields: Any) -> JobResponse:
    """A job with a script and an after_script; `variables` is a dict."""
    variables = {"GIT_STRATEGY": "none", "FF_TIMESTAMPS": "false", **fields.pop("variables", {})}
    raw = {
        "id": 1,
        "token": "t",
        "job_info": {"project_id": 7},
        "git_info": {"repo_url": "http://host/group/project.git"},
        "variables": [{"key": key, "value": value} for key, value in variables.items()],
        "steps": [{"name": "script", "script": ["true"]}, {"name": "after_script", "script": ["true"]}],
        "features": {"trace_sections": True, "failure_reasons": REASONS},
        **fields,
    }
    return decode_job(msgspec.json.encode(raw))


class Job:
    """Runs one job and keeps what came of it."""

    def __init__(self, job: JobResponse, create: Callable[[], DummyExecutor] = DummyExecutor, **config: Any) -> None:
        self.executors: list[DummyExecutor] = []

        def make() -> DummyExecutor:
            self.executors.append(create())
            return self.executors[-1]

        provider = DefaultExecutorProvider(creator=make, default_shell_name="bash")
        entry = RunnerConfig(name="r", token="glrt-abcdefghijkl", executor="dummy", **config)
        self.setting = JobSetting(config=entry, provider=provider, system_id="s_1", prepare_pause=0.001)
        self.job = job
        self.cancel = JobCancel()
        self.trace: JobTrace = open_trace(job_context(job, self.setting), None, None)

    def run(self) -> Outcome:
        try:
            return run_job(self.job, self.setting, self.trace, self.cancel)
        finally:
            self.trace.finish("")
            self.text = re.sub(r"\x1b\[[0-9;]*[mK]|section_\w+:\d+:\w+\r", "", self.trace.read(0, 1 << 20).decode())
            self.trace.close()
            self.cancel.close()

    def stages(self) -> list[str]:
        return self.executors[-1].stages


def test_stages_of_a_success() -> None:
    job = Job(payload())
    assert job.run().succeeded
    assert job.stages() == ["prepare_script", "get_sources", "step_script", "after_script", "cleanup_file_variables"]
    assert job.text.startswith("Running with gitlab-runner 19.4.0 (pyrunner)\n  on r abcdefghi, system ID: s_1\n")
    assert "  feature flags: FF_TIMESTAMPS:false\n" in job.text
    assert 'Preparing the "dummy" executor\nUsing Dummy (bash) executor...\n' in job.text
    assert job.text.endswith("Job succeeded\n")
    assert job.executors[-1].cleanups == 1


def test_preparation_is_tried_three_times_with_a_new_executor() -> None:
    job = Job(payload(variables={"DUMMY_PREPARE": "system no room"}))
    outcome = job.run()
    assert outcome.reason == "runner_system_failure"
    assert len(job.executors) == 3
    assert [executor.cleanups for executor in job.executors] == [1, 1, 1]
    assert job.text.count("ERROR: Preparation failed: no room\n") == 3
    assert job.text.count("Will be retried in 0.001s ...\n") == 2
    assert job.text.endswith("ERROR: Job failed (system failure): no room\n")


def test_preparation_that_recovers() -> None:
    tries = iter([OSError("disk"), SystemFailure("network"), None])

    class Flaky(DummyExecutor):
        def prepare(self, options: PrepareOptions) -> Environment:
            if (error := next(tries)) is not None:
                raise error
            return super().prepare(options)

    job = Job(payload(), Flaky)
    assert job.run().succeeded
    assert len(job.executors) == 3


def test_classified_error_is_not_tried_again() -> None:
    class Misconfigured(DummyExecutor):
        def prepare(self, options: PrepareOptions) -> Environment:
            raise SystemFailure("bad image", reason="runner_configuration_error")

    job = Job(payload(), Misconfigured)
    assert job.run().reason == "runner_configuration_error"
    assert len(job.executors) == 1
    assert "Will be retried" not in job.text
    assert job.text.endswith("ERROR: Job failed: bad image\n")


def test_cancel_during_preparation_ends_the_job() -> None:
    job = Job(payload(variables={"DUMMY_PREPARE": "hang"}))
    threading.Timer(0.05, job.cancel.cancel).start()
    assert job.run().reason == "job_canceled"
    assert len(job.executors) == 1
    assert job.executors[0].cleanups == 1


def test_prepare_timeout() -> None:
    job = Job(payload(variables={"DUMMY_PREPARE": "hang"}), prepare_timeout=0.05)
    outcome = job.run()
    assert outcome.reason == "job_execution_timeout"
    assert outcome.line == "Job failed: prepare timeout: exceeded timeout of 50ms"


def test_prepare_timeout_covers_prepare_script_too() -> None:
    job = Job(payload(variables={"DUMMY_PREPARE_SCRIPT": "hang"}), prepare_timeout=0.05)
    assert job.run().line == "Job failed: prepare timeout: exceeded timeout of 50ms"
    assert job.stages() == ["prepare_script"]


def test_get_sources_timeout_ends_the_job_without_uploads() -> None:
    job = Job(payload(variables={"DUMMY_GET_SOURCES": "hang"}), get_sources_timeout=0.05)
    assert job.run().line == "Job failed: get sources timeout: exceeded timeout of 50ms"
    assert job.stages() == ["prepare_script", "get_sources"]


def test_interrupt_ends_everything() -> None:
    job = Job(payload(variables={"DUMMY_STEP_SCRIPT": "hang"}))
    threading.Timer(0.05, lambda: job.cancel.interrupt("terminated")).start()
    outcome = job.run()
    assert (outcome.reason, outcome.line) == ("runner_interrupted", "Job failed: aborted: terminated")
    assert job.stages()[-1] == "step_script"


def test_cancel_after_the_steps_has_no_effect() -> None:
    job = Job(payload(variables={"DUMMY_AFTER_SCRIPT": "sleep 0.2"}))
    threading.Timer(0.1, job.cancel.cancel).start()
    assert job.run().succeeded


def test_interrupt_does_not_wait_for_the_pause_of_a_retry() -> None:
    job = Job(payload(variables={"DUMMY_GET_SOURCES": "exit 1", "GET_SOURCES_ATTEMPTS": "3"}))
    threading.Timer(0.05, lambda: job.cancel.interrupt("interrupt")).start()
    begin = time.monotonic()
    assert job.run().reason == "runner_interrupted"
    assert time.monotonic() - begin < 4


def test_bug_in_an_executor_ends_one_job_with_one_line() -> None:
    class Broken(DummyExecutor):
        def run(self, command: ExecutorCommand) -> None:
            raise ZeroDivisionError("division by zero")

    job = Job(payload(), Broken)
    outcome = job.run()
    assert outcome.sent_reason == "runner_system_failure"
    assert "Traceback" not in job.text
    assert job.executors[-1].cleanups == 1


def test_policy_jobs_say_so_before_the_first_step() -> None:
    options = {"execution_policy_job": True, "policy_name": "p", "policy_variables_override_allowed": False}
    job = Job(payload(policy_options={**options, "policy_variables_override_exceptions": ["A", "B"]}))
    job.run()
    said = 'Job triggered by policy "p".\nVariables set elsewhere do not override those of the policy (except A, B).\n'
    assert said in job.text
    assert job.text.index(said) < job.text.index('Executing "step_script" stage')


def test_unknown_shell_is_a_configuration_error() -> None:
    job = Job(payload(), shell="fish")  # noqa: S604 - a key of the config
    assert job.run().reason == "runner_configuration_error"
    assert job.executors[-1].cleanups == 1


def test_masked_values_never_reach_the_trace_not_even_in_the_header() -> None:
    raw = payload()
    raw.variables.append(msgspec.structs.replace(raw.variables[0], key="SECRET", value="abcdefghi", masked=True))
    job = Job(raw)
    job.run()
    assert "abcdefghi" not in job.text
    assert "  on r [MASKED], system ID" in job.text


def test_git_clone_path_needs_leave() -> None:
    job = Job(payload(variables={"GIT_CLONE_PATH": "$CI_BUILDS_DIR/x"}))
    outcome = job.run()
    assert outcome.reason == "runner_configuration_error"
    assert outcome.line.endswith("setting GIT_CLONE_PATH is not allowed, enable `custom_build_dir` feature")


# every payload that decodes either runs or is refused with one line

_TEXT = st.text(max_size=20) | st.sampled_from(["$A", "${A}", "../..", "\x00", "'", "none", "fetch", "9" * 40])
_SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | _TEXT
_JUNK = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3))
_VARIABLE = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["GIT_STRATEGY", "GIT_DEPTH", "GET_SOURCES_ATTEMPTS", "A", "CI_PROJECT_DIR", "TMP"])
        | _TEXT,
        "value": _TEXT,
    },
    optional={"masked": st.booleans(), "file": st.booleans(), "raw": st.booleans()},
)
_STEP = st.fixed_dictionaries(
    {"name": st.sampled_from(["script", "after_script", "release"]) | _TEXT, "script": st.lists(_TEXT, max_size=3)}
)
_CACHE = st.fixed_dictionaries({"key": _TEXT, "paths": st.lists(_TEXT, max_size=2), "policy": _TEXT, "when": _TEXT})
_ARTIFACT = st.fixed_dictionaries({"paths": st.lists(_TEXT, max_size=2), "name": _TEXT, "when": _TEXT})
_JOB = st.fixed_dictionaries(
    {"id": st.just(1), "token": st.just("t")},
    optional={
        "variables": st.lists(_VARIABLE, max_size=6),
        "steps": st.lists(_STEP, max_size=3),
        "cache": st.lists(_CACHE, max_size=2),
        "artifacts": st.lists(_ARTIFACT, max_size=2),
        "git_info": st.fixed_dictionaries({"repo_url": _TEXT | st.just("http://h/a.git"), "depth": st.integers(-2, 9)}),
        "runner_info": st.fixed_dictionaries({"timeout": st.integers(-1, 3600)}),
        "image": st.none() | st.fixed_dictionaries({"name": _TEXT, "executor_opts": st.dictionaries(_TEXT, _JUNK)}),
        "dependencies": st.lists(st.fixed_dictionaries({"id": st.integers(0, 9), "token": _TEXT, "name": _TEXT})),
        "inputs": st.lists(st.fixed_dictionaries({"key": _TEXT}), max_size=2),
        "secrets": st.dictionaries(_TEXT, _JUNK, max_size=2),
        "run": st.just("") | _TEXT,
        "hooks": st.lists(_STEP, max_size=2),
        "features": st.fixed_dictionaries({"token_mask_prefixes": st.lists(_TEXT, max_size=2)}),
    },
)


@settings(max_examples=150, deadline=None)
@given(_JOB)
def test_any_payload_ends_with_an_outcome_and_no_internal_error(raw: dict[str, Any]) -> None:
    job = decode_job(msgspec.json.encode(raw))
    try:
        check_payload(job)
    except JobError as error:
        assert str(error)
    run = Job(job)
    outcome = run.run()
    assert outcome.line
    assert "internal error" not in outcome.line
    assert not isinstance(outcome.error, (TypeError, ValueError, KeyError, AttributeError, IndexError))
