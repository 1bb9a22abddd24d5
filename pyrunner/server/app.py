"""`EmbeddedServer`: the server side of the runner API, inside this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyrunner.server.desk import Desk
from pyrunner.server.files import JobFiles
from pyrunner.server.jobs import JobRecord
from pyrunner.server.ledger import Ledger, NoLedger
from pyrunner.server.listener import Application, Listener
from pyrunner.server.observer import Observer
from pyrunner.server.runners import RunnerRecord
from pyrunner.server.source import JobSource

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How the server behaves; the defaults are GitLab's.

    `long_poll`: seconds that a job request is held while there is no job; 0 answers at once.
    `update_interval`: seconds that runners are asked to wait between trace patches.
    `artifact_limit`: largest artifact in bytes; 0 is no limit.
    `registration_token`, `admin_token`: empty ones open nothing.
    `wrap`: put around the whole application, e.g. to inject faults.
    `extra_routes`: further endpoints, given the desk.
    """

    long_poll: float = 50.0
    update_interval: int = 3
    artifact_limit: int = 0
    registration_token: str = ""
    admin_token: str = ""
    wrap: Callable[[Application], Application] | None = None
    extra_routes: Callable[[Desk], Iterable[BaseRoute]] | None = None


class EmbeddedServer:
    """Serves the runner API, artifacts and git over HTTP from one thread of this process.

    Jobs come from `source`; traces and artifacts lie below `data_dir`. With `git_root`, every bare repository
    ``<git_root>/<project path>.git`` is served to jobs at ``<url>/<project path>.git``, with the user
    ``gitlab-ci-token`` and the token of a job that is on its way as password. `ledger` makes jobs and runners outlive
    the process.

    Dependencies of a job (``JobResponse.dependencies``) need only an id and a name: token, file name and size are
    filled in from what the earlier job uploaded. All methods are safe from any thread.
    """

    def __init__(
        self,
        source: JobSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data_dir: str | os.PathLike[str],
        git_root: str | os.PathLike[str] | None = None,
        observer: Observer | None = None,
        ledger: Ledger | None = None,
        settings: ServerSettings | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._git_root = git_root
        self._settings = settings or ServerSettings()
        self._files = JobFiles(data_dir)
        self._desk = Desk(source, self._files, ledger or NoLedger(), observer)
        self._listener: Listener | None = None
        source.subscribe(self._jobs_changed)

    @property
    def url(self) -> str:
        """``http://host:port``, known from `start` on."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 - not a bind
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    def start(self) -> str:
        """Listen and serve; returns the URL, which answers as soon as the thread has loaded what it needs.

        After a `stop` it goes on where it was, at the same address.

        Raises:
            OSError: the address cannot be listened on.
        """
        self._listener = Listener(self._host, self._port, self._application, self._desk.close)
        self._port = self._listener.port
        self._listener.start()
        return self.url

    def stop(self) -> None:
        """Answer held requests, close all connections and end the thread; may be called again."""
        if self._listener is not None:
            self._listener.stop()

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def add_runner(
        self, description: str = "", tags: Iterable[str] = (), run_untagged: bool = True, **settings: Any
    ) -> str:
        """Make a runner and return its ``glrt-`` token; `settings` are further fields of `RunnerRecord`."""

        def add() -> str:
            record = RunnerRecord(
                id=0,
                token="",
                description=description,
                tags=list(tags),
                run_untagged=run_untagged,
                **settings,
            )
            self._desk.ledger.save_runner(self._desk.runners.create(record))
            return record.token

        return self._call(add)

    def runners(self) -> list[RunnerRecord]:
        """All runners."""
        return self._call(self._desk.runners.records)

    def job(self, job_id: int) -> JobRecord | None:
        """What is known about a job that a runner has taken, or None."""
        return self._call(lambda: self._desk.book.find(job_id))

    def trace(self, job_id: int) -> bytes:
        """The stored trace of a job."""
        return self._files.read_trace(job_id, 0)

    def artifact_path(self, job_id: int, kind: str = "archive") -> str | None:
        """Path of an uploaded artifact file of this type, or None."""
        record = self.job(job_id)
        artifact = record.artifacts.get(kind) if record else None
        return str(self._files.directory(job_id) / artifact.path) if artifact else None

    def cancel(self, job_id: int, *, force: bool = False) -> bool:
        """Cancel a job that a runner has: gracefully where the runner can, at once with `force`; whether it had to be.

        The source hears of it through `JobSource.finished`. Jobs that no runner has are the source's own matter.
        """
        return self._call(lambda: self._desk.cancel(job_id, force=force))

    def _call(self, work: Callable[[], T]) -> T:
        if self._listener is None or self._listener.stopped:
            return work()
        return self._listener.call(work)

    def _jobs_changed(self) -> None:
        if self._listener is not None:
            self._listener.post(self._desk.jobs_changed)

    def _application(self) -> Application:
        from pyrunner.server.routes.application import application

        self._desk.open()
        app = application(self._desk, self._settings, self._git_root)
        return self._settings.wrap(app) if self._settings.wrap else app
