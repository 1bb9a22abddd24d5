"""What a job may choose for a container of its own: platform and user (facts/runner-api.md 5.3). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Image
from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig


def docker_option(definition: Image | None, name: str, variables: Variables) -> str:
    """An entry of ``executor_opts: docker``, expanded; empty when it is not there. The user 0 is one."""
    options = definition.executor_opts.get("docker") if definition else None
    value = (options or {}).get(name)
    return "" if value is None else variables.expand(str(value))


def allowed_user(docker: DockerConfig, wanted: str) -> str:
    """The user of the build container: the config's, else `wanted` (facts/executors.md 6.4).

    Raises:
        SystemFailure: ``runner_configuration_error``: it is not among the allowed ones.
    """
    user = docker.user or wanted
    allowed: Sequence[str] = docker.allowed_users or ([docker.user] if docker.user else [])
    if user and allowed and user not in allowed:
        raise SystemFailure(
            f'user "{user}" is not an allowed user: [{" ".join(allowed)}]', reason="runner_configuration_error"
        )
    return user
