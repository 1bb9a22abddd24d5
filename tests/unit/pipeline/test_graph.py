from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrunner.base.errors import PipelineError, UsageError
from pyrunner.pipeline.graph import choose, whole
from pyrunner.pipeline.job import Pipeline

Load = Callable[[str], Pipeline]
Refused = Callable[[str], PipelineError]

PROJECT = """
    stages: [build, test, deploy]
    build: {stage: build, script: x, artifacts: {paths: [out]}}
    docs: {stage: build, script: x}
    unit: {stage: test, script: x, artifacts: {paths: [report]}}
    lint: {stage: test, script: x, needs: []}
    ship: {stage: deploy, script: x, dependencies: [build], when: manual}
    never: {stage: deploy, script: x, when: never}
    fast: {stage: deploy, script: x, needs: [build, {job: unit, artifacts: false}]}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {script: x, needs: [b]}", "a:needs: names b, which does not exist"),
        ("a: {script: x, needs: [a]}", "a:needs: goes in a circle: a → a"),
        (
            "a: {script: x, needs: [b]}\nb: {script: x, needs: [c]}\nc: {script: x, needs: [a]}",
            "c:needs: goes in a circle: a → b → c → a",
        ),
        (
            "a: {script: x, stage: build, needs: [b]}\nb: {script: x, stage: test}",
            "a:needs: b is in the later stage test; a is in build",
        ),
        ("a: {script: x, needs: [b]}\nb: {script: x, when: never}", "a:needs: names b, which never runs"),
        ("a: {script: x, dependencies: [b]}", "a:dependencies: there is no job b"),
        ("a: {script: x, dependencies: [b]}\nb: {script: x}", "a:dependencies: b is not in an earlier stage"),
        (
            "b: {script: x, stage: build}\na: {script: x, dependencies: [b], needs: []}",
            "a:dependencies: b must also be in needs",
        ),
    ],
)
def test_wrong_order_is_named(refused: Refused, text: str, message: str) -> None:
    assert refused(text).message == message


def test_a_long_chain_of_needs_is_no_recursion(load: Load) -> None:
    text = "j0: {script: x}\n" + "".join(f"j{n}: {{script: x, needs: [j{n - 1}]}}\n" for n in range(1, 3000))
    assert len(whole(load(text)).jobs) == 3000


def test_artifacts_come_from_needs_or_earlier_stages(load: Load) -> None:
    graph = whole(load(PROJECT))
    sources = {name: [source.name for source in graph.sources(job)] for name, job in graph.jobs.items()}
    assert sources == {
        "build": [],
        "docs": [],
        "unit": ["build"],
        "lint": [],
        "ship": ["build"],
        "fast": ["build"],
    }


def test_chosen_jobs_bring_what_they_need(load: Load) -> None:
    pipeline = load(PROJECT)
    assert list(choose(pipeline, ["fast"]).jobs) == ["build", "unit", "fast"]
    assert list(choose(pipeline, ["lint"]).jobs) == ["lint"]
    assert list(choose(pipeline, ["fast"], alone=True).jobs) == ["fast"]
    assert list(choose(pipeline, [], "test").jobs) == ["build", "unit", "lint"]
    assert choose(pipeline, ["ship"]).played == {"ship"}


@pytest.mark.parametrize(
    ("names", "stage", "message"),
    [
        (["uint"], "", "the job uint is not in the pipeline"),
        (["never"], "", "the job never never runs"),
        ([], "tset", "there is no stage tset"),
    ],
)
def test_unknown_choices_are_refused(load: Load, names: list[str], stage: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(load(PROJECT), names, stage)
    assert str(caught.value) == message
