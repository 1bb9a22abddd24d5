"""Which job comes after which: checks, cycles, order, and choosing some jobs with all they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from pyrunner.base.errors import UsageError
from pyrunner.pipeline.job import Job, Need, Pipeline, When
from pyrunner.pipeline.spot import suggestion


def check_order(pipeline: Pipeline) -> None:
    """Check ``needs`` and ``dependencies`` of all jobs.

    Raises:
        PipelineError: a job that does not exist, comes later, or needs itself in the end (the circle is named).
    """
    rank = {stage: number for number, stage in enumerate(pipeline.stages)}
    for job in pipeline.jobs.values():
        for need in job.needs or ():
            _check_need(pipeline, job, need, rank)
        _check_dependencies(pipeline, job, rank)
    _check_circles(pipeline)


def _check_need(pipeline: Pipeline, job: Job, need: Need, rank: Mapping[str, int]) -> None:
    other = pipeline.jobs.get(need.job)
    if other is None or other.when is When.NEVER:
        if need.optional:
            return
        why = "which never runs" if other else "which does not exist"
        near = "" if other else suggestion(need.job, pipeline.jobs)
        raise need.place.error(f"{job.name}:needs: names {need.job}, {why}", hint=near)
    if rank[other.stage] > rank[job.stage]:
        raise need.place.error(
            f"{job.name}:needs: {need.job} is in the later stage {other.stage}; {job.name} is in {job.stage}"
        )


def _check_dependencies(pipeline: Pipeline, job: Job, rank: Mapping[str, int]) -> None:
    place = job.place_of("dependencies")
    needed = None if job.needs is None else {need.job for need in job.needs}
    for name in job.dependencies or ():
        other = pipeline.jobs.get(name)
        if other is None:
            near = suggestion(name, pipeline.jobs)
            raise place.error(f"{job.name}:dependencies: there is no job {name}", hint=near)
        if needed is not None and name not in needed:
            raise place.error(f"{job.name}:dependencies: {name} must also be in needs")
        if needed is None and rank[other.stage] >= rank[job.stage]:
            raise place.error(f"{job.name}:dependencies: {name} is not in an earlier stage")


def _check_circles(pipeline: Pipeline) -> None:
    """Depth-first without recursion: a chain may be as long as the file has jobs."""
    done: set[str] = set()
    for start in pipeline.jobs:
        path: list[str] = []
        todo: list[tuple[str, bool]] = [(start, True)]
        while todo:
            name, entering = todo.pop()
            if not entering:
                done.add(path.pop())
                continue
            if name in path:
                circle = " → ".join((*path[path.index(name) :], name))
                job = pipeline.jobs[path[-1]]
                raise job.place_of("needs").error(f"{job.name}:needs: goes in a circle: {circle}")
            if name in done:
                continue
            path.append(name)
            todo.append((name, False))
            todo += [(need.job, True) for need in pipeline.jobs[name].needs or () if need.job in pipeline.jobs]


class Graph(Struct, frozen=True, kw_only=True):
    """The jobs of one run: all of a pipeline that may run, or those chosen.

    `played` are the manual jobs that somebody asked for by name.
    """

    stages: tuple[str, ...]
    jobs: Mapping[str, Job]
    played: frozenset[str] = frozenset()

    def rank(self, job: Job) -> int:
        """Number of the job's stage."""
        return self.stages.index(job.stage)

    def by_stage(self) -> dict[str, list[Job]]:
        """Stages that have jobs, in order, with their jobs."""
        found: dict[str, list[Job]] = {stage: [] for stage in self.stages}
        for job in self.jobs.values():
            found[job.stage].append(job)
        return {stage: jobs for stage, jobs in found.items() if jobs}

    def needed(self, job: Job) -> tuple[str, ...] | None:
        """The jobs of this run that `job` needs; None when it goes by stages."""
        if job.needs is None:
            return None
        return tuple(need.job for need in job.needs if need.job in self.jobs)

    def sources(self, job: Job) -> list[Job]:
        """The jobs whose artifacts `job` downloads, if they have any."""
        if job.needs is None:
            names: Iterable[str] = (item.name for item in self._before(job))
        else:
            names = (need.job for need in job.needs if need.artifacts)
        wanted = [name for name in names if job.dependencies is None or name in job.dependencies]
        return [self.jobs[name] for name in wanted if name in self.jobs and self.jobs[name].artifacts.archived]

    def _before(self, job: Job) -> list[Job]:
        rank = self.rank(job)
        found = [other for other in self.jobs.values() if self.rank(other) < rank]
        return sorted(found, key=self.rank)


def whole(pipeline: Pipeline) -> Graph:
    """All jobs that are not ``when: never``, in order of stages."""
    rank = {stage: number for number, stage in enumerate(pipeline.stages)}
    jobs = sorted(
        (job for job in pipeline.jobs.values() if job.when is not When.NEVER), key=lambda job: rank[job.stage]
    )
    return Graph(stages=pipeline.stages, jobs={job.name: job for job in jobs})


def choose(pipeline: Pipeline, names: Iterable[str], stage: str = "", *, alone: bool = False) -> Graph:
    """The named jobs and those of `stage`; everything when neither is given.

    What a chosen job needs comes along: its ``needs``, or without them the jobs whose artifacts it downloads; `alone`
    leaves them out. A manual job that is named runs.

    Raises:
        UsageError: no such job or stage.
    """
    graph = whole(pipeline)
    named = list(names)
    for name in named:
        if name not in graph.jobs:
            why = "never runs" if name in pipeline.jobs else "is not in the pipeline"
            raise UsageError(f"the job {name} {why}", hint=suggestion(name, graph.jobs))
    if stage and stage not in pipeline.stages:
        raise UsageError(
            f"there is no stage {stage}",
            hint=suggestion(stage, pipeline.stages) or f"stages: {', '.join(pipeline.stages)}",
        )
    if not named and not stage:
        return graph
    chosen = [*named, *(job.name for job in graph.jobs.values() if stage and job.stage == stage)]
    if not alone:
        chosen = _with_needed(graph, chosen)
    kept = set(chosen)
    jobs = {name: job for name, job in graph.jobs.items() if name in kept}
    return Graph(stages=graph.stages, jobs=jobs, played=frozenset(named))


def _with_needed(graph: Graph, names: list[str]) -> list[str]:
    found: dict[str, None] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = None
        job = graph.jobs[name]
        needed = graph.needed(job)
        todo += [source.name for source in graph.sources(job)] if needed is None else needed
    return list(found)
