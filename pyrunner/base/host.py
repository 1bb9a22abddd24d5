"""The machine we run on, in the words that GitLab servers and config files use (Go's platform names)."""

from __future__ import annotations

import os
import sys

_GO_MACHINES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i386": "386",
    "i686": "386",
    "armv6l": "arm",
    "armv7l": "arm",
}
_GO_SYSTEMS = {"win32": "windows", "cygwin": "windows"}


def goos() -> str:
    """Operating system as Go names it: ``linux``, ``darwin``, ``windows``, ``freebsd``."""
    name = _GO_SYSTEMS.get(sys.platform, sys.platform)
    return "freebsd" if name.startswith("freebsd") else name


def goarch() -> str:
    """Processor architecture as Go names it: ``amd64``, ``arm64``, ``386``, ``s390x`` …"""
    if not hasattr(os, "uname"):
        return _GO_MACHINES.get(os.environ.get("PROCESSOR_ARCHITECTURE", "").lower(), "amd64")
    machine = os.uname().machine
    return _GO_MACHINES.get(machine, machine)


def user_agent() -> str:
    """``User-Agent`` of every API request (facts/runner-api.md 1.2); servers look for ``name version (``."""
    from pyrunner.base.version import CLIENT_NAME, GITLAB_RUNNER_VERSION, VERSION

    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{CLIENT_NAME} {GITLAB_RUNNER_VERSION} (pyrunner-{VERSION}; {python}; {goos()}/{goarch()})"


def is_root() -> bool:
    """Whether this process runs in system mode (uid 0)."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
