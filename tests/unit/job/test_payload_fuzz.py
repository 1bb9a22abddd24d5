"""Job payloads with anything anywhere: one clear error or a job with scripts, never a traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrunner.api.wire import JobResponse, decode_job
from pyrunner.base.errors import JobError
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.loader import executor_provider
from pyrunner.executors.protocol import Environment, ShellScriptInfo
from pyrunner.job.context import JobSetting, job_context, prepared_job
from pyrunner.job.stages import TITLES
from pyrunner.job.validate import check_payload, check_support
from pyrunner.shells.loader import shell
from pyrunner.shells.protocol import ShellType

PAYLOAD: dict[str, Any] = {
    "id": 7,
    "token": "glcbt-64_abc",
    "allow_git_fetch": True,
    "job_info": {"id": 7, "name": "unit", "stage": "test", "project_id": 3, "project_name": "p"},
    "git_info": {
        "repo_url": "http://gitlab-ci-token:x@127.0.0.1/group/p.git",
        "ref": "main",
        "sha": "0" * 40,
        "refspecs": ["+refs/heads/main:refs/remotes/origin/main"],
        "depth": 20,
    },
    "runner_info": {"timeout": 3600},
    "inputs": [{"key": "level", "value": {"type": "string", "content": "x", "sensitive": False}}],
    "variables": [{"key": "A", "value": "$B", "public": True}, {"key": "GIT_DEPTH", "value": "3", "file": False}],
    "steps": [{"name": "script", "script": ["echo ${{ job.inputs.level }}"], "timeout": 60, "when": "always"}],
    "image": {"name": "alpine", "entrypoint": ["sh"], "executor_opts": {"docker": {"user": "1"}}},
    "services": [{"name": "redis", "alias": "r", "variables": [{"key": "X", "value": "y"}]}],
    "artifacts": [{"name": "out", "paths": ["out/"], "when": "always", "artifact_format": "zip"}],
    "cache": [{"key": "k-$A", "paths": ["c/"], "policy": "pull-push", "fallback_keys": ["f"]}],
    "dependencies": [{"id": 5, "token": "t", "name": "build", "artifacts_file": {"filename": "a.zip", "size": 3}}],
    "features": {"trace_sections": True, "failure_reasons": ["script_failure"]},
    "hooks": [{"name": "pre_get_sources_script", "script": ["echo"]}],
    "policy_options": {"execution_policy_job": True, "policy_name": "p"},
}

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["", "../..", "$", "${", "$(id)", "%2e%2e", "a\nb", "always", "none", "1h", "\x00", "'\"`\\"]),
    st.lists(st.text(max_size=4), max_size=3),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a payload."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in places(child, (*path, key)))]


PLACES = [path for path in places(PAYLOAD) if path]


def mutated(changes: list[tuple[tuple[Any, ...], Any]]) -> bytes:
    """The payload with other values at some places."""
    payload = copy.deepcopy(PAYLOAD)
    for path, value in changes:
        parent: Any = payload
        try:
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(payload).encode()


def scripts_of(job: JobResponse) -> None:
    """Everything that is made of a payload before something runs."""
    check_payload(job)
    check_support(job, "shell")
    context = job_context(job, JobSetting(config=RunnerConfig(executor="shell"), provider=executor_provider("shell")))
    if context.refusal is not None:
        raise context.refusal
    place = Environment(builds_dir="/builds", cache_dir="/cache", shared_builds_dir=True)
    for name in ("bash", "sh", "pwsh"):
        info = ShellScriptInfo(shell=name, type=ShellType.LOGIN, runner_command="gitlab-runner")
        prepared = prepared_job(context, place, info)
        for stage in [*TITLES, *(f"step_{step.name.lower()}" for step in job.steps)]:
            script = shell(name).script(stage, prepared.script)
            assert script is None or isinstance(script, str)


@settings(max_examples=200, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=4))
def test_any_value_anywhere_is_a_job_or_one_line(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    try:
        scripts_of(decode_job(mutated(changes)))
    except (msgspec.DecodeError, JobError) as error:
        assert str(error)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.integers(0, 2000), st.binary(max_size=4))
def test_a_cut_or_damaged_payload_is_one_line(position: int, rubbish: bytes) -> None:
    body = json.dumps(PAYLOAD).encode()
    try:
        scripts_of(decode_job(body[:position] + rubbish))
    except (msgspec.DecodeError, JobError, ValueError) as error:
        assert str(error)
