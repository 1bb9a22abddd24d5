"""Whole jobs as rows of a table: a payload, what the server does meanwhile, and what must come of it.

`job_table.run_rows` runs all rows of a table at once, through a real manager against a real server, on any executor;
`job_checks.check` holds a result against its row. Texts of a row may hold placeholders:

============= ==========================================================================
``@ID@``      the job's id
``@BUILDS@``  ``builds_dir`` of the runner
``@SHORT@``   its short token
``@SLUG@``    the project's path; each row is a project of its own
``@PROJECT@`` the project's directory, ``CI_PROJECT_DIR``
``@ROOM@``    a directory of the row's own on the machine of the manager
``@HOME@``    a directory of the runner's own there
``@PLACE@``   name of the executor that the table runs on
``@EXIT@``    what the executor calls an exit code in its verdicts: ``exit status``
============= ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyrunner.executors.loader import executor_provider
from pyrunner.executors.protocol import ExecutorProvider
from pyrunner.manager.service import ServiceOptions
from pyrunner.testing import dummy_executor
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import Fault
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import service_options

#: What a server of today knows (facts/runner-api.md section 7).
FAILURE_REASONS = (
    "script_failure",
    "runner_system_failure",
    "job_execution_timeout",
    "image_pull_failure",
    "unknown_failure",
    "runner_configuration_error",
    "runner_external_dependency_failure",
    "runner_interrupted",
    "job_canceled",
)
#: `git_info` of a row with sources: a repository with `FILES`.
SOURCES = {"from": "the repository of the table"}
FILES = {"README.md": "hello\n", "sub/file.txt": "x\n"}


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A fault for requests of the row's job; see `FakeGitLab.inject`."""

    method: str
    path: str
    fault: Fault
    times: int | None = 1
    skip: int = 0


@dataclass(frozen=True, kw_only=True)
class When:
    """What is done once `text` is in the stored trace; without a text as soon as `request` has come."""

    then: Callable[[FakeGitLab, int], object]
    text: str = ""
    #: Regular expression of a path.
    request: str = ""


def cancel(gitlab: FakeGitLab, job_id: int) -> None:
    """A user cancels the job (``canceling``)."""
    gitlab.cancel(job_id)


def force_cancel(gitlab: FakeGitLab, job_id: int) -> None:
    """A user cancels the job for good (``canceled``)."""
    gitlab.cancel(job_id, force=True)


@dataclass(frozen=True, kw_only=True)
class Expect:
    """What must come of a row. Texts are looked for in the log without colours, timestamps and section markers."""

    #: What the final update says; empty = there is none.
    state: str = "success"
    reason: str = ""
    exit_code: int = 0
    #: The last line of the log; empty = ``Job succeeded`` after a success.
    last: str = ""
    has: Sequence[str] = ()
    lacks: Sequence[str] = ()
    #: Texts that come in this order.
    order: Sequence[str] = ()
    #: Regular expressions; ``^`` and ``$`` stand at lines.
    match: Sequence[str] = ()
    #: Bytes of the log as the server has it.
    raw: Sequence[bytes] = ()
    raw_lacks: Sequence[bytes] = ()
    #: Regular expressions for the log as the server has it.
    raw_match: Sequence[str] = ()
    #: How the log as the server has it ends.
    ends: bytes = b""
    #: Whether each line of it begins with a time and its stream.
    stamped: bool = False
    #: All sections in order; None = not looked at.
    sections: Sequence[str] | None = None
    #: What the script saw: a value by name, None = not set.
    variables: Mapping[str, str | None] = field(default_factory=dict)
    #: Files that are (or, with ``!`` in front, are not) there afterwards.
    files: Sequence[str] = ()
    #: Messages in the log of the runner process.
    runner_log: Sequence[str] = ()
    #: States that the runner has sent, in order; None = not looked at.
    updates: Sequence[str] | None = None
    #: The whole trace has arrived and the verdict came once.
    delivered: bool = True


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fact: `id` is the section of the facts and a short name."""

    id: str
    job: Mapping[str, Any] = field(default_factory=job_payload)
    expect: Expect = field(default_factory=Expect)
    #: Keys of ``[[runners]]`` beside those of the executor.
    runner: Mapping[str, Any] = field(default_factory=dict)
    server: Sequence[Strike | When] = ()
    #: Files that are there before the job comes: text by path.
    before: Mapping[str, str] = field(default_factory=dict)
    #: Names of the executors that the row is for; empty = all.
    only: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Place:
    """An executor that rows run on."""

    name: str
    #: Keys of ``[[runners]]``; gets a directory of the runner's own.
    entry: Callable[[Path], Mapping[str, Any]]
    #: ``CI_PROJECT_DIR`` from builds dir, short token and slug.
    project_dir: Callable[[str, str, str], str]
    options: ServiceOptions = field(default_factory=service_options)
    #: How a verdict calls an exit code.
    exit_code: str = "exit status"
    #: Why rows cannot run here; empty = they can.
    missing: Callable[[], str] = lambda: ""
    #: Address of this machine for the jobs.
    host: Callable[[], str] = lambda: "127.0.0.1"
    #: Around a table; fails when something is left behind.
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    #: Seconds that a table has.
    in_time: float = 60.0


def find_provider(name: str) -> ExecutorProvider:
    """The provider of an executor; also of the one that does what variables say."""
    return dummy_executor.provider if name == "dummy" else executor_provider(name)


def shell_place(options: ServiceOptions | None = None) -> Place:
    """Jobs as processes of this machine; a row may say ``executor = "dummy"``."""
    return Place(
        name="shell",
        entry=lambda directory: {"builds_dir": str(directory / "builds"), "cache_dir": str(directory / "cache")},
        project_dir=lambda builds, short, slug: f"{builds}/{short}/0/{slug}",
        options=options or replace(service_options(), find_provider=find_provider),
    )


def step(name: str, *script: str) -> dict[str, Any]:
    """One entry of ``steps``."""
    return {"name": name, "script": list(script), "timeout": 3600, "when": "on_success", "allow_failure": False}


def show(*names: str) -> str:
    """A command that shows variables for `Expect.variables`; unset ones are left out."""
    # the echo of the command must not look like its output
    return "; ".join(
        f"""if [ "${{{name}+x}}" ]; then printf 'seen %s=<%s>\\n' {name} "${name}"; fi""" for name in names
    )


def job(
    *script: str,
    after: Sequence[str] = (),
    variables: Mapping[str, str | Mapping[str, Any]] | None = None,
    reasons: Sequence[str] = FAILURE_REASONS,
    **fields: Any,
) -> dict[str, Any]:
    """A payload without sources; a variable may be an object with `value`, ``file``, ``masked``, ``raw``."""
    steps = [step("script", *(script or ("true",))), *([step("after_script", *after)] if after else [])]
    payload = {**job_payload(), "steps": steps, **fields}
    if fields.get("git_info") == SOURCES:
        payload["variables"] = [item for item in payload["variables"] if item["key"] != "GIT_STRATEGY"]
    if "features" not in fields:
        payload["features"] = {"trace_sections": True, "failure_reasons": list(reasons)}
    own = [
        {"key": key, **({"value": value, "public": True} if isinstance(value, str) else value)}
        for key, value in (variables or {}).items()
    ]
    payload["variables"] = [*payload["variables"], *own]
    return payload


def chosen(rows: Iterable[Row], place: Place) -> list[Row]:
    """The rows that are for an executor."""
    return [row for row in rows if not row.only or place.name in row.only]


def fill(text: str, texts: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced."""
    for name, value in texts.items():
        text = text.replace(name, value)
    return text
