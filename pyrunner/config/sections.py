"""Which tables an executor has, and what a new entry of it starts with (facts/config-toml.md 4, "Saved form")."""

from __future__ import annotations

from pyrunner.config.keys import field_of
from pyrunner.config.model import RunnerConfig

_DOCKER = ("docker", "docker-windows", "docker+machine", "docker-autoscaler")
#: executor → its tables, written even when no flag of them was given
_REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_DOCKER, ("docker",)),
    "docker+machine": ("docker", "machine"),
    "kubernetes": ("kubernetes",),
    "ssh": ("ssh",),
    "parallels": ("ssh", "parallels"),
    "virtualbox": ("ssh", "virtualbox"),
    "custom": ("custom",),
}
#: executor → tables that it reads if they are there (they come from a template)
_ALLOWED: dict[str, tuple[str, ...]] = {
    "docker-autoscaler": ("autoscaler",),
    "instance": ("autoscaler", "instance"),
}
#: Tables that belong to executors; all others belong to every entry.
EXECUTOR_TABLES = (
    "instance",
    "ssh",
    "docker",
    "parallels",
    "virtualbox",
    "machine",
    "kubernetes",
    "custom",
    "autoscaler",
)


def required_tables(executor: str) -> tuple[str, ...]:
    """The tables without which an entry of this executor cannot run a job."""
    fleet = ("autoscaler",) if executor in ("instance", "docker-autoscaler") else ()
    return (*_REQUIRED.get(executor, ()), *fleet)


def tables_of(executor: str) -> tuple[str, ...]:
    """The tables that this executor reads."""
    return tuple(dict.fromkeys((*_REQUIRED.get(executor, ()), *_ALLOWED.get(executor, ()))))


def fit_to_executor(runner: RunnerConfig) -> None:
    """Prepare a new entry for saving: tables of other executors go, those of its own come, docker gets a cache volume.

    Metrics referees are never kept by `register`.
    """
    keep = tables_of(runner.executor)
    for name in EXECUTOR_TABLES:
        if name not in keep:
            setattr(runner, name, None)
    for name in _REQUIRED.get(runner.executor, ()):
        table = field_of(RunnerConfig, name).table
        if getattr(runner, name) is None and table is not None:
            setattr(runner, name, table())
    runner.referees = None
    if runner.docker is not None and not runner.docker.disable_cache:
        _add_cache_volume(runner.docker.volumes, "c:\\cache" if runner.executor == "docker-windows" else "/cache")
    if runner.executor == "docker-windows" and not runner.shell:
        runner.shell = "pwsh"


def _add_cache_volume(volumes: list[str], cache: str) -> None:
    if not any(volume == cache or volume.endswith(f":{cache}") for volume in volumes):
        volumes.append(cache)
