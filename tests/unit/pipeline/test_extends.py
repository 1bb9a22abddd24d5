from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.job import Pipeline

Load = Callable[[str], Pipeline]
Refused = Callable[[str], PipelineError]


def test_mappings_merge_deeply_and_lists_are_replaced(load: Load) -> None:
    jobs = load("""
        .base:
          tags: [a]
          variables: {A: "1", B: "1"}
          script: [one]
        job:
          extends: .base
          tags: [b]
          variables: {B: "2"}
    """).jobs
    job = jobs["job"]
    assert job.tags == ("b",)
    assert {key: item.value for key, item in job.variables.items()} == {"A": "1", "B": "2"}
    assert job.script == ("one",)


def test_of_several_bases_the_later_wins(load: Load) -> None:
    jobs = load("""
        .a: {script: [a], timeout: 1h}
        .b: {script: [b]}
        job: {extends: [.a, .b]}
    """).jobs
    assert (jobs["job"].script, jobs["job"].timeout) == (("b",), 3600)


def test_null_takes_an_inherited_key_away(load: Load) -> None:
    jobs = load("""
        .a: {script: [a], timeout: 1h}
        job: {extends: .a, timeout: null}
    """).jobs
    assert jobs["job"].timeout is None


def test_an_error_in_a_base_points_to_the_base(refused: Refused) -> None:
    error = refused("""
        .a:
          script: [a]
          retry: 9
        job: {extends: .a}
    """)
    assert str(error) == ".gitlab-ci.yml:4:3: job:retry: must be a whole number from 0 to 2, not the number 9"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {extends: a, script: x}", "a:extends: goes in a circle: a → a"),
        (
            "a: {extends: b, script: x}\nb: {extends: c}\nc: {extends: [a]}",
            "c:extends: goes in a circle: a → b → c → a",
        ),
        ("job: {extends: .bass, script: x}\n.base: {}", "job:extends: there is no .bass"),
        ("job: {extends: stages, script: x}\nstages: [a]", "job:extends: stages is not a job"),
        ("job: {extends: {a: b}, script: x}", "job:extends: must be a text or a list of texts, not a mapping"),
    ],
)
def test_wrong_bases_are_named(refused: Refused, text: str, message: str) -> None:
    assert refused(text).message == message


def test_too_many_levels_are_refused(refused: Refused) -> None:
    text = "".join(f"j{n}: {{extends: j{n - 1}}}\n" for n in range(1, 14)) + "j0: {script: x}\n"
    assert "more than 10 levels" in refused(text).message


def test_references_are_resolved_after_extends(load: Load) -> None:
    jobs = load("""
        .base: {script: [a, b]}
        .setup: {extends: .base}
        job:
          script:
            - !reference [.setup, script]
            - c
        other:
          script: [x]
          variables: !reference [third, variables]
        third:
          script: [y]
          variables: {A: "1"}
    """).jobs
    assert jobs["job"].script == ("a", "b", "c")
    assert jobs["other"].variables["A"].value == "1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {script: !reference [b, script]}", "!reference [b, script]: there is no b"),
        ("a: {script: !reference [a, script]}", "!reference [a, script] goes in a circle"),
        (
            "a: {script: !reference [b, script]}\nb: {script: [!reference [a, script]]}",
            "!reference [b, script] goes in a circle",
        ),
        ("a: {script: [!reference [b, x]]}\nb: {script: x}", "!reference [b, x]: there is no x"),
    ],
)
def test_wrong_references_are_named(refused: Refused, text: str, message: str) -> None:
    assert refused(text).message == message


def test_references_cannot_expand_without_end(refused: Refused) -> None:
    lines = [".r0: {s: [x, x, x, x, x, x, x, x, x, x]}"]
    lines += [f".r{n}: {{s: [{', '.join([f'!reference [.r{n - 1}, s]'] * 10)}]}}" for n in range(1, 9)]
    assert "references expand to more than" in refused("\n".join(lines)).message
