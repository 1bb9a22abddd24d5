"""Patterns of images and services that a job may use (facts/executors.md 6.8). Pure but for the lines of a refusal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyrunner.archive.glob import BadPatternError, matcher
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.protocol import TraceWriter

_HINT = "Please check runner's configuration: https://docs.gitlab.com/runner/configuration/advanced-configuration/"


def matches_any(patterns: Sequence[str], image: str) -> bool:
    """Whether a doublestar glob fits, or there is none at all.

    Raises:
        SystemFailure: ``runner_configuration_error``: a pattern is none.
    """
    return not patterns or any(_matches(pattern, image) for pattern in patterns)


def check_allowed(kind: str, image: str, patterns: Sequence[str], always: Collection[str], trace: TraceWriter) -> None:
    """Refuse what the config does not allow; `kind` is ``images`` or ``services``, `always` what it names itself.

    Raises:
        SystemFailure: ``runner_configuration_error``.
    """
    if image in always or matches_any(patterns, image):
        return
    trace.plain(f'The "{image}" image is not present on list of allowed {kind}:')
    for pattern in patterns:
        trace.plain(f"- {pattern}")
    trace.plain("")
    trace.plain(_HINT)
    raise SystemFailure("disallowed image", reason="runner_configuration_error")


def _matches(pattern: str, image: str) -> bool:
    try:
        return matcher(pattern)(image)
    except BadPatternError as error:
        raise SystemFailure(
            f'[runners.docker] pattern "{pattern}": {error}', reason="runner_configuration_error"
        ) from error
