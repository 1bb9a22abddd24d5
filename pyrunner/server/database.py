"""The coordinator's SQLite file: queue, job records, runners and settings.

Every statement is its own transaction, written ahead (WAL): what has been answered survives the death of the process.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pyrunner.base.errors import PyrunnerError
from pyrunner.server.jobs import JobRecord
from pyrunner.server.runners import RunnerRecord

_VERSION = 1
_SCHEMA = """
CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tags TEXT NOT NULL,
    payload BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'taken', 'done', 'canceled')),
    created_at REAL NOT NULL
);
CREATE INDEX queue_pending ON queue (id) WHERE state = 'pending';
CREATE INDEX queue_pipeline ON queue (pipeline_id, id);
CREATE TABLE pipelines (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    definition BLOB NOT NULL,
    state TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT NOT NULL, record BLOB NOT NULL);
CREATE TABLE runners (id INTEGER PRIMARY KEY, record BLOB NOT NULL);
"""
#: What a process that died between two writes about one job left behind: the job record is the truth.
_RECONCILE = """
UPDATE queue SET state = 'done' WHERE state = 'taken'
    AND id IN (SELECT id FROM jobs WHERE state IN ('success', 'failed', 'canceled'));
UPDATE queue SET state = 'pending' WHERE state = 'taken'
    AND id NOT IN (SELECT id FROM jobs WHERE state IN ('reserved', 'running', 'canceling'));
"""

_decode_job = msgspec.json.Decoder(JobRecord).decode
_decode_runner = msgspec.json.Decoder(RunnerRecord).decode
_encode = msgspec.json.encode


class Database:
    """One connection for all threads; implements `Ledger`. ``:memory:`` lives as long as the object."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._lock = threading.Lock()
        try:
            if os.fspath(path) != ":memory:":
                # SQLite gives its side files the mode of the main file
                Path(path).touch(mode=0o600)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._prepare(path)
        except sqlite3.Error as error:
            raise PyrunnerError(f"{os.fspath(path)}: {error}") from error

    def _prepare(self, path: str | os.PathLike[str]) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        elif version != _VERSION:
            raise PyrunnerError(
                f"{os.fspath(path)}: written by another version (format {version}, expected {_VERSION})",
                hint="use the version that wrote it, or another --data-dir",
            )
        self._connection.executescript(f"BEGIN; {_RECONCILE} COMMIT;")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """Run a statement; the id of the last inserted row."""
        with self._lock:
            return self._connection.execute(statement, values).lastrowid or 0

    def jobs(self) -> list[JobRecord]:
        """All saved job records."""
        return [_decode_job(body) for (body,) in self.query("SELECT record FROM jobs ORDER BY id")]

    def runners(self) -> list[RunnerRecord]:
        """All saved runners."""
        return [_decode_runner(body) for (body,) in self.query("SELECT record FROM runners ORDER BY id")]

    def save_job(self, record: JobRecord) -> None:
        """Write a job record."""
        self.change("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", (record.id, record.state.value, _encode(record)))

    def save_runner(self, record: RunnerRecord) -> None:
        """Write a runner."""
        self.change("INSERT OR REPLACE INTO runners VALUES (?, ?)", (record.id, _encode(record)))

    def delete_runner(self, runner_id: int) -> None:
        """Forget a runner."""
        self.change("DELETE FROM runners WHERE id = ?", (runner_id,))
