"""Runners of a config file as the server knows them: their clients, their tokens, and which of them is meant."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.info import runner_info
from pyrunner.api.tokens import is_authentication_token
from pyrunner.api.wire import Info, RunnerCredentials
from pyrunner.base.errors import ConfigError
from pyrunner.config.edit import ConfigEditor, edit_config
from pyrunner.config.model import Config, RunnerConfig

log = logging.getLogger(__name__)


def client_of(runner: RunnerConfig) -> RunnerClient:
    """A client for one runner."""
    return RunnerClient(Endpoint.of(runner))


def info_of(config: Config, runner: RunnerConfig) -> Info:
    """The full ``info`` object of a runner; an executor that is not here has no features."""
    from pyrunner.executors.loader import executor_provider

    try:
        provider = executor_provider(runner.executor)
    except ConfigError:
        provider = None
    return runner_info(runner, provider, config.labels_of(runner))


def unregister(runner: RunnerConfig, system_id: Callable[[], str]) -> bool:
    """Remove a runner (or, of a created runner, this manager) from the server; whether that was done."""
    client = client_of(runner)
    if is_authentication_token(runner.token):
        return client.unregister_manager(system_id()).done
    return client.unregister().done


def take_credentials(runner: RunnerConfig, credentials: RunnerCredentials) -> None:
    """Put what the server gave into an entry; an id or token that it did not repeat stays."""
    runner.id = credentials.id or runner.id
    runner.token = credentials.token or runner.token
    runner.token_obtained_at = now()
    runner.token_expires_at = expiry(credentials)


def now() -> datetime:
    """Now in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def expiry(credentials: RunnerCredentials) -> datetime | None:
    """When a token expires; None = never (or the server's time cannot be read)."""
    text = credentials.token_expires_at
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        log.warning("Ignoring an expiry time that cannot be read", extra={"token_expires_at": text[:60]})
        return None
    return moment.replace(microsecond=0)


def identity(runner: RunnerConfig) -> tuple[str, str]:
    """What makes two entries the same runner."""
    return runner.api_url, runner.token


def change_entries(
    path: str, identities: set[tuple[str, str]], change: Callable[[ConfigEditor, int, RunnerConfig], None]
) -> int:
    """Apply `change` to every entry of the file that is one of `identities`, last first; how many there were.

    The file is read anew under its lock: it may have changed while the server was asked.
    """
    if not os.path.exists(path):
        # opening a missing file for editing would create it
        return 0
    with edit_config(path) as editor:
        found = [
            (index, runner) for index, runner in enumerate(editor.config.runners) if identity(runner) in identities
        ]
        for index, runner in reversed(found):
            change(editor, index, runner)
    return len(found)


def remove_entries(path: str, identities: set[tuple[str, str]]) -> None:
    """Remove every entry of `identities` from the file and say so; nothing is written when there is none."""
    if not identities:
        return
    if change_entries(path, identities, lambda editor, index, _runner: editor.remove_runner(index)):
        log.info("Updated %s", path)
