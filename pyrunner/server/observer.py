"""Who looks on: live views of what happens to the server's jobs."""

from __future__ import annotations

from typing import Protocol

from pyrunner.server.jobs import StoredArtifact
from pyrunner.server.source import Verdict


class Observer(Protocol):
    """Told about every change, in order, on the server's thread: return quickly and raise nothing."""

    def job_changed(self, job_id: int, state: str, verdict: Verdict | None) -> None:
        """The job is now ``pending`` (returned), ``reserved``, ``running``, ``canceling`` or ended with `verdict`."""
        ...

    def trace_appended(self, job_id: int, start: int, content: bytes) -> None:
        """The trace grew; `start` is 0 again when the runner sends all of it anew."""
        ...

    def artifact_stored(self, job_id: int, artifact: StoredArtifact, path: str) -> None:
        """An artifact is whole on disk at `path`."""
        ...
