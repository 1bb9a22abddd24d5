"""Executors by name."""

from __future__ import annotations

import importlib
import threading

from pyrunner.base.errors import ConfigError
from pyrunner.executors.protocol import ExecutorProvider

#: Third parties add executors in this entry point group: ``name = "module:provider"``.
GROUP = "pyrunner.executors"
#: Our own, found without reading the metadata of every installed package (20 ms).
BUILT_IN = {"docker": "pyrunner.executors.docker:provider", "shell": "pyrunner.executors.shell:provider"}
#: Known to GitLab Runner and not to this version.
PLANNED = (
    "custom",
    "docker+machine",
    "docker-autoscaler",
    "docker-windows",
    "instance",
    "kubernetes",
    "parallels",
    "ssh",
    "virtualbox",
)
#: Gone from GitLab Runner since 17.0, with what to use.
REMOVED = {"docker-ssh": "docker", "docker-ssh+machine": "docker+machine"}

_lock = threading.Lock()
_providers: dict[str, ExecutorProvider] = {}


def executor_names() -> list[str]:
    """Names of all executors that can be used here."""
    return sorted({*BUILT_IN, *_third_party()})


def executor_provider(name: str) -> ExecutorProvider:
    """The provider of the executor `name`; always the same one in a process.

    Raises:
        ConfigError: there is no such executor, or it cannot be used.
    """
    with _lock:
        if name not in _providers:
            _providers[name] = _load(name)
        return _providers[name]


def _load(name: str) -> ExecutorProvider:
    target = BUILT_IN.get(name) or _third_party().get(name)
    if target is None:
        raise ConfigError(_unknown(name))
    module, _, attribute = target.partition(":")
    try:
        provider: ExecutorProvider = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f'executor "{name}" cannot be loaded from {target}: {error}') from error
    if not provider.can_create():
        raise ConfigError(f'executor "{name}" cannot be used on this machine')
    return provider


def _third_party() -> dict[str, str]:
    # Imported here: it is slow, and a runner with our own executors never needs it.
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}


def _unknown(name: str) -> str:
    known = ", ".join(executor_names())
    if name in REMOVED:
        return f'executor "{name}" was removed in GitLab Runner 17.0, use "{REMOVED[name]}"; available here: {known}'
    if name in PLANNED:
        return f'executor "{name}" is not available in this version of pyrunner; available here: {known}'
    if not name:
        return f"no executor is configured, expected one of: {known}"
    return f'unknown executor "{name}", expected one of: {known}'
