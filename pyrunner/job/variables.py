"""The ordered list of a job's variables (facts/job-lifecycle.md 4.1): later entries win. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """PEM texts for the ``CI_SERVER_TLS_*`` file variables; empty = not known."""

    ca: str = ""
    cert: str = ""
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class VariableSources:
    """Where a job's variables come from, in the words of section 4.1."""

    flags: Mapping[str, bool]
    #: Names of the known feature flags: job variables called so were read already and are left out.
    flag_names: frozenset[str]
    job: Sequence[JobVariable]
    #: Unexpanded image name; empty without an image.
    image: str = ""
    short_token: str = ""
    #: ``KEY=value`` items of ``environment``; those without ``=`` are ignored.
    environment: Sequence[str] = ()
    concurrent_id: int = 0
    concurrent_project_id: int = 0
    job_timeout: float = 0
    tls: TlsFiles = TlsFiles()
    shared_environment: bool = False
    runner_version: str = ""
    runner_revision: str = ""
    #: ``linux/amd64``
    executable_arch: str = ""
    secrets: Sequence[JobVariable] = ()


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Directories that variables name; unknown ones are empty before the executor is prepared."""

    builds_dir: str = ""
    project_dir: str = ""
    temp_dir: str = ""


def job_variables(sources: VariableSources, paths: Paths | None = None) -> Variables:
    """All variables of a job, expanded once; without `paths` those that need directories are left out."""
    items = [
        *(_public(name, "true" if value else "false") for name, value in sources.flags.items()),
        *_of_runner(sources),
        *_of_place(sources, paths),
        *_of_tls(sources.tls),
        *(item for item in sources.job if item.key not in sources.flag_names),
        _public("CI_SHARED_ENVIRONMENT" if sources.shared_environment else "CI_DISPOSABLE_ENVIRONMENT", "true"),
        _public("CI_RUNNER_VERSION", sources.runner_version),
        _public("CI_RUNNER_REVISION", sources.runner_revision),
        _public("CI_RUNNER_EXECUTABLE_ARCH", sources.executable_arch),
        *sources.secrets,
    ]
    if paths is not None:
        items.append(_raw("RUNNER_TEMP_PROJECT_DIR", paths.temp_dir))
    return Variables(items, _file_path(paths)).expanded()


def with_status(variables: Variables, status: str) -> Variables:
    """The list with ``CI_JOB_STATUS`` overwritten: ``success``, ``failed``, ``canceled``, ``timedout``."""
    return variables.plus([_public("CI_JOB_STATUS", status)])


def masked_values(variables: Iterable[JobVariable]) -> list[str]:
    """Values that must not appear in the log, in no particular order, without duplicates."""
    values = (item.value.strip() for item in variables if item.masked)
    return list(dict.fromkeys(value for value in values if value))


def _of_runner(sources: VariableSources) -> Iterable[JobVariable]:
    if sources.image:
        yield JobVariable(key="CI_JOB_IMAGE", value=sources.image, public=True)
    yield _public("CI_RUNNER_SHORT_TOKEN", sources.short_token)
    for item in sources.environment:
        key, equals, value = item.partition("=")
        if equals and key:
            yield JobVariable(key=key, value=value)


def _of_place(sources: VariableSources, paths: Paths | None) -> Iterable[JobVariable]:
    if paths is not None:
        yield _raw("CI_BUILDS_DIR", paths.builds_dir)
        yield _raw("CI_PROJECT_DIR", paths.project_dir)
    yield _public("CI_CONCURRENT_ID", str(sources.concurrent_id))
    yield _public("CI_CONCURRENT_PROJECT_ID", str(sources.concurrent_project_id))
    yield _public("CI_SERVER", "yes")
    yield _public("CI_JOB_STATUS", "running")
    yield _public("CI_JOB_TIMEOUT", str(int(sources.job_timeout)))


def _of_tls(tls: TlsFiles) -> Iterable[JobVariable]:
    for name, content in (("CA", tls.ca), ("CERT", tls.cert), ("KEY", tls.key)):
        if content:
            yield JobVariable(key=f"CI_SERVER_TLS_{name}_FILE", value=content, public=True, file=True, raw=True)


def _public(key: str, value: str) -> JobVariable:
    return JobVariable(key=key, value=value, public=True)


def _raw(key: str, value: str) -> JobVariable:
    # a directory may have a dollar in its name
    return JobVariable(key=key, value=value, public=True, raw=True)


def _file_path(paths: Paths | None) -> Callable[[str], str]:
    base = paths.temp_dir if paths is not None else ""
    return lambda key: f"{base}/{key}" if base else key
