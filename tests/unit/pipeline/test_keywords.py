# ruff: noqa: E501 - a table reads best with one case a line
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline import job_names
from pyrunner.pipeline.job import CacheKeyFiles, Pipeline, When
from pyrunner.pipeline.keywords import KEYWORDS, Where
from pyrunner.pipeline.spot import duration

Load = Callable[[str], Pipeline]
Refused = Callable[[str], PipelineError]


def test_defaults_are_taken_by_jobs_that_say_nothing(load: Load) -> None:
    jobs = load("""
        default:
          before_script: [prepare]
          timeout: 10 minutes
          tags: [x]
        one: {script: a}
        two: {script: b, before_script: [], tags: [y]}
    """).jobs
    assert (jobs["one"].before_script, jobs["one"].timeout, jobs["one"].tags) == (("prepare",), 600, ("x",))
    assert (jobs["two"].before_script, jobs["two"].timeout, jobs["two"].tags) == ((), 600, ("y",))


def test_the_old_global_form_of_defaults_works(load: Load) -> None:
    jobs = load("image: alpine\nbefore_script: [a]\njob: {script: b}").jobs
    image = jobs["job"].image
    assert image is not None
    assert (image.name, jobs["job"].before_script) == ("alpine", ("a",))


def test_stages_have_their_implicit_neighbours(load: Load) -> None:
    assert load("job: {script: a}").stages == (".pre", "build", "test", "deploy", ".post")
    assert load("stages: [x]\njob: {script: a, stage: .post}").stages == (".pre", "x", ".post")
    assert load("job: {script: a}").jobs["job"].stage == "test"


def test_scripts_are_flattened(load: Load) -> None:
    assert load("job: {script: [a, [b, [c]], []]}").jobs["job"].script == ("a", "b", "c")


def test_a_manual_job_may_fail_unless_it_says_otherwise(load: Load) -> None:
    jobs = load("a: {script: x, when: manual}\nb: {script: x, when: manual, allow_failure: false}").jobs
    assert (jobs["a"].allow_failure.always, jobs["b"].allow_failure.always) == (True, False)


def test_variables_of_the_job_win(load: Load) -> None:
    jobs = load("""
        variables:
          A: {value: "1", description: the letter}
          B: 2
          C: 1.50
        job:
          script: x
          variables: {B: {value: $A, expand: false}}
    """).jobs
    variables = jobs["job"].variables
    assert {key: (item.value, item.raw) for key, item in variables.items()} == {
        "A": ("1", False),
        "B": ("$A", True),
        "C": ("1.5", False),
    }


def test_everything_about_a_job_is_read(load: Load) -> None:
    job = load("""
        a: {script: x, stage: build}
        job:
          script: x
          when: always
          allow_failure: {exit_codes: [3, 4]}
          needs: [a, {job: gone, optional: true}, ]
          dependencies: [a]
          retry: {max: 1, when: [script_failure, api_failure]}
          image: {name: debian, entrypoint: [""], pull_policy: always, docker: {user: 1000}}
          services: [redis, {name: postgres:16, alias: db, command: [x], variables: {A: b}}]
          cache:
            - {key: {files: [a.lock], prefix: $CI_JOB_NAME}, paths: [x], policy: pull}
            - {paths: [y], untracked: true, when: always, fallback_keys: [z]}
          artifacts:
            name: n
            paths: [out]
            exclude: [out/tmp]
            expire_in: 2 days
            when: on_failure
            reports: {junit: [a.xml, b.xml]}
    """).jobs["job"]
    assert job.when is When.ALWAYS
    assert job.allow_failure.allows(3)
    assert not job.allow_failure.allows(1)
    assert [(need.job, need.optional) for need in job.needs or ()] == [("a", False), ("gone", True)]
    assert job.retry.times == 1
    assert job.image is not None
    assert (job.image.entrypoint, job.image.options) == (("",), {"docker": {"user": 1000}})
    assert [service.alias for service in job.services] == ["", "db"]
    assert job.cache[0].key == CacheKeyFiles(files=("a.lock",), prefix="$CI_JOB_NAME")
    assert (job.cache[1].key, job.cache[1].fallback_keys) == ("default", ("z",))
    assert (job.artifacts.when, job.artifacts.reports[0].paths) == ("on_failure", ("a.xml", "b.xml"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h 30m", 5400),
        ("3 hours 30 minutes", 12600),
        ("1 hour and 5 minutes", 3900),
        ("2 days", 172800),
        ("90", 90),
        ("1 week, 1 day", 691200),
        ("never", 0),
        ("1.5h", 5400),
        ("", None),
        ("soon", None),
        ("5 lightyears", None),
        ("h", None),
        ("9" * 30, None),
        ("²", None),
    ],
)
def test_durations_in_words(text: str, seconds: int | None) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "keyword", [item.name for item in KEYWORDS.values() if item.read is None and Where.JOB in item.where]
)
def test_a_keyword_that_is_not_there_yet_is_refused_by_name(refused: Refused, keyword: str) -> None:
    error = refused(f"job:\n  script: x\n  {keyword}: y\n")
    assert str(error) == f".gitlab-ci.yml:3:3: the keyword job:{keyword} is not supported in this version"


@pytest.mark.parametrize(
    "keyword", [item.name for item in KEYWORDS.values() if item.read is None and Where.GLOBAL in item.where]
)
def test_a_global_keyword_that_is_not_there_yet_is_refused_by_name(refused: Refused, keyword: str) -> None:
    error = refused(f"{keyword}: {{a: b}}\njob: {{script: x}}\n")
    assert str(error) == f".gitlab-ci.yml:1:1: the keyword {keyword} is not supported in this version"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("job:\n  script: x\n  scirpt: y", "3:3", "unknown keyword job:scirpt", "did you mean script?"),
        ("job: {script: x, stages: [a]}", "1:18", "the keyword stages is not allowed in job", ""),
        ("default: {script: x}\njob: {script: x}", "1:11", "the keyword script is not allowed in default", ""),
        ("stags: [a]\njob: {script: x}", "1:1", "stags is neither a keyword nor a job", "did you mean stages?"),
        ("job: {stage: test}", "1:1", "job: script is missing", ""),
        ("defualt: {image: x}\njob: {script: x}", "1:1", "defualt: script is missing", "did you mean default?"),
        ("job: {script: []}", "1:7", "job:script: has no command", ""),
        ("job: {script: {a: b}}", "1:7", "job:script: must be a command or a list of commands, not a mapping", ""),
        ("job:\n  script:\n    - echo a: b", "3:7", "job:script: must be a command", "a colon and a space"),
        ("job: {script: [true]}", "1:16", "job:script: must be a command", 'quote it: "true"'),
        ("job: {script: [[[[[[[[[[[[[x]]]]]]]]]]]]]}", "1:26", "job:script: lists are nested more than 10", ""),
        ("job: {script: x, stage: tset}", "1:18", "job: there is no stage tset", "did you mean test?"),
        ("job: {script: x, when: sometimes}", "1:18", "job:when: must be one of on_success, on_failure", ""),
        ("job: {script: x, when: delayed}", "1:18", "job:when: the value delayed is not supported", ""),
        ("job: {script: x, allow_failure: maybe}", "1:18", "job:allow_failure: must be true, false or", ""),
        ("job: {script: x, allow_failure: {exit_code: 1}}", "1:34", "unknown keyword job:allow_failure:exit_code", "exit_codes"),
        ("job: {script: x, retry: 3}", "1:18", "job:retry: must be a whole number from 0 to 2", ""),
        ("job: {script: x, retry: {max: 1, when: never}}", "1:34", "job:retry:when: must be one of always", ""),
        ("job: {script: x, timeout: soon}", "1:18", "job:timeout: must be a duration such as 1h 30m", ""),
        ("job: {script: x, timeout: 0}", "1:18", "job:timeout: must be longer than a second", ""),
        ("job: {script: x, variables: [A]}", "1:18", "job:variables: must be a mapping of names to values", ""),
        ("job: {script: x, variables: {A: true}}", "1:30", "job:variables:A: must be a text or a number", '"true"'),
        ("job: {script: x, variables: {A-B: x}}", "1:30", "job:variables:A-B: a variable name has letters", ""),
        ("job: {script: x, variables: {A: {valeu: x}}}", "1:34", "unknown keyword job:variables:A:valeu", "value"),
        ("job: {script: x, artifacts: {path: [x]}}", "1:30", "unknown keyword job:artifacts:path", "did you mean paths?"),
        ("job: {script: x, artifacts: {paths: x}}", "1:30", "job:artifacts:paths: must be a list of paths", ""),
        ("job: {script: x, artifacts: {reports: {dotenv: x}}}", "1:40", "the keyword job:artifacts:reports:dotenv is not", ""),
        ("job: {script: x, artifacts: {expire_in: later}}", "1:30", "job:artifacts:expire_in: must be a duration", ""),
        ("job: {script: x, cache: {paths: [x], policy: push-pull}}", "1:38", "job:cache:policy: must be one of pull-push", ""),
        ("job: {script: x, cache: {paths: [x], key: a/b}}", "1:38", 'job:cache:key: "a/b" cannot be a cache key', ""),
        ("job: {script: x, cache: {paths: [x], key: {files: []}}}", "1:44", "job:cache:key:files: must list one or two", ""),
        ("job: {script: x, image: {entrypoint: [x]}}", "1:18", "job:image: name is missing", ""),
        ("job: {script: x, image: 1.2}", "1:18", "job:image: must be a text, not the number 1.2", 'quote it: "1.2"'),
        ("job: {script: x, services: redis}", "1:18", "job:services: must be a list of images", ""),
        ("job: {script: x, tags: [1]}", "1:25", "job:tags: must be a text", ""),
        ("job: {script: x, needs: [{pipeline: x}]}", "1:27", "the keyword job:needs:pipeline is not supported", ""),
        ("a: {script: x}\njob: {script: x, needs: [a, a]}", "2:29", "job:needs: a is listed twice", ""),
        ("image: a\ndefault: {image: b}\njob: {script: x}", "1:1", "image is set here and in default", ""),
        (".hidden: {script: x}", "1:1", "there is no job", ""),
        ("true: {script: x}", "1:1", "'true' cannot be the name of a job", ""),
        ("job: {script: x}\nother: 5", "2:1", "other is neither a keyword nor a job", ""),
        ("stages: test\njob: {script: x}", "1:1", "stages: must be a list of names", ""),
        ("script: x\njob: {script: x}", "1:1", "the keyword script is not allowed in the top of the file", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(refused: Refused, text: str, place: str, message: str, hint: str) -> None:
    error = refused(text)
    assert str(error).startswith(f".gitlab-ci.yml:{place}: {message}")
    assert hint in error.hint


def test_hidden_entries_may_hold_anything(load: Load) -> None:
    assert list(load(".x: [1, 2]\n.y: {whatever: 1}\njob: {script: x}").jobs) == ["job"]


def test_names_of_jobs_are_found_in_files_that_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ci.yml"
    file.write_text(".hidden: {a: b}\nvariables: {A: b}\nworkflow: {rules: []}\none: {only: [x]}\ntwo: {script: y}\n")
    assert job_names(str(file)) == ["one", "two"]
