"""Settings that widen or narrow what a container may do: security options, privileges (facts/executors.md 6.5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pyrunner.base.errors import SystemFailure
from pyrunner.executors.docker.images.allowed import matches_any

#: Profiles that the engine knows by name.
_BUILT_IN = ("unconfined", "builtin")


def read_profile(path: str) -> str:
    """Content of a profile's file on this machine."""
    return Path(path).read_text(encoding="utf-8")


def security_options(options: Sequence[str], read: Callable[[str], str] = read_profile) -> list[str]:
    """``SecurityOpt``: a seccomp profile that is named by its file goes as its content, compact.

    Raises:
        SystemFailure: ``runner_configuration_error``: the file cannot be read or is no JSON.
    """
    return [_security_option(option, read) for option in options]


def _security_option(option: str, read: Callable[[str], str]) -> str:
    name, _, path = option.partition("=") if "=" in option else option.partition(":")
    if name != "seccomp" or path in _BUILT_IN or path.lstrip().startswith("{"):
        return option
    try:
        profile = json.loads(read(path))
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        raise SystemFailure(
            f'security_opt "{option}": cannot load the seccomp profile: {what}', reason="runner_configuration_error"
        ) from error
    return f"seccomp={json.dumps(profile, separators=(',', ':'))}"


def is_privileged(wanted: bool, image: str, allowed: Sequence[str]) -> bool:
    """Whether a container of `image` is privileged: asked for by the config, and among the images that may be."""
    return wanted and matches_any(allowed, image)
