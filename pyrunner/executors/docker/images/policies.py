"""Which pull policies hold for an image, in which order (facts/executors.md 6.8). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig


class PullPolicy(StrEnum):
    """When an image is pulled."""

    ALWAYS = "always"
    IF_NOT_PRESENT = "if-not-present"
    NEVER = "never"


def effective_policies(docker: DockerConfig, image: str, requested: Sequence[str] = ()) -> list[PullPolicy]:
    """The policies to try for `image`, in the order of the request; `requested` are those of the job.

    Raises:
        SystemFailure: ``runner_configuration_error``: none of them is allowed, or one is unknown.
    """
    configured = [str(policy) for policy in docker.pull_policy]
    if requested:
        wanted, where = list(requested), "GitLab pipeline config"
    elif configured:
        wanted, where = configured, "Runner config"
    else:
        wanted, where = [PullPolicy.ALWAYS.value], "Runner config (default)"
    allowed = list(docker.allowed_pull_policies) or configured or [PullPolicy.ALWAYS.value]
    chosen = [policy for policy in wanted if policy in allowed]
    if not chosen:
        raise SystemFailure(
            f'invalid pull policy for image "{image}": pull_policy ({_shown(wanted)}) defined in {where} '
            f"is not one of the allowed_pull_policies ({_shown(allowed)})",
            reason="runner_configuration_error",
        )
    try:
        return [PullPolicy(policy) for policy in chosen]
    except ValueError as error:
        raise SystemFailure(
            f'unsupported pull_policy for image "{image}": {error}', reason="runner_configuration_error"
        ) from error


def _shown(policies: Sequence[str]) -> str:
    return f"[{' '.join(policies)}]"
