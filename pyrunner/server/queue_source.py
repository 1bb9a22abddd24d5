"""A plain queue of jobs, first in, first out for those that a runner may run; outlives the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pyrunner.api.wire import JobInfo, JobResponse
from pyrunner.server.database import Database
from pyrunner.server.raw_job import RawJob
from pyrunner.server.source import RunnerIdentity, Verdict
from pyrunner.server.tokens import new_job_token

#: In a payload's texts, these are replaced when a runner takes the job.
TOKEN_PLACEHOLDER = "@JOB_TOKEN@"  # noqa: S105 - not a secret
ID_PLACEHOLDER = "@JOB_ID@"


_QUEUED = "SELECT id, pipeline_id, name, tags, state, created_at FROM queue"


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """One row of the queue.

    `pipeline_id` is 0 for a job by itself; `state` is ``pending``, ``taken``, ``done`` or ``canceled`` (before a runner
    took it).
    """

    id: int
    pipeline_id: int
    name: str
    tags: list[str]
    state: str
    created_at: float


class QueueSource:
    """Jobs as payloads of the wire (facts/runner-api.md section 5), kept in the database.

    A job that its runner never committed to goes back to its place in the queue, with a new token.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        rows = database.query("SELECT id, tags FROM queue WHERE state = 'pending' ORDER BY id")
        self._pending = {job_id: frozenset(msgspec.json.decode(tags)) for job_id, tags in rows}

    def submit(self, payload: Mapping[str, Any], *, tags: Iterable[str] = (), keep_id: bool = False) -> int:
        """Queue a job and return its id.

        `payload` goes out as it is, apart from ``id`` and ``token`` and the placeholders; ``id`` and ``token`` of the
        payload are used with `keep_id`, replaced without.

        Raises:
            ValueError: `keep_id` and there is a job with this id.
        """
        content = dict(payload)
        if not keep_id:
            content.pop("id", None)
            content.pop("token", None)
        info = content.get("job_info")
        name = str(info.get("name", "")) if isinstance(info, Mapping) else ""
        number = content.get("id")
        wanted = number if isinstance(number, int) and number > 0 else None
        with self._lock:
            if wanted and self._database.query("SELECT 1 FROM queue WHERE id = ?", (wanted,)):
                raise ValueError(f"there is a job with id {wanted}")
            job_id = self._insert(wanted, name, content, list(tags))
        self._notify()
        return job_id

    def submit_built(
        self, name: str, build: Callable[[int], Mapping[str, Any]], *, tags: Iterable[str], pipeline_id: int
    ) -> int:
        """Queue a job of a pipeline whose payload depends on its id: `build` makes it; returns the id."""
        with self._lock:
            rows = self._database.query("SELECT seq FROM sqlite_sequence WHERE name = 'queue'")
            job_id = (rows[0][0] if rows else 0) + 1
            content = {key: value for key, value in build(job_id).items() if key not in ("id", "token")}
            self._insert(job_id, name, content, list(tags), pipeline_id)
        self._notify()
        return job_id

    def _insert(
        self, job_id: int | None, name: str, content: dict[str, Any], tags: list[str], pipeline_id: int = 0
    ) -> int:
        number = self._database.change(
            "INSERT INTO queue (id, pipeline_id, name, tags, payload, state, created_at)"
            " VALUES (?, ?, ?, ?, ?, 'pending', ?)",
            (job_id, pipeline_id, name, msgspec.json.encode(tags), msgspec.json.encode(content), time.time()),
        )
        self._pending[number] = frozenset(tags)
        return number

    def cancel(self, job_id: int) -> bool:
        """Cancel a job that no runner has taken; whether it was one."""
        with self._lock:
            if self._pending.pop(job_id, None) is None:
                return False
            self._set_state(job_id, "canceled")
            return True

    def jobs(self) -> list[QueuedJob]:
        """All jobs, oldest first."""
        return [_queued(row) for row in self._database.query(_QUEUED + " ORDER BY id")]

    def jobs_of(self, pipeline_id: int) -> list[QueuedJob]:
        """The jobs of a pipeline so far, oldest first; a job that was tried again is there more than once."""
        rows = self._database.query(_QUEUED + " WHERE pipeline_id = ? ORDER BY id", (pipeline_id,))
        return [_queued(row) for row in rows]

    def job(self, job_id: int) -> QueuedJob | None:
        """One job."""
        rows = self._database.query(_QUEUED + " WHERE id = ?", (job_id,))
        return _queued(rows[0]) if rows else None

    def take(self, runner: RunnerIdentity) -> JobResponse | None:
        """The oldest job that this runner may run."""
        with self._lock:
            job_id = next((number for number, tags in self._pending.items() if _may_run(runner, tags)), None)
            if job_id is None:
                return None
            del self._pending[job_id]
            ((payload,),) = self._database.query("SELECT payload FROM queue WHERE id = ?", (job_id,))
            self._set_state(job_id, "taken")
        return _outgoing(job_id, payload)

    def started(self, job_id: int) -> None:
        """The job's record, kept by the server, says so."""

    def returned(self, job_id: int) -> None:
        """Put the job back to its place."""
        rows = self._database.query("SELECT payload, tags FROM queue WHERE id = ?", (job_id,))
        if not rows:
            return
        content = msgspec.json.decode(rows[0][0])
        content.pop("token", None)
        with self._lock:
            self._database.change(
                "UPDATE queue SET state = 'pending', payload = ? WHERE id = ?",
                (msgspec.json.encode(content), job_id),
            )
            self._pending[job_id] = frozenset(msgspec.json.decode(rows[0][1]))
            self._pending = dict(sorted(self._pending.items()))
        self._notify()

    def finished(self, job_id: int, verdict: Verdict) -> None:
        """The job is done."""
        with self._lock:
            self._set_state(job_id, "done")

    def subscribe(self, notify: Callable[[], None]) -> None:
        """Call `notify` when there are new jobs."""
        self._listeners.append(notify)

    def _set_state(self, job_id: int, state: str) -> None:
        self._database.change("UPDATE queue SET state = ? WHERE id = ?", (state, job_id))

    def _notify(self) -> None:
        for notify in self._listeners:
            notify()


def _may_run(runner: RunnerIdentity, tags: frozenset[str]) -> bool:
    return tags <= runner.tags if tags else runner.run_untagged


def _outgoing(job_id: int, payload: bytes) -> RawJob:
    content = msgspec.json.decode(payload)
    token = content.get("token")
    token = token if isinstance(token, str) and token else new_job_token()
    info = content.get("job_info")
    if isinstance(info, dict):
        info.setdefault("id", job_id)
    name = str(info.get("name", "")) if isinstance(info, dict) else ""
    body = msgspec.json.encode({**content, "id": job_id, "token": token})
    body = body.replace(TOKEN_PLACEHOLDER.encode(), token.encode())
    body = body.replace(ID_PLACEHOLDER.encode(), str(job_id).encode())
    return RawJob(id=job_id, token=token, job_info=JobInfo(id=job_id, name=name), body=body)


def _queued(row: tuple[Any, ...]) -> QueuedJob:
    job_id, pipeline_id, name, tags, state, created_at = row
    return QueuedJob(
        id=job_id,
        pipeline_id=pipeline_id,
        name=name,
        tags=msgspec.json.decode(tags),
        state=state,
        created_at=created_at,
    )
