"""What of the server's state outlives its process."""

from __future__ import annotations

from typing import Protocol

from pyrunner.server.jobs import JobRecord
from pyrunner.server.runners import RunnerRecord


class Ledger(Protocol):
    """Keeps job and runner records. Writes are durable when they return; calls come from one thread at a time."""

    def jobs(self) -> list[JobRecord]:
        """All saved job records. `trace_size` and `trace_crc` are not kept: the trace file tells them."""
        ...

    def runners(self) -> list[RunnerRecord]:
        """All saved runners."""
        ...

    def save_job(self, record: JobRecord) -> None:
        """Write a job record, replacing an older one."""
        ...

    def save_runner(self, record: RunnerRecord) -> None:
        """Write a runner, replacing an older one."""
        ...

    def delete_runner(self, runner_id: int) -> None:
        """Forget a runner."""
        ...


class NoLedger:
    """Keeps nothing: for servers that live as long as their pipeline."""

    def jobs(self) -> list[JobRecord]:
        """None."""
        return []

    def runners(self) -> list[RunnerRecord]:
        """None."""
        return []

    def save_job(self, record: JobRecord) -> None:
        """Nothing is kept."""

    def save_runner(self, record: RunnerRecord) -> None:
        """Nothing is kept."""

    def delete_runner(self, runner_id: int) -> None:
        """Nothing is kept."""
