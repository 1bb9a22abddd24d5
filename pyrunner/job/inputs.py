"""Job inputs: ``${{ job.inputs.<key> }}`` in a payload becomes the input's value (facts/runner-api.md 5.6). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pyrunner.api.wire import Artifact, Cache, Image, JobInput, JobResponse
from pyrunner.base.errors import JobError

_TEMPLATE = re.compile(r"\$\{\{\s*(job\s*\.\s*inputs\b.*?)\s*\}\}", re.DOTALL)
_REFERENCE = re.compile(r"job\s*\.\s*inputs\s*\.\s*([A-Za-z0-9_-]+)")
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "struct": (dict,),
}
#: Steps whose commands may hold templates.
_STEPS = ("script", "after_script")

Expand = Callable[[str], str]


class InputError(JobError):
    """An input, or a template that refers to one, is wrong."""

    reason = "runner_configuration_error"


def interpolated(job: JobResponse) -> JobResponse:
    """The job with its templates replaced; without any input the text is left alone.

    Raises:
        InputError: a value does not have its type, or a template names no input or a sensitive one.
    """
    if not job.inputs:
        return job
    inputs = {item.key: item for item in job.inputs}
    texts = {key: _text(item) for key, item in inputs.items()}

    def expand(text: str) -> str:
        return _TEMPLATE.sub(lambda match: _lookup(match.group(1), inputs, texts), text) if "${{" in text else text

    steps = [
        msgspec.structs.replace(step, script=[expand(line) for line in step.script]) if step.name in _STEPS else step
        for step in job.steps
    ]
    return msgspec.structs.replace(
        job,
        steps=steps,
        image=_image(job.image, expand) if job.image else None,
        services=[_image(service, expand) for service in job.services],
        artifacts=[_artifact(artifact, expand) for artifact in job.artifacts],
        cache=[_cache(cache, expand) for cache in job.cache],
    )


def _text(item: JobInput) -> str:
    kind, content = item.value.type, item.value.content
    if kind not in _KINDS:
        raise InputError(f'job input "{item.key}": unknown type "{kind}", expected one of: {", ".join(_KINDS)}')
    # a boolean is a number to Python, not to us
    if not isinstance(content, _KINDS[kind]) or (kind == "number" and isinstance(content, bool)):
        raise InputError(f'job input "{item.key}": its value is not of type {kind}')
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _lookup(expression: str, inputs: Mapping[str, JobInput], texts: Mapping[str, str]) -> str:
    reference = _REFERENCE.fullmatch(expression)
    if reference is None:
        raise InputError(f'"${{{{ {expression} }}}}" cannot be read, expected ${{{{ job.inputs.<key> }}}}')
    key = reference.group(1)
    if key not in inputs:
        raise InputError(f'there is no job input "{key}", known are: {", ".join(inputs)}')
    if inputs[key].value.sensitive:
        raise InputError(f'job input "{key}" is sensitive and cannot be used in ${{{{ job.inputs.{key} }}}}')
    return texts[key]


def _image(image: Image, expand: Expand) -> Image:
    return msgspec.structs.replace(
        image,
        name=expand(image.name),
        command=None if image.command is None else [expand(word) for word in image.command],
        entrypoint=None if image.entrypoint is None else [expand(word) for word in image.entrypoint],
        pull_policy=[expand(policy) for policy in image.pull_policy],
        executor_opts=_deep(image.executor_opts, expand),
    )


def _artifact(artifact: Artifact, expand: Expand) -> Artifact:
    return msgspec.structs.replace(
        artifact,
        name=expand(artifact.name),
        paths=[expand(path) for path in artifact.paths],
        exclude=[expand(path) for path in artifact.exclude],
        when=expand(artifact.when),
        expire_in=expand(artifact.expire_in),
    )


def _cache(cache: Cache, expand: Expand) -> Cache:
    return msgspec.structs.replace(
        cache,
        key=expand(cache.key),
        policy=expand(cache.policy),
        paths=[expand(path) for path in cache.paths],
        when=expand(cache.when),
        fallback_keys=[expand(key) for key in cache.fallback_keys],
    )


def _deep(value: Any, expand: Expand) -> Any:
    if isinstance(value, str):
        return expand(value)
    if isinstance(value, dict):
        return {key: _deep(item, expand) for key, item in value.items()}
    return [_deep(item, expand) for item in value] if isinstance(value, list) else value
