from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Dependency, JobResponse, JobVariable, decode_job
from pyrunner.pipeline.job import Pipeline
from pyrunner.pipeline.payload import job_payload
from pyrunner.pipeline.variables import RunContext, resolve_nested, slug

Load = Callable[[str], Pipeline]

CONTEXT = RunContext(
    server_url="http://127.0.0.1:8080",
    project_path="group/sub/proj",
    ref="Feature/Über",
    sha="0123456789" * 4,
    message="Title\n\nBody",
    author="A <a@b>",
    refspecs=("+refs/pipelines/1:refs/pipelines/1",),
    overrides={"B": "from the command line"},
    hash_files=lambda names: "f" * 40 if "there" in names else "",
)


def values(job: JobResponse) -> dict[str, str]:
    return {item.key: item.value for item in job.variables}


def test_a_payload_survives_the_wire(load: Load) -> None:
    pipeline = load("""
        variables: {A: "1", B: "2"}
        job:
          before_script: [one]
          script: [two]
          after_script: [three]
          timeout: 5 minutes
          image: {name: debian, docker: {platform: x}}
          services: [redis]
          artifacts: {paths: [out], reports: {junit: a.xml}}
          cache: {paths: [x], key: {files: [there], prefix: p}}
    """)
    sent = job_payload(pipeline.jobs["job"], CONTEXT, 7, "token", [Dependency(id=3, name="build")])
    job = decode_job(msgspec.json.encode(sent))
    assert job == sent
    assert [(step.name, step.script) for step in job.steps] == [
        ("script", ["one", "two"]),
        ("after_script", ["three"]),
    ]
    assert job.runner_info.timeout == 300
    assert job.git_info.repo_url == "http://gitlab-ci-token:token@127.0.0.1:8080/group/sub/proj.git"
    assert [(item.artifact_type, item.artifact_format, item.when) for item in job.artifacts] == [
        ("archive", "zip", "on_success"),
        ("junit", "gzip", "always"),
    ]
    assert job.cache[0].key == "p-" + "f" * 40
    assert job.dependencies[0].id == 3


def test_predefined_variables(load: Load) -> None:
    job = job_payload(load("job: {script: x}").jobs["job"], CONTEXT, 7, "token", moment={"CI_RUNNER_ID": "9"})
    found = values(job)
    assert found["CI_COMMIT_REF_SLUG"] == "feature--ber"
    assert found["CI_COMMIT_BRANCH"] == "Feature/Über"
    assert found["CI_COMMIT_SHORT_SHA"] == "01234567"
    assert (found["CI_COMMIT_TITLE"], found["CI_COMMIT_DESCRIPTION"]) == ("Title", "Body")
    assert (found["CI_PROJECT_NAMESPACE"], found["CI_PROJECT_NAME"]) == ("group/sub", "proj")
    assert (found["CI_SERVER_HOST"], found["CI_SERVER_PORT"]) == ("127.0.0.1", "8080")
    assert (found["CI_JOB_ID"], found["CI_JOB_STAGE"], found["CI_RUNNER_ID"]) == ("7", "test", "9")
    assert [item.key for item in job.variables if item.masked] == ["CI_JOB_TOKEN"]


def test_the_command_line_wins_over_the_job_and_the_job_over_the_file(load: Load) -> None:
    pipeline = load("variables: {A: file, B: file, C: file}\njob: {script: x, variables: {A: job, B: job}}")
    found = values(job_payload(pipeline.jobs["job"], CONTEXT, 1, "t"))
    assert (found["A"], found["B"], found["C"]) == ("job", "from the command line", "file")


@pytest.mark.parametrize(
    ("text", "depth"), [("{}", 20), ("{GIT_DEPTH: 0}", 0), ("{GIT_DEPTH: 3}", 3), ("{GIT_DEPTH: x}", 20)]
)
def test_depth_of_fetches(load: Load, text: str, depth: int) -> None:
    job = load(f"job: {{script: x, variables: {text}}}").jobs["job"]
    assert job_payload(job, CONTEXT, 1, "t").git_info.depth == depth


def test_slugs() -> None:
    assert slug("Feature/Über--") == "feature--ber"
    assert len(slug("x" * 100)) == 63


def nested(**variables: str) -> dict[str, str]:
    items = [JobVariable(key=key, value=value, raw=value.startswith("raw")) for key, value in variables.items()]
    return {item.key: item.value for item in resolve_nested(items)}


def test_references_to_other_variables_are_resolved_in_any_order() -> None:
    found = nested(A="$B/a", B="${C}/b", C="c", D="$$C $unknown $", E="raw $C", F="$E")
    assert found == {
        "A": "c/b/a",
        "B": "c/b",
        "C": "c",
        "D": "$$C $unknown $",
        "E": "raw $C",
        "F": "$E",
    }


def test_circles_stay_as_they_are() -> None:
    assert nested(A="$B", B="$A", C="$A", PATH="x:$PATH") == {"A": "$B", "B": "$A", "C": "$A", "PATH": "x:$PATH"}


def test_doubling_variables_do_not_eat_the_memory() -> None:
    found = nested(V0="xxxxxxxxxx", **{f"V{n}": f"$V{n - 1}" * 10 for n in range(1, 40)})
    assert max(map(len, found.values())) <= 1 << 20


def test_a_long_chain_is_no_recursion() -> None:
    assert nested(V0="end", **{f"V{n}": f"$V{n - 1}" for n in range(1, 5000)})["V4999"] == "end"


NAMES = st.sampled_from("ABCDE")
TEXT = st.lists(st.one_of(NAMES.map("${}".format), NAMES.map("${{{}}}".format), st.sampled_from(["x", "$$", "$", "/"])))


@given(st.dictionaries(NAMES, TEXT.map("".join)))
def test_resolving_never_fails_and_leaves_nothing_that_could_be_resolved(variables: dict[str, str]) -> None:
    items = [JobVariable(key=key, value=value) for key, value in variables.items()]
    once = resolve_nested(items)
    twice = resolve_nested(once)
    assert [item.key for item in once] == [item.key for item in items]
    assert [item.value for item in once] == [item.value for item in twice]
    # the runner's own expansion must not fail on what is left
    Variables(once).expanded()
