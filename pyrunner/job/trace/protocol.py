"""What delivers a trace: the part of the API client that it needs."""

from __future__ import annotations

from typing import Protocol

from pyrunner.api.outcomes import PatchAnswer, UpdateAnswer
from pyrunner.api.wire import JobUpdate
from pyrunner.base.cancel import CancelToken


class TraceClient(Protocol):
    """Blocking calls that never raise for what a server does."""

    def update_job(self, job_id: int, update: JobUpdate, cancel: CancelToken | None = None) -> UpdateAnswer:
        """``PUT jobs/:id`` (facts/runner-api.md 6.2)."""
        ...

    def patch_trace(
        self,
        job_id: int,
        job_token: str,
        content: bytes,
        start: int,
        *,
        debug_trace: bool = False,
        cancel: CancelToken | None = None,
    ) -> PatchAnswer:
        """``PATCH jobs/:id/trace`` (facts/runner-api.md 6.4)."""
        ...
