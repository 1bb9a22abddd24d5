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
    configured = _known(docker.pull_policy, "pull_policy")
    wanted, where = _wanted(configured, _known(requested, "pull_policy"))
    allowed = _known(docker.allowed_pull_policies, "allowed_pull_policies") or configured or [PullPolicy.ALWAYS]
    chosen = [policy for policy in wanted if policy in allowed]
    if not chosen:
        raise SystemFailure(
            f'invalid pull policy for image "{image}": pull_policy ({shown(wanted)}) defined in {where} '
            f"is not one of the allowed_pull_policies ({shown(allowed)})",
            reason="runner_configuration_error",
        )
    return chosen


def shown(policies: Sequence[PullPolicy]) -> str:
    """A list as it stands in messages: ``[always never]``."""
    return f"[{' '.join(policies)}]"


def _wanted(configured: list[PullPolicy], requested: list[PullPolicy]) -> tuple[list[PullPolicy], str]:
    if requested:
        return requested, "GitLab pipeline config"
    if configured:
        return configured, "Runner config"
    return [PullPolicy.ALWAYS], "Runner config (default)"


def _known(policies: Sequence[str], key: str) -> list[PullPolicy]:
    known = []
    for policy in policies:
        try:
            known.append(PullPolicy(policy))
        except ValueError:
            raise SystemFailure(f'unsupported {key} config: "{policy}"', reason="runner_configuration_error") from None
    return known
