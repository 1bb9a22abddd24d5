"""What a job's variables set: attempts, timeouts, git strategy; and the warnings for bad values.

Pure; the rules are those of facts/job-lifecycle.md sections 3.1, 3.2, 7.1 and 12.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrunner.api.variables import read_bool
from pyrunner.base.durations import parse_duration

DEFAULT_JOB_TIMEOUT = 7200.0
DEFAULT_AFTER_SCRIPT_TIMEOUT = 300.0

_INTEGER = re.compile(r"[+-]?[0-9]+")
_STRATEGIES = ("clone", "fetch", "none", "empty")
#: Booleans that shells and helpers read by themselves: only checked here. Name → default.
_CHECKED_BOOLEANS = {"GIT_CHECKOUT": True, "GIT_SUBMODULE_FORCE_HTTPS": False, "GIT_LFS_SKIP_SMUDGE": False}

Lookup = Callable[[str], str | None]


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """How often a stage is tried."""

    get_sources: int = 1
    restore_cache: int = 1
    download_artifacts: int = 1
    resolve_secrets: int = 1
    job_section: int = 1


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Seconds; None = no limit beside the job's own."""

    job: float = DEFAULT_JOB_TIMEOUT
    prepare: float | None = None
    get_sources: float | None = None
    script: float | None = None
    after_script: float = DEFAULT_AFTER_SCRIPT_TIMEOUT


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that variables and config settle before the job runs."""

    attempts: Attempts = Attempts()
    timeouts: Timeouts = Timeouts()
    git_strategy: str = "fetch"
    after_script_ignore_errors: bool = True
    debug_trace: bool = False
    debug_services: bool = False
    #: Printed together as one warning before the executor is prepared.
    warnings: tuple[str, ...] = ()
    #: Printed one by one: what is ignored among the timeouts.
    timeout_warnings: tuple[str, ...] = ()
    #: For the runner's own log: limits of config.toml that do not fit this job.
    log_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What config.toml and the payload say, as far as settings depend on it. Durations in seconds, None = unset."""

    job_timeout: int = 0
    prepare_timeout: float | None = None
    get_sources_timeout: float | None = None
    allow_git_fetch: bool = True
    debug_trace_disabled: bool = False


@dataclass
class _Reader:
    lookup: Lookup
    warnings: list[str] = field(default_factory=list)
    timeout_warnings: list[str] = field(default_factory=list)
    log_warnings: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.lookup(name) or ""

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name)
        value = read_bool(text) if text else default
        if value is None:
            shown = "true" if default else "false"
            self.warnings.append(f'{name}: expected bool got "{text}", using default value: {shown}')
            return default
        return value

    def attempts(self, name: str) -> int:
        text = self.text(name)
        if not text:
            return 1
        if not _INTEGER.fullmatch(text):
            self.warnings.append(f'{name}: expected int got "{text}", using default value: 1')
            return 1
        number = int(text[:20])
        clamped = min(10, max(1, number))
        if clamped != number:
            self.warnings.append(f"{name}: number of attempts out of the range [1, 10], clamping to: {clamped}")
        return clamped

    def strategy(self, default: str) -> str:
        text = self.text("GIT_STRATEGY")
        if not text or text in _STRATEGIES:
            return text or default
        self.warnings.append(
            "GIT_STRATEGY: expected either 'clone', 'fetch', 'none' or 'empty' "
            f"got \"{text}\", using default value '{default}'"
        )
        return default

    def timeout(self, name: str, default: float | None, job: float) -> float | None:
        text = self.text(name)
        if not text:
            return default
        try:
            seconds = parse_duration(text)
        except ValueError:
            self.timeout_warnings.append(f"Ignoring malformed {name} timeout: {text}")
            return default
        if seconds < 0:
            self.timeout_warnings.append(f"Ignoring relative {name} timeout: {text}")
            return default
        if seconds > job:
            # the text promises the job timeout, but what stays in force is the default (section 3.2)
            self.timeout_warnings.append(f"{name} timeout: {text} is longer than job timeout. Setting to job timeout")
            return default
        return seconds or default

    def limit(self, name: str, value: float | None, job: float) -> float | None:
        if value is None:
            return None
        if value <= 0 or value > job:
            self.log_warnings.append(f"{name} is not between zero and the job timeout, using the job timeout")
            return None
        return value


def read_settings(lookup: Lookup, limits: Limits) -> Settings:
    """Settings of a job whose expanded variables `lookup` gives (None or empty = not set)."""
    read = _Reader(lookup)
    job = float(limits.job_timeout) if limits.job_timeout > 0 else DEFAULT_JOB_TIMEOUT
    attempts = Attempts(
        get_sources=read.attempts("GET_SOURCES_ATTEMPTS"),
        restore_cache=read.attempts("RESTORE_CACHE_ATTEMPTS"),
        download_artifacts=read.attempts("ARTIFACT_DOWNLOAD_ATTEMPTS"),
        resolve_secrets=read.attempts("SECRETS_RETRIEVAL_ATTEMPTS"),
        job_section=read.attempts("EXECUTOR_JOB_SECTION_ATTEMPTS"),
    )
    timeouts = Timeouts(
        job=job,
        prepare=read.limit("prepare_timeout", limits.prepare_timeout, job),
        get_sources=read.limit("get_sources_timeout", limits.get_sources_timeout, job),
        script=read.timeout("RUNNER_SCRIPT_TIMEOUT", None, job),
        after_script=read.timeout("RUNNER_AFTER_SCRIPT_TIMEOUT", None, job) or DEFAULT_AFTER_SCRIPT_TIMEOUT,
    )
    strategy = read.strategy("fetch" if limits.allow_git_fetch else "clone")
    for name, default in _CHECKED_BOOLEANS.items():
        read.boolean(name, default)
    debug_trace = read.boolean("CI_DEBUG_TRACE", default=False)
    if debug_trace and limits.debug_trace_disabled:
        read.warnings.append("CI_DEBUG_TRACE: usage is disabled on this Runner")
        debug_trace = False
    return Settings(
        attempts=attempts,
        timeouts=timeouts,
        git_strategy=strategy,
        after_script_ignore_errors=read.boolean("AFTER_SCRIPT_IGNORE_ERRORS", default=True),
        debug_trace=debug_trace,
        debug_services=read.boolean("CI_DEBUG_SERVICES", default=False),
        warnings=tuple(read.warnings),
        timeout_warnings=tuple(read.timeout_warnings),
        log_warnings=tuple(read.log_warnings),
    )
