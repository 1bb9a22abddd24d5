"""Rules between keys, which types cannot say: for `lint` (facts/config-toml.md 2 and 3, and the meanings of keys)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyrunner.config.decode import Path
from pyrunner.config.feature_flags import FEATURE_FLAGS, GONE
from pyrunner.config.keys import Field, fields_of, folded_names_of
from pyrunner.config.model import EXECUTORS, Config, RunnerConfig
from pyrunner.config.sections import EXECUTOR_TABLES, required_tables, tables_of
from pyrunner.config.table import Table

Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to say about a place."""

    severity: Severity
    path: Path
    message: str
    fix: str = ""


def advise(config: Config, values: Mapping[str, Any]) -> Iterator[Advice]:
    """All advice about a config; `values` is the TOML it was read from (`$VAR` not expanded)."""
    yield from _process(config)
    yield from long_polling_issues(config)
    yield from _choices(config, ())
    yield from _nanoseconds(Config, values, ())
    for index, runner in enumerate(config.runners):
        path: Path = ("runners", index)
        yield from _credentials(runner, path)
        yield from _executor(runner, path)
        yield from _settings(runner, path)
    yield from _twins(config)


def long_polling_issues(config: Config) -> Iterator[Advice]:
    """Settings with which GitLab's long polling delays jobs (facts/config-toml.md 3)."""
    if 1 <= config.concurrent < len(config.runners):
        yield Advice(
            severity="warning",
            path=("concurrent",),
            message=f"concurrent = {config.concurrent} is less than the number of runners ({len(config.runners)}): "
            "while one waits in a long poll, others cannot ask for jobs",
            fix=f"concurrent = {len(config.runners)}",
        )
    for index, runner in enumerate(config.runners):
        if runner.request_concurrency != 1:
            continue
        path: Path = ("runners", index, "request_concurrency")
        if runner.limit in (1, 2):
            message = f"limit = {runner.limit} with request_concurrency = 1 delays jobs with long polling"
        else:
            message = "request_concurrency = 1: one job request at a time, which long polling makes slow"
        yield Advice(severity="warning", path=path, message=message, fix="request_concurrency = 2")


def _process(config: Config) -> Iterator[Advice]:
    if config.concurrent < 1:
        yield Advice(
            severity="error", path=("concurrent",), message="concurrent must be at least 1", fix="concurrent = 1"
        )
    if "://" in config.session_server.advertise_address:
        yield Advice(
            severity="error",
            path=("session_server", "advertise_address"),
            message="advertise_address is host:port without a scheme",
        )
    for index, runner in enumerate(config.runners):
        if runner.limit > config.concurrent >= 1:
            yield Advice(
                severity="warning",
                path=("runners", index, "limit"),
                message=f"limit = {runner.limit} is more than concurrent = {config.concurrent}, which wins",
            )


def _credentials(runner: RunnerConfig, path: Path) -> Iterator[Advice]:
    for name in ("url", "token"):
        if not getattr(runner, name):
            yield Advice(severity="error", path=(*path, name), message=f"{name} is missing or empty")
    if runner.url and "$" not in runner.url and not runner.url.startswith(("http://", "https://")):
        yield Advice(severity="error", path=(*path, "url"), message="url must start with http:// or https://")
    if runner.url.rstrip("/").endswith("/ci"):
        yield Advice(
            severity="warning",
            path=(*path, "url"),
            message="a url that ends in /ci is deprecated",
            fix=f'url = "{runner.api_url}"',
        )
    for own, other in (("tls-cert-file", "tls-key-file"), ("tls-key-file", "tls-cert-file")):
        attributes = own.replace("-", "_"), other.replace("-", "_")
        if getattr(runner, attributes[0]) and not getattr(runner, attributes[1]):
            yield Advice(severity="error", path=(*path, own), message=f"{own} needs {other} as well")


def _executor(runner: RunnerConfig, path: Path) -> Iterator[Advice]:
    here = (*path, "executor")
    if not runner.executor:
        yield Advice(severity="error", path=here, message="executor is missing", fix='executor = "shell"')
        return
    if runner.executor not in EXECUTORS:
        yield Advice(
            severity="error",
            path=here,
            message=f'unknown executor "{runner.executor}"',
            fix=_did_you_mean(runner.executor, EXECUTORS) or f"one of: {', '.join(EXECUTORS)}",
        )
        return
    for name in required_tables(runner.executor):
        if getattr(runner, name) is None:
            yield Advice(
                severity="error",
                path=here,
                message=f'executor "{runner.executor}" needs the section [runners.{name}]',
                fix=f"[runners.{name}]",
            )
    for name in EXECUTOR_TABLES:
        if getattr(runner, name) is not None and name not in tables_of(runner.executor):
            yield Advice(
                severity="warning",
                path=(*path, name),
                message=f'[runners.{name}] has no effect with executor "{runner.executor}"',
            )
    yield from _executor_keys(runner, path)


def _executor_keys(runner: RunnerConfig, path: Path) -> Iterator[Advice]:
    used = tables_of(runner.executor)
    if runner.docker is not None and "docker" in used and not runner.docker.image:
        yield Advice(
            severity="warning", path=(*path, "docker"), message="no default image: jobs without `image` will fail"
        )
    if runner.custom is not None and "custom" in used and not runner.custom.run_exec:
        yield Advice(severity="error", path=(*path, "custom"), message="run_exec is missing")
    if runner.ssh is not None and runner.executor == "ssh" and not runner.ssh.host:
        yield Advice(severity="error", path=(*path, "ssh"), message="host is missing")
    machine = runner.machine
    if machine is not None and "machine" in used and "%s" not in machine.machine_name:
        yield Advice(severity="error", path=(*path, "machine", "MachineName"), message="MachineName must contain %s")
    if runner.autoscaler is not None and "autoscaler" in used and runner.autoscaler.capacity_per_instance < 1:
        yield Advice(
            severity="error",
            path=(*path, "autoscaler", "capacity_per_instance"),
            message="capacity_per_instance must be at least 1",
            fix="capacity_per_instance = 1",
        )


def _settings(runner: RunnerConfig, path: Path) -> Iterator[Advice]:
    for name in runner.feature_flags:
        if name in GONE:
            yield _flag_advice(path, name, "no longer exists and has no effect")
        elif name not in FEATURE_FLAGS:
            yield _flag_advice(path, name, "is not a known feature flag", _did_you_mean(name, tuple(FEATURE_FLAGS)))
    for index, item in enumerate(runner.environment):
        if "=" not in item:
            yield Advice(
                severity="warning",
                path=(*path, "environment", index),
                message="an item without = is ignored",
                fix='"KEY=value"',
            )
    if runner.machine is not None:
        for field in fields_of(type(runner.machine)):
            if field.name.startswith("OffPeak") and getattr(runner.machine, field.attribute):
                yield Advice(
                    severity="warning",
                    path=(*path, "machine", field.name),
                    message=f"{field.name} was removed and has no effect",
                    fix="use [[runners.machine.autoscaling]]",
                )


def _flag_advice(path: Path, name: str, message: str, fix: str = "") -> Advice:
    return Advice(severity="warning", path=(*path, "feature_flags", name), message=f"{name} {message}", fix=fix)


def _twins(config: Config) -> Iterator[Advice]:
    seen: dict[tuple[str, str], int] = {}
    for index, runner in enumerate(config.runners):
        same = (runner.api_url, runner.token)
        if runner.token and same in seen:
            yield Advice(
                severity="warning",
                path=("runners", index, "token"),
                message=f"url and token are the same as those of runners[{seen[same]}]",
            )
        seen.setdefault(same, index)


def _choices(table: Table, path: Path) -> Iterator[Advice]:
    """Values that a key does not know; `executor` has a rule of its own."""
    for field in fields_of(type(table)):
        value, here = getattr(table, field.attribute), (*path, field.name)
        if isinstance(value, Table):
            yield from _choices(value, here)
        elif field.kind == "tables":
            for index, item in enumerate(value):
                yield from _choices(item, (*here, index))
        elif field.key.choices and value and field.name != "executor":
            yield from _odd_values(field, value, here)


def _odd_values(field: Field, value: Any, path: Path) -> Iterator[Advice]:
    for item in value if isinstance(value, list) else [value]:
        if item not in field.key.choices:
            policy = f'unsupported {field.name} config: "{item}"' if "pull_polic" in field.name else ""
            yield Advice(
                severity="error",
                path=path,
                message=policy or f'{field.name} does not know "{item}"',
                fix=_did_you_mean(item, field.key.choices) or f"one of: {', '.join(field.key.choices)}",
            )


def _nanoseconds(table: type[Table], values: Mapping[str, Any], path: Path) -> Iterator[Advice]:
    """Durations given as small integers: they mean nanoseconds, and are meant as seconds."""
    known = {field.name: field for field in fields_of(table)}
    for spelled, value in values.items():
        field = known.get(spelled) or known.get(folded_names_of(table).get(spelled.casefold(), ""))
        if field is None:
            continue
        here = (*path, spelled)
        if field.kind == "duration" and type(value) is int and 0 < abs(value) < 1_000_000:
            yield Advice(
                severity="warning",
                path=here,
                message=f"{spelled} = {value} means {value} nanoseconds",
                fix=f'{spelled} = "{value}s"',
            )
        elif field.table is not None:
            items = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, item in items:
                if isinstance(item, dict):
                    below = here if index is None else (*here, index)
                    yield from _nanoseconds(field.table, item, below)


def _did_you_mean(value: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(value, known, 1)
    return f"did you mean {near[0]}?" if near else ""
