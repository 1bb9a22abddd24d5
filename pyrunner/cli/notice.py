"""The first log lines of commands that work on a config (facts/commands.md 1)."""

from __future__ import annotations

import os

from pyrunner.base.host import goarch, goos, is_root
from pyrunner.base.light_log import Log
from pyrunner.base.version import GITLAB_RUNNER_VERSION, REVISION

log = Log(__name__)


def runtime_platform() -> None:
    """``Runtime platform`` with what this process is."""
    log.info(
        "Runtime platform",
        extra={
            "arch": goarch(),
            "os": goos(),
            "pid": os.getpid(),
            "revision": REVISION,
            "version": GITLAB_RUNNER_VERSION,
        },
    )


def user_mode(*, hint: bool) -> None:
    """Say whose config this is; `hint` adds how builds are started."""
    if os.name == "nt":
        return
    if is_root():
        log.info("Running in system-mode.")
    else:
        log.warning("Running in user-mode.")
        if hint:
            log.warning("The user-mode requires you to manually start builds processing:")
            log.warning("$ gitlab-runner run")
        log.warning("Use sudo for system-mode:")
        log.warning("$ sudo gitlab-runner...")
    log.info("")
