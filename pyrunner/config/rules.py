"""Rules that a config must keep beyond types (facts/config-toml.md 2): those that block loading.

Advice that does not block is in `lint`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrunner.config.decode import Path, Problem
from pyrunner.config.model import Config, RunnerConfig

LABEL_KEY = r"^[a-zA-Z0-9_][a-zA-Z0-9._-]{2,64}$"
LABEL_VALUE = r"^[a-zA-Z0-9._-]{1,256}$"
_MOST_LABELS = 32
_NFS_REQUIRED = ("name", "mount_path", "server", "path")


def first_broken_rule(config: Config) -> Problem | None:
    """The first broken rule, or None; the message has its prefix."""
    return next(broken_rules(config), None)


def broken_rules(config: Config) -> Iterator[Problem]:
    """All broken rules, in GitLab Runner's order."""
    for index, runner in enumerate(config.runners):
        yield from _nfs_volumes(runner, ("runners", index))
    for index, runner in enumerate(config.runners):
        yield from _periods(runner, ("runners", index))
    for broken in _labels(config.labels, ("labels",)):
        yield _invalid("validating global labels", broken)
    for index, runner in enumerate(config.runners):
        for broken in _runner_rules(config, runner, ("runners", index)):
            yield _invalid(f"validating runner {runner.name}", broken)


def _invalid(where: str, problem: Problem) -> Problem:
    return Problem(path=problem.path, message=f"invalid config: {where}: {problem.message}", fix=problem.fix)


def _runner_rules(config: Config, runner: RunnerConfig, path: Path) -> Iterator[Problem]:
    for broken in _labels(runner.labels, (*path, "labels")):
        yield Problem(path=broken.path, message=f"validating labels: {broken.message}")
    if len(config.labels_of(runner)) > _MOST_LABELS:
        yield Problem(
            path=(*path, "labels"),
            message=f"validating computed labels: exceeded maximum computed labels number of {_MOST_LABELS}",
        )
    for index, option in enumerate(runner.machine.machine_options_with_name if runner.machine else ()):
        if "%s" not in option:
            yield Problem(
                path=(*path, "machine", "MachineOptionsWithName", index),
                message="validating machine options with name: "
                f'machine option with name "{option}" must contain %s placeholder',
            )


def _labels(labels: dict[str, str], path: Path) -> Iterator[Problem]:
    for key, value in labels.items():
        if not _matches(LABEL_KEY, key):
            yield Problem(path=(*path, key), message=f'invalid label key, doesn\'t match "{LABEL_KEY}": {key}')
        if not _matches(LABEL_VALUE, value):
            yield Problem(path=(*path, key), message=f'invalid label value, doesn\'t match "{LABEL_VALUE}": {value}')


def _matches(pattern: str, text: str) -> bool:
    # Python's $ also matches before a newline at the end, Go's does not
    return re.fullmatch(pattern.strip("^$"), text) is not None


def _nfs_volumes(runner: RunnerConfig, path: Path) -> Iterator[Problem]:
    for index, volume in enumerate(runner.kubernetes.volumes.nfs if runner.kubernetes else ()):
        if missing := [name for name in _NFS_REQUIRED if not getattr(volume, name)]:
            yield Problem(
                path=(*path, "kubernetes", "volumes", "nfs", index),
                message=f"decoding configuration file: toml: nfs volume: missing required fields: {', '.join(missing)}",
            )


def _periods(runner: RunnerConfig, path: Path) -> Iterator[Problem]:
    start = f"loading configuration for {runner.name} runner: compiling "
    for index, entry in enumerate(runner.machine.autoscaling if runner.machine else ()):
        if reason := _bad_period(entry.periods):
            yield Problem(
                path=(*path, "machine", "autoscaling", index, "Periods"),
                message=f"{start}docker machine autoscaling periods: "
                f"invalid time periods [{' '.join(entry.periods)}], caused by: {reason}",
            )
    for index, duration in enumerate(runner.monitoring.job_queuing_durations if runner.monitoring else ()):
        place: Path = (*path, "monitoring", "job_queuing_durations", index)
        where = f"{start}monitoring sections: compiling job_queuing_durations: entry {index}: "
        if reason := _bad_period(duration.periods):
            yield Problem(
                path=(*place, "periods"),
                message=f"{where}periods: invalid time periods [{' '.join(duration.periods)}], caused by: {reason}",
            )
        try:
            re.compile(duration.jobs_running_for_project)
        except (re.error, RecursionError, OverflowError) as error:
            yield Problem(
                path=(*place, "jobs_running_for_project"),
                message=f"{where}jobs_running_for_project: {error}",
            )


def _bad_period(periods: list[str]) -> str:
    if not periods:
        return ""
    from pyrunner.config.cron import wrong_with

    return next((reason for period in periods if (reason := wrong_with(period))), "")
