"""The whole way from the bytes of a pipeline file to its jobs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pyrunner.pipeline.extends import resolve_extends
from pyrunner.pipeline.graph import check_order
from pyrunner.pipeline.job import (
    DEFAULT_STAGES,
    FIRST_STAGE,
    LAST_STAGE,
    AllowFailure,
    Job,
    Pipeline,
    Variable,
    When,
)
from pyrunner.pipeline.keywords import KEYWORDS, Where, names, read_keywords, reader
from pyrunner.pipeline.reference import resolve_references
from pyrunner.pipeline.spot import Spot, suggestion
from pyrunner.pipeline.yaml_source import Document, Notice, Table, load_yaml

#: Names that GitLab keeps for itself although they are no keywords of ours.
_RESERVED = ("true", "false", "nil")
_MAX_NAME = 255


def load_pipeline(data: bytes, path: str) -> Pipeline:
    """Read a pipeline file.

    Args:
        data: the file's bytes.
        path: its name for messages.

    Raises:
        PipelineError: the file is wrong in any way; says where.
    """
    document = load_yaml(data, path)
    root = resolve_extends(document.root)
    if document.referring:
        root = resolve_references(root)
    return _Reader(document, root, path).pipeline()


class _Reader:
    def __init__(self, document: Document, root: Table, path: str) -> None:
        self._notices: list[Notice] = document.notices
        self._root = root
        self._path = path

    def pipeline(self) -> Pipeline:
        settings, entries = self._globals()
        defaults = self._defaults(settings)
        variables: dict[str, Variable] = settings.get("variables", {})
        stages = _stages(settings.get("stages"))
        jobs = {name: self._job(name, table, defaults, variables) for name, table in entries.items()}
        if not jobs:
            raise self._root.place.error("there is no job", hint="a job is a name with a script; .names are hidden")
        for job in jobs.values():
            _check_stage(job, stages)
        pipeline = Pipeline(
            path=self._path, stages=stages, jobs=jobs, variables=variables, notices=tuple(self._notices)
        )
        check_order(pipeline)
        return pipeline

    def _globals(self) -> tuple[dict[str, Any], dict[str, Table]]:
        """What the top of the file sets, and the entries that are jobs."""
        settings: dict[str, Any] = {}
        jobs: dict[str, Table] = {}
        for key, value in self._root.items():
            place = self._root.places[key]
            if key.startswith("."):
                continue
            if key in KEYWORDS and (Where.GLOBAL in KEYWORDS[key].where or not isinstance(value, Table)):
                read = reader(key, Where.GLOBAL, place, "")
                if value is not None:
                    settings[key] = read(Spot(value=value, place=place, name=key))
            elif isinstance(value, Table):
                jobs[key] = value
            else:
                near = suggestion(key, names(Where.GLOBAL))
                hint = near or "a job is a mapping with a script"
                raise place.error(f"{key} is neither a keyword nor a job", hint=hint)
        return settings, jobs

    def _defaults(self, settings: dict[str, Any]) -> dict[str, Any]:
        table = settings.get("default")
        defaults = read_keywords(table, Where.DEFAULT, "default") if isinstance(table, Table) else {}
        for key in settings:
            if Where.DEFAULT not in KEYWORDS[key].where:
                continue
            if key in defaults:
                raise self._root.places[key].error(f"{key} is set here and in default; keep one of them")
            defaults[key] = settings[key]
        return defaults

    def _job(self, name: str, table: Table, defaults: dict[str, Any], variables: dict[str, Variable]) -> Job:
        place = self._root.places[name]
        if not name.strip() or len(name) > _MAX_NAME or name in _RESERVED:
            raise place.error(f"{name[:40]!r} cannot be the name of a job")
        own: dict[str, Any] = read_keywords(table, Where.JOB, name)
        if "script" not in own:
            near = suggestion(name, names(Where.GLOBAL))
            raise place.error(f"{name}: script is missing", hint=near or "names of hidden jobs begin with a dot")
        fields = {**defaults, **own}
        fields["variables"] = {**variables, **own.get("variables", {})}
        job = Job(name=name, place=place, places=table.places, **fields)
        if job.when is When.MANUAL and "allow_failure" not in fields:
            # a manual job that nobody starts must not block the pipeline unless it says so
            job = replace(job, allow_failure=AllowFailure(always=True))
        return job


def _stages(given: tuple[str, ...] | None) -> tuple[str, ...]:
    middle = DEFAULT_STAGES if given is None else given
    inner = [stage for stage in dict.fromkeys(middle) if stage not in (FIRST_STAGE, LAST_STAGE)]
    return (FIRST_STAGE, *inner, LAST_STAGE)


def _check_stage(job: Job, stages: tuple[str, ...]) -> None:
    if job.stage not in stages:
        near = suggestion(job.stage, stages)
        raise job.place_of("stage").error(
            f"{job.name}: there is no stage {job.stage}", hint=near or f"stages: {', '.join(stages)}"
        )
