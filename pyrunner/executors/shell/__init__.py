"""The shell executor: scripts run on this machine, as this user or a system user (facts/executors.md section 2)."""

from pyrunner.executors.shell.provider import provider

__all__ = ["provider"]
