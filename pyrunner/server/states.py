"""The states that a job passes through on the server."""

from __future__ import annotations

import enum


class JobState(enum.Enum):
    """State of a job; `wire` is the word that runners see in ``Job-Status``."""

    PENDING = "pending"
    RESERVED = "reserved"
    RUNNING = "running"
    CANCELING = "canceling"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def wire(self) -> str:
        """GitLab has no word for a reserved job: it is still pending (facts/runner-api.md 6.6)."""
        return "pending" if self is JobState.RESERVED else self.value


FINAL_STATES = frozenset((JobState.SUCCESS, JobState.FAILED, JobState.CANCELED))
