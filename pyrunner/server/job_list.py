"""How a job is shown to people: what the queue and the job book know of it, together."""

from __future__ import annotations

from typing import Any

from pyrunner.server.jobs import JobRecord
from pyrunner.server.queue_source import QueuedJob


def describe_job(job: QueuedJob, record: JobRecord | None) -> dict[str, Any]:
    """One job as JSON; times are seconds since the epoch, 0 when it has not come to that."""
    # a job back in the queue still has the record of the try that came to nothing
    taken = record if job.state in ("taken", "done") else None
    verdict = taken.verdict if taken else None
    return {
        "id": job.id,
        "pipeline_id": job.pipeline_id,
        "name": job.name,
        "state": taken.state.value if taken else job.state,
        "tags": job.tags,
        "runner_id": taken.runner_id if taken else 0,
        "created_at": job.created_at,
        "started_at": taken.started_at if taken else 0.0,
        "finished_at": taken.finished_at if taken else 0.0,
        "failure_reason": verdict.failure_reason if verdict else "",
        "exit_code": verdict.exit_code if verdict else 0,
        "trace_size": taken.trace_size if taken else 0,
        "artifacts": {kind: artifact.size for kind, artifact in taken.artifacts.items()} if taken else {},
    }
