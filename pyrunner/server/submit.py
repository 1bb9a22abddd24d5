"""What is handed in to a coordinator beside single payloads: a pipeline file and what its jobs are told of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pyrunner.pipeline.graph import Graph, choose
from pyrunner.pipeline.job import CacheKeyFiles
from pyrunner.pipeline.load import load_pipeline
from pyrunner.pipeline.variables import RunContext


class PipelineOrder(msgspec.Struct, kw_only=True):
    """One pipeline to run; this is also how it is kept.

    `content` is the file, `path` its name for messages, `jobs` the chosen ones (all when empty), `context` the fields
    of `RunContext`, `fingerprints` those of ``cache:key:files`` by the files' names with line ends between them.
    """

    content: str
    path: str
    context: dict[str, Any]
    jobs: list[str] = []
    fingerprints: dict[str, str] = {}


def make_order(content: str, path: str, jobs: Sequence[str], context: RunContext) -> PipelineOrder:
    """The order for a pipeline file.

    Raises:
        PipelineError: the file is wrong.
        UsageError: there is no such job.
    """
    graph = _graph(content, path, jobs)
    prints = {"\n".join(files): context.hash_files(files) for files in _key_files(graph)}
    fields = {name: getattr(context, name) for name in _FIELDS}
    return PipelineOrder(
        content=content, path=path, jobs=list(jobs), context=msgspec.to_builtins(fields), fingerprints=prints
    )


def open_order(order: PipelineOrder, pipeline_id: int) -> tuple[Graph, RunContext]:
    """What the order says, as structures.

    Raises:
        PipelineError: the file is wrong.
        UsageError: there is no such job.
        msgspec.ValidationError: a field of the context has the wrong type.
    """
    prints: Mapping[str, str] = order.fingerprints

    def hash_files(names: Sequence[str]) -> str:
        return prints.get("\n".join(names), "")

    fields = msgspec.convert(order.context, type=_Context)
    values = {name: getattr(fields, name) for name in _FIELDS}
    context = RunContext(**{**values, "pipeline_id": pipeline_id}, hash_files=hash_files)
    return _graph(order.content, order.path, order.jobs), context


def _graph(content: str, path: str, jobs: Sequence[str]) -> Graph:
    return choose(load_pipeline(content.encode(), path), jobs)


def _key_files(graph: Graph) -> Iterator[tuple[str, ...]]:
    for job in graph.jobs.values():
        for cache in job.cache:
            if isinstance(cache.key, CacheKeyFiles):
                yield cache.key.files


def _written() -> type[msgspec.Struct]:
    """The part of `RunContext` that can be written down: all but the function, and the id that is given later."""
    kept = []
    for known in msgspec.structs.fields(RunContext):
        if known.name not in ("pipeline_id", "hash_files"):
            # one of the two is msgspec's "none", which only the untyped signature takes
            default = msgspec.field(default=known.default, default_factory=known.default_factory)  # type: ignore[call-overload]
            kept.append((known.name, known.type, default))
    return msgspec.defstruct("Context", kept, kw_only=True)


_Context = _written()
_FIELDS = _Context.__struct_fields__
