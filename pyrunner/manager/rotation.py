"""Replacing runner tokens before they expire (facts/runner-api.md 3.2, "Automatic rotation")."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from pyrunner.config.edit import edit_config
from pyrunner.manager.entry import Entry

log = logging.getLogger(__name__)

#: Part of a token's life after which it is replaced.
_PART = 0.75


def rotation_time(obtained: datetime | None, expires: datetime | None) -> float | None:
    """Epoch seconds at which a token is to be replaced; None = never. Zero times count as absent."""
    if obtained is None or expires is None or expires.year <= 1:
        return None
    begin = _utc(obtained).timestamp() if obtained.year > 1 else 0.0
    return begin + _PART * (_utc(expires).timestamp() - begin)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class Rotation:
    """Knows which tokens are due; each token is tried once per load of the config."""

    def __init__(self) -> None:
        self._plan: list[tuple[float, Entry]] = []

    def reload(self, entries: list[Entry]) -> None:
        """Plan for these runners."""
        self._plan = []
        for entry in entries:
            moment = rotation_time(entry.config.token_obtained_at, entry.config.token_expires_at)
            if moment is not None:
                self._plan.append((moment, entry))
        self._plan.sort(key=lambda item: item[0])

    def due(self, now: float) -> list[Entry]:
        """Runners whose token is to be replaced at epoch second `now`; each is given once."""
        count = sum(1 for moment, _ in self._plan if moment <= now)
        due, self._plan = self._plan[:count], self._plan[count:]
        return [entry for _, entry in due]

    def pause(self, now: float) -> float | None:
        """Seconds until the next token is due; None = none is."""
        return max(0.0, self._plan[0][0] - now) if self._plan else None


def rotate(entry: Entry, path: str) -> bool:
    """Replace the token of a runner, at the server and in the config file; whether that was done."""
    if entry.keep_token:
        log.warning(
            "Automatic token rotation is disabled, the runner token is about to expire",
            extra={**entry.log_fields, "action": "rotation_disabled"},
        )
        return False
    answer = entry.client.reset_token()
    if answer.credentials is None:
        return False
    expires = _parse(answer.credentials.token_expires_at)
    with edit_config(path) as editor:
        for index, runner in enumerate(editor.config.runners):
            if runner.token == entry.config.token:
                editor.set_runner(index, "token", answer.credentials.token)
                editor.set_runner(index, "token_obtained_at", datetime.now(UTC).replace(microsecond=0))
                editor.set_runner(index, "token_expires_at", expires)
    return True


def _parse(text: str | None) -> datetime:
    if text:
        try:
            return _utc(datetime.fromisoformat(text)).astimezone(UTC).replace(microsecond=0)
        except ValueError:
            log.warning("The server sent an expiry time that cannot be read", extra={"value": text[:40]})
    return datetime(1, 1, 1, tzinfo=UTC)
