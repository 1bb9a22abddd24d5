"""The docker executor: every job in containers of its own. See the section about it in docs/architecture.md."""

from pyrunner.executors.docker.provider import provider

__all__ = ["provider"]
