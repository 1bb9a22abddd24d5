"""`exec --list` and `exec --dry-run`: what is in the pipeline, and what a run would do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyrunner.base.printable import printable
from pyrunner.pipeline.graph import Graph
from pyrunner.pipeline.job import Job, When
from pyrunner.pipeline.variables import DEFAULT_TIMEOUT


def list_text(graph: Graph) -> str:
    """One line per job."""
    rows = [("STAGE", "JOB", "WHEN", "NEEDS", "NOTES")]
    for stage, jobs in graph.by_stage().items():
        rows += [(stage, job.name, job.when.value, _needs(graph, job), _notes(job)) for job in jobs]
    return columns(rows)


def columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows with aligned columns, two spaces between them."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _needs(graph: Graph, job: Job) -> str:
    needed = graph.needed(job)
    return "-" if needed is None else ",".join(needed) or "none"


def _notes(job: Job) -> str:
    notes = []
    if job.allow_failure.always and job.when is not When.MANUAL:
        notes.append("may fail")
    if job.allow_failure.exit_codes:
        notes.append(f"may exit with {','.join(map(str, sorted(job.allow_failure.exit_codes)))}")
    if job.retry.times:
        notes.append(f"retry {job.retry.times}")
    if job.artifacts.archived:
        notes.append("artifacts")
    if job.cache:
        notes.append("cache")
    if job.tags:
        notes.append(f"tags {','.join(job.tags)}")
    return "; ".join(notes)


def dry_run_text(graph: Graph) -> str:
    """Stages, jobs and their commands."""
    lines: list[str] = []
    for stage, jobs in graph.by_stage().items():
        lines.append(f"stage {printable(stage)}")
        for job in jobs:
            lines.append(printable(f"  job {job.name}{_condition(graph, job)}"))
            sources = [source.name for source in graph.sources(job)]
            if sources:
                lines.append(printable(f"    artifacts from {', '.join(sources)}"))
            for command in (*job.before_script, *job.script):
                lines += _command("$", command)
            for command in job.after_script:
                lines += _command("after $", command)
    return "\n".join(lines) + "\n"


def _condition(graph: Graph, job: Job) -> str:
    words = []
    if job.when is When.MANUAL and job.name not in graph.played:
        words.append("manual: does not run unless named")
    elif job.when in (When.ALWAYS, When.ON_FAILURE):
        words.append(job.when.value)
    needed = graph.needed(job)
    if needed is not None:
        words.append(f"needs {', '.join(needed)}" if needed else "needs nothing")
    return f" ({'; '.join(words)})" if words else ""


def _command(sign: str, command: str) -> list[str]:
    first, *rest = command.rstrip("\n").split("\n")
    return [f"    {sign} {first}", *(f"    {' ' * len(sign)} {line}" for line in rest)]


def as_json(graph: Graph, *, scripts: bool) -> str:
    """The same for programs."""
    jobs = []
    for job in graph.jobs.values():
        needed = graph.needed(job)
        entry: dict[str, Any] = {
            "name": job.name,
            "stage": job.stage,
            "when": job.when.value,
            "allow_failure": job.allow_failure.always,
            "allow_failure_exit_codes": sorted(job.allow_failure.exit_codes),
            "needs": None if needed is None else list(needed),
            "artifacts_from": [source.name for source in graph.sources(job)],
            "retry": job.retry.times,
            "timeout": job.timeout or DEFAULT_TIMEOUT,
            "tags": list(job.tags),
            "line": job.place.line,
        }
        if scripts:
            entry["script"] = [*job.before_script, *job.script]
            entry["after_script"] = list(job.after_script)
            entry["variables"] = {key: item.value for key, item in job.variables.items()}
        jobs.append(entry)
    return json.dumps({"stages": list(graph.by_stage()), "jobs": jobs}, indent=2, ensure_ascii=False) + "\n"
