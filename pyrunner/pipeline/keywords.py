"""Every keyword of the language, declared once: where it may stand and what reads it.

A keyword without a reader is known and refused, so that nothing in a file is ever ignored. Supporting one more means: a
reader, a line here, and a field in `job.Job`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto

from msgspec import Struct

from pyrunner.pipeline import read_files, read_simple
from pyrunner.pipeline.spot import Spot, suggestion
from pyrunner.pipeline.yaml_source import Place, Table


class Where(Flag):
    """Where a keyword may stand."""

    #: At the top of the file.
    GLOBAL = auto()
    #: Below ``default``; those that are also `GLOBAL` are its old form.
    DEFAULT = auto()
    #: In a job.
    JOB = auto()


class Keyword(Struct, frozen=True, kw_only=True):
    """One keyword; `read` is None while it is not supported."""

    name: str
    where: Where
    read: Callable[[Spot], object] | None = None


_ANYWHERE = Where.GLOBAL | Where.DEFAULT | Where.JOB
_JOBS = Where.DEFAULT | Where.JOB

KEYWORDS = {
    item.name: item
    for item in (
        Keyword(name="stages", where=Where.GLOBAL, read=read_simple.read_names),
        Keyword(name="default", where=Where.GLOBAL, read=lambda spot: spot.table("a mapping of keywords")),
        Keyword(name="variables", where=Where.GLOBAL | Where.JOB, read=read_simple.read_variables),
        # resolved before anything is read; here so that it is known
        Keyword(name="extends", where=Where.JOB, read=read_simple.read_tags),
        Keyword(name="stage", where=Where.JOB, read=read_simple.read_stage),
        Keyword(name="script", where=Where.JOB, read=read_simple.read_script),
        Keyword(name="before_script", where=_ANYWHERE, read=read_simple.read_commands),
        Keyword(name="after_script", where=_ANYWHERE, read=read_simple.read_commands),
        Keyword(name="when", where=Where.JOB, read=read_simple.read_when),
        Keyword(name="allow_failure", where=Where.JOB, read=read_simple.read_allow_failure),
        Keyword(name="needs", where=Where.JOB, read=read_simple.read_needs),
        Keyword(name="dependencies", where=Where.JOB, read=read_simple.read_names),
        Keyword(name="artifacts", where=_JOBS, read=read_files.read_artifacts),
        Keyword(name="cache", where=_ANYWHERE, read=read_files.read_cache),
        Keyword(name="timeout", where=_JOBS, read=read_simple.read_timeout),
        Keyword(name="retry", where=_JOBS, read=read_simple.read_retry),
        Keyword(name="tags", where=_JOBS, read=read_simple.read_tags),
        Keyword(name="image", where=_ANYWHERE, read=read_files.read_image),
        Keyword(name="services", where=_ANYWHERE, read=read_files.read_services),
        Keyword(name="include", where=Where.GLOBAL),
        Keyword(name="workflow", where=Where.GLOBAL),
        Keyword(name="spec", where=Where.GLOBAL),
        Keyword(name="types", where=Where.GLOBAL),
        Keyword(name="type", where=Where.JOB),
        Keyword(name="coverage", where=Where.JOB),
        Keyword(name="dast_configuration", where=Where.JOB),
        Keyword(name="environment", where=Where.JOB),
        Keyword(name="except", where=Where.JOB),
        Keyword(name="hooks", where=_JOBS),
        Keyword(name="id_tokens", where=_JOBS),
        Keyword(name="identity", where=_JOBS),
        Keyword(name="inherit", where=Where.JOB),
        Keyword(name="inputs", where=Where.JOB),
        Keyword(name="interruptible", where=_JOBS),
        Keyword(name="manual_confirmation", where=Where.JOB),
        Keyword(name="only", where=Where.JOB),
        Keyword(name="pages", where=Where.JOB),
        Keyword(name="parallel", where=Where.JOB),
        Keyword(name="publish", where=Where.JOB),
        Keyword(name="release", where=Where.JOB),
        Keyword(name="resource_group", where=Where.JOB),
        Keyword(name="rules", where=Where.JOB),
        Keyword(name="run", where=Where.JOB),
        Keyword(name="secrets", where=Where.JOB),
        Keyword(name="start_in", where=Where.JOB),
        Keyword(name="trigger", where=Where.JOB),
    )
}


def names(where: Where) -> list[str]:
    """The supported keywords at `where`."""
    return [item.name for item in KEYWORDS.values() if where in item.where and item.read]


def read_keywords(table: Table, where: Where, prefix: str) -> dict[str, object]:
    """All keywords of a job or of ``default``, read; those set to null are left out.

    Raises:
        PipelineError: a keyword is unknown, not supported, not allowed here, or has a wrong value.
    """
    found = {}
    for key, value in table.items():
        spot = Spot(value=value, place=table.places[key], name=f"{prefix}:{key}")
        read = reader(key, where, spot.place, prefix)
        if value is not None:
            found[key] = read(spot)
    return found


def reader(key: str, where: Where, place: Place, prefix: str) -> Callable[[Spot], object]:
    """What reads keyword `key` at `where`.

    Raises:
        PipelineError: nothing does.
    """
    keyword = KEYWORDS.get(key)
    name = f"{prefix}:{key}" if prefix else key
    if keyword is None:
        raise place.error(f"unknown keyword {name}", hint=suggestion(key, names(where)))
    if where not in keyword.where:
        raise place.error(f"the keyword {key} is not allowed in {prefix or 'the top of the file'}")
    if keyword.read is None:
        raise place.error(f"the keyword {name} is not supported in this version")
    return keyword.read
