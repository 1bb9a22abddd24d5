"""What a manager does before its first job: providers clean up behind an earlier process that was killed."""

from __future__ import annotations

from collections.abc import Iterable

from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import ExecutorProvider, RecoveringProvider
from pyrunner.manager.entry import Entry


def recover(entries: Iterable[Entry], system_id: str, home: str) -> None:
    """Let every provider that can do it look after what its runners have left; it does so in the background."""
    found: dict[int, tuple[ExecutorProvider, list[RunnerConfig]]] = {}
    for entry in entries:
        if entry.provider is not None:
            found.setdefault(id(entry.provider), (entry.provider, []))[1].append(entry.config)
    for provider, configs in found.values():
        if isinstance(provider, RecoveringProvider):
            provider.recover(configs, system_id, home)
