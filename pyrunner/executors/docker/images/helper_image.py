"""Which image the helper container is made from (facts/executors.md 6.8). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrunner.base.errors import SystemFailure
from pyrunner.base.version import GITLAB_RUNNER_VERSION
from pyrunner.executors.docker.engine.records import EngineFacts

REPOSITORY = "registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper"
_ARCHITECTURES = {"armv6l": "arm", "armv7l": "arm", "aarch64": "arm64", "amd64": "x86_64"}
_DEFAULT_FLAVOR = "alpine"
#: Build number of an engine's Windows → the release that its images are named after.
_WINDOWS = {
    **dict.fromkeys((17763, 19043, 19044, 19045), "1809"),
    **dict.fromkeys((20348, 22000, 22621, 22631), "21H2"),
    **dict.fromkeys((26100, 26200), "24H2"),
}
_YEARS = {"1809": "2019", "21H2": "2022", "24H2": "2025"}
_BUILD = re.compile(r"10\.0[ .](\d+)")
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)")


@dataclass(frozen=True, kw_only=True)
class HelperImage:
    """The official helper image for an engine."""

    tag: str
    #: Name of an archive with it, without suffix.
    archive: str

    @property
    def name(self) -> str:
        """What is pulled."""
        return f"{REPOSITORY}:{self.tag}"


def official_helper_image(engine: EngineFacts, flavor: str = "", *, pwsh: bool = False) -> HelperImage:
    """The image for this engine; `flavor` is the config's, `pwsh` tells whether jobs use that shell.

    Raises:
        SystemFailure: ``runner_configuration_error``: a Windows that there is no image for.
    """
    if engine.os == "windows":
        return _for_windows(engine)
    arch = _ARCHITECTURES.get(engine.arch, engine.arch)
    chosen = flavor or _DEFAULT_FLAVOR
    prefix = "" if chosen == _DEFAULT_FLAVOR else f"{chosen}-"
    suffix = "-pwsh" if pwsh else ""
    return HelperImage(tag=f"{prefix}{arch}-{revision()}{suffix}", archive=f"prebuilt-{chosen}-{arch}{suffix}")


def revision(version: str = GITLAB_RUNNER_VERSION) -> str:
    """Of the image that fits `version`."""
    match = _RELEASE.match(version)
    return f"v{match.group(1)}" if match else "latest"


def _for_windows(engine: EngineFacts) -> HelperImage:
    found = _BUILD.search(engine.kernel)
    release = _WINDOWS.get(int(found.group(1))) if found else None
    if release is None:
        raise SystemFailure(
            f'there is no helper image for the engine\'s Windows "{engine.kernel}"; set helper_image in the config',
            reason="runner_configuration_error",
        )
    arm = engine.arch in ("arm64", "aarch64") and release == "24H2"
    arch = "arm64" if arm else "x86_64"
    return HelperImage(
        tag=f"{arch}-{revision()}-servercore{release}",
        archive=f"prebuilt-windows-servercore-ltsc{_YEARS[release]}-{arch}",
    )
