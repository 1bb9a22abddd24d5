"""The embedded server by itself: durable, with runners, a queue and an admin token in one directory.

::

    <data dir>/coordinator.sqlite   runners, queue, job records
               jobs/<id>/           traces and artifacts
               git/                 bare repositories that jobs may clone
               admin_token          opens the endpoints of the coordinator's commands
               registration_token   registers runners
               address              URL while it serves; also the lock against a second one
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from pyrunner.base.errors import PyrunnerError
from pyrunner.server.app import EmbeddedServer, ServerSettings
from pyrunner.server.database import Database
from pyrunner.server.pipeline_queue import PipelineQueue

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from pyrunner.server.desk import Desk

ADMIN_TOKEN_FILE = "admin_token"  # noqa: S105 - a file name
REGISTRATION_TOKEN_FILE = "registration_token"  # noqa: S105 - a file name
ADDRESS_FILE = "address"


class Coordinator:
    """Start it with `start`; what it has answered survives its death.

    Raises:
        PyrunnerError: the directory is in use by another coordinator, or its database cannot be used.
        OSError: the directory cannot be written.
    """

    def __init__(self, data_dir: str | os.PathLike[str], *, host: str, port: int) -> None:
        self._data_dir = Path(data_dir)
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = self._locked()
        git_root = self._data_dir / "git"
        git_root.mkdir(mode=0o700, exist_ok=True)
        self._database = Database(self._data_dir / "coordinator.sqlite")
        self.queue = PipelineQueue(self._database)
        self.registration_token = kept_token(self._data_dir / REGISTRATION_TOKEN_FILE)
        self.admin_token = kept_token(self._data_dir / ADMIN_TOKEN_FILE)
        self.server = EmbeddedServer(
            self.queue,
            host=host,
            port=port,
            data_dir=self._data_dir,
            git_root=git_root,
            ledger=self._database,
            settings=ServerSettings(
                registration_token=self.registration_token,
                admin_token=self.admin_token,
                extra_routes=self._routes,
            ),
        )

    def start(self) -> str:
        """Serve; returns the URL."""
        try:
            url = self.server.start()
        except OSError as error:
            raise PyrunnerError(
                f"cannot listen: {error.strerror or error}", hint="choose another --host or --port"
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{url}\n".encode(), 0)
        return url

    def stop(self) -> None:
        """Stop serving; jobs that runners have stay theirs."""
        self.server.stop()
        self._database.close()
        os.ftruncate(self._lock, 0)
        os.close(self._lock)

    def _routes(self, desk: Desk) -> list[BaseRoute]:
        from pyrunner.server.routes.admin import AdminEndpoints

        return [*AdminEndpoints(desk, self.queue, admin_token=self.admin_token).routes()]

    def _locked(self) -> int:
        path = self._data_dir / ADDRESS_FILE
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            url = os.pread(descriptor, 200, 0).decode().strip()
            os.close(descriptor)
            raise PyrunnerError(
                f"{self._data_dir}: another coordinator uses this directory ({url or 'starting'})",
                hint="stop it, or give another --data-dir",
            ) from None
        return descriptor


def kept_token(path: Path) -> str:
    """The token in this file, made at the first call; only its owner can read it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        token = secrets.token_hex(20)
        file.write(token + "\n")
    return token
