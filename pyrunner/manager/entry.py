"""A ``[[runners]]`` entry with everything that polling it needs, made once per load of the config."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.info import runner_info
from pyrunner.api.wire import Info, JobRequest
from pyrunner.base.errors import PyrunnerError
from pyrunner.config import feature_flags
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.executors.protocol import ExecutorProvider
from pyrunner.store.letter import Sender

log = logging.getLogger(__name__)

FindProvider = Callable[[str], ExecutorProvider]


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One runner of this process."""

    config: RunnerConfig
    client: RunnerClient
    #: None: the executor is not known, and the runner counts as unhealthy.
    provider: ExecutorProvider | None
    info: Info
    request: JobRequest
    #: ``FF_USE_ADAPTIVE_REQUEST_CONCURRENCY``
    adaptive: bool
    #: ``FF_DISABLE_AUTOMATIC_TOKEN_ROTATION``
    keep_token: bool
    short_token: str

    @property
    def unique_id(self) -> str:
        """How logs and health name the runner: URL and short token."""
        return f"{self.config.url}{self.short_token}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Identity across reloads: entries with equal places stand once in the queue."""
        return self.config.url, self.config.token, self.config.name

    @property
    def sender(self) -> Sender:
        """What must be kept to reach the server for this runner's jobs."""
        config = self.config
        return Sender(
            url=config.url,
            short_token=self.short_token,
            name=config.name,
            tls_ca_file=config.tls_ca_file,
            tls_cert_file=config.tls_cert_file,
            tls_key_file=config.tls_key_file,
        )

    def is_of(self, sender: Sender) -> bool:
        """Whether this is the runner that `sender` speaks of, perhaps with other TLS files."""
        return (self.config.url, self.short_token) == (sender.url, sender.short_token)

    @property
    def log_fields(self) -> dict[str, object]:
        """Fields of log lines about this runner."""
        return {"runner": self.short_token, "runner_name": self.config.name}


class Clients:
    """API clients by endpoint; they and their long-polling state survive reloads (facts/runner-api.md 1.1)."""

    def __init__(self) -> None:
        self._clients: dict[Endpoint, tuple[RunnerClient, float]] = {}

    def get(self, config: RunnerConfig, max_age: float) -> RunnerClient:
        """The client of a runner whose kept connections live for `max_age` seconds."""
        endpoint = Endpoint.of(config)
        client, age = self._clients.get(endpoint, (None, max_age))
        if client is None or age != max_age:
            client = RunnerClient(endpoint, connection_max_age=max(0.0, max_age))
            self._clients[endpoint] = (client, max_age)
        return client

    def retain(self, configs: Iterable[RunnerConfig]) -> None:
        """Forget the clients of runners that are gone; requests of their last jobs are not touched."""
        kept = {Endpoint.of(config) for config in configs}
        for endpoint in [endpoint for endpoint in self._clients if endpoint not in kept]:
            self._clients.pop(endpoint)[0].close()

    def close(self) -> None:
        """Close what is idle."""
        for client, _ in self._clients.values():
            client.close()


def make_entries(config: Config, clients: Clients, system_id: str, find: FindProvider) -> list[Entry]:
    """The entries of a config; runners without a token are left out, with a warning."""
    entries = []
    for runner in config.runners:
        if not runner.token.strip():
            log.warning(
                "Runner has an empty token and is skipped",
                extra={"action": "empty_token", "runner_name": runner.name, "url": runner.url},
            )
            continue
        entries.append(_make_entry(config, runner, clients, system_id, find))
    clients.retain(entry.config for entry in entries)
    return entries


def _make_entry(config: Config, runner: RunnerConfig, clients: Clients, system_id: str, find: FindProvider) -> Entry:
    provider = _provider(runner, find)
    flags, _ = feature_flags.resolve(runner.feature_flags, lambda name: None)
    info = runner_info(runner, provider, config.labels_of(runner))
    return Entry(
        config=runner,
        client=clients.get(runner, config.effective_connection_max_age),
        provider=provider,
        info=info,
        request=JobRequest(info=info, token=runner.token, system_id=system_id),
        adaptive=flags["FF_USE_ADAPTIVE_REQUEST_CONCURRENCY"],
        keep_token=flags["FF_DISABLE_AUTOMATIC_TOKEN_ROTATION"],
        short_token=runner.short_token,
    )


def _provider(runner: RunnerConfig, find: FindProvider) -> ExecutorProvider | None:
    try:
        return find(runner.executor)
    except PyrunnerError as error:
        log.error(  # noqa: TRY400 - a line for the operator, not a traceback
            f'Executor "{runner.executor}" is not known; marking Runner as unhealthy',
            extra={"action": "unknown_executor", "runner": runner.short_token, "error": str(error)},
        )
        return None
