from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.api.wire import JobResponse, decode_job
from pyrunner.job.inputs import InputError, interpolated


def job(inputs: dict[str, tuple[str, Any]], *script: str, sensitive: bool = False, **fields: Any) -> JobResponse:
    raw = {
        "inputs": [
            {"key": key, "value": {"type": kind, "content": content, "sensitive": sensitive}}
            for key, (kind, content) in inputs.items()
        ],
        "steps": [{"name": "script", "script": list(script)}],
        **fields,
    }
    return decode_job(msgspec.json.encode(raw))


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("string", "a b", "a b"),
        ("number", 3, "3"),
        ("number", 1.5, "1.5"),
        ("boolean", True, "true"),
        ("array", ["a", 1], '["a",1]'),
        ("struct", {"a": None}, '{"a":null}'),
    ],
)
def test_values_by_type(kind: str, content: object, text: str) -> None:
    found = interpolated(job({"x-1": (kind, content)}, "echo ${{ job.inputs.x-1 }} ${{job.inputs.x-1}}"))
    assert found.steps[0].script == [f"echo {text} {text}"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [("string", 1), ("number", "1"), ("number", True), ("boolean", 1), ("array", {}), ("struct", []), ("string", None)],
)
def test_value_of_another_type_is_refused_even_when_unused(kind: str, content: object) -> None:
    with pytest.raises(InputError, match=f'job input "x": its value is not of type {kind}'):
        interpolated(job({"x": (kind, content)}, "true"))


def test_unknown_type() -> None:
    with pytest.raises(InputError, match='unknown type "date"'):
        interpolated(job({"x": ("date", "today")}, "true"))


def test_unknown_key_names_the_known_ones() -> None:
    with pytest.raises(InputError, match='there is no job input "y", known are: x'):
        interpolated(job({"x": ("string", "v")}, "echo ${{ job.inputs.y }}"))


@pytest.mark.parametrize("expression", ["job.inputs", "job.inputs.x | upper", "job.inputs['x']"])
def test_what_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(InputError, match="cannot be read, expected"):
        interpolated(job({"x": ("string", "v")}, f"echo ${{{{ {expression} }}}}"))


def test_sensitive_inputs_may_exist_but_not_be_used() -> None:
    interpolated(job({"x": ("string", "v")}, "true", sensitive=True))
    with pytest.raises(InputError, match='"x" is sensitive') as caught:
        interpolated(job({"x": ("string", "v3rysecret")}, "echo ${{ job.inputs.x }}", sensitive=True))
    assert "v3rysecret" not in str(caught.value)
    assert caught.value.reason == "runner_configuration_error"


def test_everything_that_may_hold_a_template() -> None:
    t = "${{ job.inputs.x }}"
    found = interpolated(
        job(
            {"x": ("string", "v")},
            t,
            image={"name": t, "entrypoint": [t], "command": [t], "executor_opts": {"docker": {"user": t}}},
            services=[{"name": t, "pull_policy": [t]}],
            artifacts=[{"name": t, "paths": [t], "exclude": [t], "when": t, "expire_in": t}],
            cache=[{"key": t, "paths": [t], "policy": t, "when": t, "fallback_keys": [t]}],
        )
    )
    assert b"job.inputs" not in msgspec.json.encode(found)


def test_other_steps_and_other_templates_stay() -> None:
    steps = [
        {"name": "release", "script": ["${{ job.inputs.x }}"]},
        {"name": "script", "script": ["${{ github.sha }}"]},
    ]
    found = interpolated(job({"x": ("string", "v")}, steps=steps))
    assert [step.script for step in found.steps] == [["${{ job.inputs.x }}"], ["${{ github.sha }}"]]


def test_without_inputs_nothing_is_touched() -> None:
    plain = job({}, "echo ${{ job.inputs.x }}")
    assert interpolated(plain) is plain


@given(st.text(), st.text())
def test_a_value_is_never_expanded_again(value: str, around: str) -> None:
    found = interpolated(job({"x": ("string", value)}, "${{ job.inputs.x }}"))
    assert found.steps[0].script == [value]
    if "${{" not in around:
        assert interpolated(job({"x": ("string", value)}, around)).steps[0].script == [around]
