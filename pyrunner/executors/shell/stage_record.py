"""What a later process must know to go on with a running stage."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import asdict, dataclass

from pyrunner.base.errors import SystemFailure

_RECORD = "stage.json"
_LOG = "output.log"
_EXIT = "exit-code"
#: A stage's shell under a shell that writes down how it ended. The trap keeps that outer shell alive through a SIGTERM
#: for the group; unlike ignoring the signal it is not inherited.
KEEP_EXIT_CODE = """trap : TERM INT HUP; "$@"; code=$?; printf '%s\\n' "$code" >"$0"; exit "$code\""""


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """One running stage, as written before its output is read."""

    stage: str
    #: The process group's leader, and when it started (clock ticks since boot): a pid alone may be another's by now.
    pid: int
    started: int
    keeper_pid: int
    #: Where in the log the stage begins.
    offset: int
    marker: str


class StageDirectory:
    """A job's directory with its log, the record of the running stage and its exit code. Nothing in it is secret
    but the log, so it is for its owner only.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.log = os.path.join(path, _LOG)
        self.exit_file = os.path.join(path, _EXIT)

    def make(self) -> None:
        """Create it.

        Raises:
            SystemFailure: it cannot be written.
        """
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise SystemFailure(
                f'state directory "{self.path}" cannot be created: {error.strerror}', reason="runner_system_failure"
            ) from error

    def begin(self) -> None:
        """Forget the exit code of the stage before."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.exit_file)

    def write(self, record: StageRecord) -> None:
        """Store `record` so that it is there whole or not at all, even after a crash of the machine."""
        temporary = os.path.join(self.path, f"{_RECORD}.tmp")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(self.path, _RECORD))

    def read(self) -> StageRecord | None:
        """The record, or None when no stage has begun here."""
        try:
            with open(os.path.join(self.path, _RECORD)) as file:
                return StageRecord(**json.load(file))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise SystemFailure(f'broken stage record in "{self.path}": {error}') from error

    def exit_code(self) -> int | None:
        """How the stage ended, or None when its shell could not tell any more."""
        try:
            with open(self.exit_file) as file:
                text = file.read()
        except FileNotFoundError:
            return None
        return int(text) if text.endswith("\n") and text.strip().isdigit() else None


def new_marker() -> bytes:
    """A text that no script prints by chance, and none can guess."""
    return b"\x00stage-end:" + secrets.token_hex(16).encode() + b"\x00"


def start_time(pid: int) -> int | None:
    """When `pid` started, in clock ticks since boot; None when it is gone or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
