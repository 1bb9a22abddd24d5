"""The runners that the server knows: tokens, settings, and the managers that use them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyrunner.api.wire import Info
from pyrunner.server.source import RunnerIdentity
from pyrunner.server.tokens import RUNNER_PREFIX, new_legacy_runner_token, new_runner_token


@dataclass(kw_only=True)
class RunnerRecord:
    """One runner. `managers` maps system ids to when they were last seen (seconds since the epoch)."""

    id: int
    token: str
    description: str = ""
    tags: list[str] = field(default_factory=list)
    run_untagged: bool = True
    locked: bool = False
    paused: bool = False
    access_level: str = ""
    maximum_timeout: int = 0
    maintenance_note: str = ""
    managers: dict[str, float] = field(default_factory=dict)

    @property
    def created_by_registration(self) -> bool:
        """Whether it came by a registration token and so has a token without prefix."""
        return not self.token.startswith(RUNNER_PREFIX)

    def identity(self, system_id: str, info: Info) -> RunnerIdentity:
        """How a job source sees a request of this runner."""
        return RunnerIdentity(
            id=self.id,
            description=self.description,
            system_id=system_id,
            tags=frozenset(self.tags),
            run_untagged=self.run_untagged or not self.tags,
            info=info,
        )


class RunnerBook:
    """All runners, by id and by token."""

    def __init__(self, records: Iterable[RunnerRecord] = ()) -> None:
        self._by_id = {record.id: record for record in records}
        self._by_token = {record.token: record for record in self._by_id.values()}
        self._last_id = max(self._by_id, default=0)

    def create(self, record: RunnerRecord, *, legacy: bool = False) -> RunnerRecord:
        """Give `record` its id and token and keep it."""
        self._last_id += 1
        record.id = self._last_id
        record.token = new_legacy_runner_token() if legacy else new_runner_token()
        self._by_id[record.id] = self._by_token[record.token] = record
        return record

    def find(self, runner_id: int) -> RunnerRecord | None:
        """The runner with this id."""
        return self._by_id.get(runner_id)

    def by_token(self, token: str) -> RunnerRecord | None:
        """The runner with this token."""
        return self._by_token.get(token)

    def records(self) -> list[RunnerRecord]:
        """All runners, oldest first."""
        return list(self._by_id.values())

    def delete(self, runner_id: int) -> RunnerRecord | None:
        """Forget a runner; its token is dead."""
        record = self._by_id.pop(runner_id, None)
        if record is not None:
            del self._by_token[record.token]
        return record

    def renew_token(self, record: RunnerRecord) -> str:
        """Give a runner a new token of the same kind; the old one is dead."""
        del self._by_token[record.token]
        record.token = new_legacy_runner_token() if record.created_by_registration else new_runner_token()
        self._by_token[record.token] = record
        return record.token

    def seen(self, record: RunnerRecord, system_id: str) -> bool:
        """Note a sign of life of a manager; whether the manager is new."""
        new = system_id not in record.managers
        record.managers[system_id] = time.time()
        return new
