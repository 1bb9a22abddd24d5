"""Which image the helper container is made from (facts/executors.md 6.8). Pure."""

from __future__ import annotations

import re

from pyrunner.base.version import GITLAB_RUNNER_VERSION

REPOSITORY = "registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper"
_ARCHITECTURES = {"armv6l": "arm", "armv7l": "arm", "aarch64": "arm64", "amd64": "x86_64"}
_DEFAULT_FLAVOR = "alpine"


def default_helper_image(arch: str, flavor: str = "", *, pwsh: bool = False) -> str:
    """The official image for a Linux engine of this architecture (the engine's word for it)."""
    prefix = "" if flavor in ("", _DEFAULT_FLAVOR) else f"{flavor}-"
    suffix = "-pwsh" if pwsh else ""
    return f"{REPOSITORY}:{prefix}{_ARCHITECTURES.get(arch, arch)}-{_revision()}{suffix}"


def _revision() -> str:
    match = re.match(r"\d+\.\d+\.\d+", GITLAB_RUNNER_VERSION)
    return f"v{match.group(0)}" if match else "latest"
