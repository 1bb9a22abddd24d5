"""A GitLab to test runners against: the project's own server with a queue, a memory of all requests, and faults."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pyrunner.api.wire import JobResponse
from pyrunner.server.app import EmbeddedServer, ServerSettings
from pyrunner.server.database import Database
from pyrunner.server.jobs import StoredArtifact
from pyrunner.server.queue_source import QueueSource
from pyrunner.server.raw_job import RawJob
from pyrunner.server.runners import RunnerRecord
from pyrunner.server.source import RunnerIdentity, Verdict
from pyrunner.testing.faults import Fault, FaultLayer, Injection, SeenRequest
from pyrunner.testing.lfs import LfsStore

REGISTRATION_TOKEN = "fake-registration-token"
ADMIN_TOKEN = "fake-admin-token"
_FINAL = ("success", "failed", "canceled")


@dataclass(frozen=True, kw_only=True)
class FakeJob:
    """What the server knows of one job.

    Attributes:
        state: ``pending``, ``reserved``, ``running``, ``canceling``, ``success``, ``failed`` or ``canceled``.
        states: all states in order, without the first ``pending``.
        updates: bodies of all ``PUT`` requests, whatever they were answered.
        verdicts: how many times the job got a final state; `final_updates` counts what was sent.
        artifacts: path of the stored file by artifact type.
        trace_matches: whether the stored trace fits the checksum of the final update; None without one.
    """

    id: int
    state: str
    states: list[str]
    trace: bytes
    updates: list[dict[str, Any]]
    verdicts: int
    verdict: Verdict | None = None
    artifacts: dict[str, str]
    trace_matches: bool | None = None
    token: str = ""
    runner_id: int = 0
    system_id: str = ""

    @property
    def final_updates(self) -> int:
        """How many ``PUT`` requests with a final state came, repeated ones included."""
        return sum(1 for update in self.updates if update.get("state") in ("success", "failed"))


class _Source(QueueSource):
    """The queue, with bodies that no structure could hold let through first."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.raw: list[RawJob] = []
        self.notify: Callable[[], None] = lambda: None

    def take(self, runner: RunnerIdentity) -> JobResponse | None:
        return self.raw.pop(0) if self.raw else super().take(runner)

    def subscribe(self, notify: Callable[[], None]) -> None:
        self.notify = notify
        super().subscribe(notify)


class FakeGitLab:
    """Use as a context manager. All methods may be called from any thread while it runs.

    Args:
        long_poll: seconds that job requests are held.
        update_interval: seconds that runners are asked to wait between patches.
        git_root: directory with bare repositories, see `pyrunner.testing.git_repository`; Git LFS is served, too.
        data_dir: where traces and artifacts go; a temporary directory when not given.
    """

    def __init__(
        self,
        *,
        long_poll: float = 50.0,
        update_interval: int = 3,
        git_root: str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._temporary = None if data_dir else tempfile.mkdtemp(prefix="fake-gitlab-")
        self._faults = FaultLayer()
        self._states: dict[int, list[str]] = {}
        self._database = Database(":memory:")
        self.source = _Source(self._database)
        self.server = EmbeddedServer(
            self.source,
            host=host,
            port=port,
            data_dir=data_dir or self._temporary or "",
            git_root=git_root,
            observer=self,
            settings=ServerSettings(
                long_poll=long_poll,
                update_interval=update_interval,
                registration_token=REGISTRATION_TOKEN,
                admin_token=ADMIN_TOKEN,
                wrap=self._faults.wrap,
                extra_routes=LfsStore(git_root).routes if git_root is not None else None,
            ),
        )
        self.url = ""
        self.registration_token = REGISTRATION_TOKEN
        self.admin_token = ADMIN_TOKEN

    def __enter__(self) -> FakeGitLab:
        self.url = self.server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop serving and remove the files."""
        self._faults.release()
        self.server.stop()
        self._database.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def go_down(self) -> None:
        """Stop listening and cut all connections; requests are refused until `come_back`. Everything is remembered."""
        self._faults.release()
        self.server.stop()

    def come_back(self) -> None:
        """Serve again, at the same address."""
        self.server.start()

    # --- runners and jobs -------------------------------------------------------------------------------------

    def add_runner(
        self, description: str = "", tags: Iterable[str] = (), run_untagged: bool = True, **settings: Any
    ) -> str:
        """Make a runner and return its ``glrt-`` token."""
        return self.server.add_runner(description, tags, run_untagged, **settings)

    def runners(self) -> list[RunnerRecord]:
        """All runners."""
        return self.server.runners()

    def submit(self, job: Mapping[str, Any] | JobResponse, *, tags: Iterable[str] = ()) -> int:
        """Queue a job and return its id.

        A dict goes out as it is, unknown and wrong fields included; ``id`` and ``token`` are kept when given. See
        `pyrunner.server.queue_source` for the placeholders in texts.
        """
        payload = msgspec.to_builtins(job) if isinstance(job, JobResponse) else job
        return self.source.submit(payload, tags=tags, keep_id=True)

    def submit_raw(self, body: bytes, *, job_id: int, token: str = "raw-token") -> int:  # noqa: S107
        """Answer the next job request with 201 and these bytes, whatever they are."""
        self.source.raw.append(RawJob(id=job_id, token=token, body=body))
        self.source.notify()
        return job_id

    def cancel(self, job_id: int, *, force: bool = False) -> None:
        """Cancel a job as a user does; `force` also ends a job that is canceling."""
        if not self.source.cancel(job_id):
            self.server.cancel(job_id, force=force)

    def job(self, job_id: int) -> FakeJob:
        """The job as it is now."""
        record = self.server.job(job_id)
        queued = self.source.job(job_id)
        # the body of a request that was cut off is not whole
        puts = self.requests_to("PUT", rf"/jobs/{job_id}$")
        updates = [seen for seen in puts if seen.body and (seen.fault is None or seen.fault.kind != "cut-request")]
        states = list(self._states.get(job_id, ()))
        state = record.state.value if record else "pending"
        if queued and queued.state in ("pending", "canceled"):
            state = queued.state
        return FakeJob(
            id=job_id,
            state=state,
            states=states,
            trace=self.server.trace(job_id),
            updates=[seen.json for seen in updates],
            verdicts=sum(1 for name in states if name in _FINAL),
            verdict=record.verdict if record else None,
            artifacts=self._artifacts(job_id),
            trace_matches=record.trace_matches if record else None,
            token=record.token if record else "",
            runner_id=record.runner_id if record else 0,
            system_id=record.system_id if record else "",
        )

    def _artifacts(self, job_id: int) -> dict[str, str]:
        record = self.server.job(job_id)
        paths = {kind: self.server.artifact_path(job_id, kind) for kind in (record.artifacts if record else ())}
        return {kind: path for kind, path in paths.items() if path}

    # --- waiting ----------------------------------------------------------------------------------------------

    def wait_for(self, job_id: int, state: str | Iterable[str], timeout: float = 30.0) -> FakeJob:
        """Wait until the job is in (one of) `state`.

        Raises:
            TimeoutError: it was not in time; the message shows the job's state and the end of its trace.
        """
        wanted = {state} if isinstance(state, str) else set(state)
        if not self._wait(lambda: self._state(job_id) in wanted, timeout):
            job = self.job(job_id)
            tail = job.trace[-2000:].decode("utf-8", "replace")
            raise TimeoutError(
                f"job {job_id} is {job.state}, not {' or '.join(sorted(wanted))}; its trace ends:\n{tail}"
            )
        return self.job(job_id)

    def wait_for_trace(self, job_id: int, text: bytes, timeout: float = 30.0) -> FakeJob:
        """Wait until `text` is in the stored trace."""
        if not self._wait(lambda: text in self.server.trace(job_id), timeout):
            raise TimeoutError(f"{text!r} is not in the trace of job {job_id}: {self.server.trace(job_id)[-2000:]!r}")
        return self.job(job_id)

    def wait_for_requests(self, method: str, path: str, count: int = 1, timeout: float = 30.0) -> list[SeenRequest]:
        """Wait until `count` requests of this kind have come (not: have been answered)."""
        if not self._wait(lambda: len(self.requests_to(method, path)) >= count, timeout):
            raise TimeoutError(f"{len(self.requests_to(method, path))} of {count} requests {method} {path}")
        return self.requests_to(method, path)

    def _state(self, job_id: int) -> str:
        states = self._states.get(job_id)
        return states[-1] if states else self.job(job_id).state

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._faults.changed:
                # a change between the look and the wait is caught by the next round
                self._faults.changed.wait(min(left, 0.05))
        return True

    # --- faults and requests ----------------------------------------------------------------------------------

    @property
    def requests(self) -> list[SeenRequest]:
        """All requests so far, in the order of their arrival."""
        return list(self._faults.requests)

    def requests_to(self, method: str, path: str) -> list[SeenRequest]:
        """Requests whose path matches the regular expression `path`; `method` may be ``*``."""
        pattern = re.compile(path)
        return [seen for seen in self._faults.requests if method in ("*", seen.method) and pattern.search(seen.path)]

    def inject(self, method: str, path: str, fault: Fault, *, times: int | None = 1, skip: int = 0) -> Injection:
        """Let `fault` strike requests of `method` (or ``*``) whose path matches the regular expression `path`.

        The first `skip` of them pass, the next `times` are hit (None: all).
        """
        return self._faults.inject(Injection(method=method, path=re.compile(path), fault=fault, times=times, skip=skip))

    def clear_faults(self) -> None:
        """Take all faults away."""
        self._faults.clear()

    # --- observer ---------------------------------------------------------------------------------------------

    def job_changed(self, job_id: int, state: str, verdict: Verdict | None) -> None:
        """Called by the server."""
        with self._faults.changed:
            self._states.setdefault(job_id, []).append(state)
            self._faults.changed.notify_all()

    def trace_appended(self, job_id: int, start: int, content: bytes) -> None:
        """Called by the server."""
        with self._faults.changed:
            self._faults.changed.notify_all()

    def artifact_stored(self, job_id: int, artifact: StoredArtifact, path: str) -> None:
        """Called by the server."""
        with self._faults.changed:
            self._faults.changed.notify_all()
