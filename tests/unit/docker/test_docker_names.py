"""Names and labels of a job's objects (facts/executors.md 6.1, 6.2)."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from pyrunner.executors.docker.labels import JobFacts, Labels, ObjectType
from pyrunner.executors.docker.names import Names, dns_name

NAMES = Names(
    token="glrt-AbCdEfGhIjKl",
    short_token="AbCdEfGhI",
    system_id="s_1",
    project_id=7,
    concurrent_project_id=2,
    job_id=99,
    rand="0123456789abcdef",
)
FACTS = JobFacts(
    job_id=99,
    job_url="http://host/-/jobs/99",
    sha="abc",
    before_sha="000",
    ref="main",
    timeout=3600,
    project_id=7,
    concurrent_id=5,
    concurrent_project_id=2,
    pipeline_id="12",
    short_token="AbCdEfGhI",
    system_id="s_1",
)


def test_containers_are_named_by_runner_project_and_slot() -> None:
    assert NAMES.unique == "runner-abcdefghi-project-7-concurrent-2"
    assert NAMES.build == "runner-abcdefghi-project-7-concurrent-2-0123456789abcdef-build"
    assert NAMES.helper == "runner-abcdefghi-project-7-concurrent-2-0123456789abcdef-predefined"
    assert NAMES.service("reg/a/b", 1).endswith("-0123456789abcdef-reg__a__b-1")
    assert NAMES.network == "runner-abcdefghi-7-2-99"


def test_cache_volumes_tell_no_secret_and_stay_the_same() -> None:
    owner = hashlib.sha256(b"glrt-AbCdEfGhIjKl-s_1-7-2").hexdigest()[:32]
    digest = hashlib.md5(b"/cache").hexdigest()  # noqa: S324
    assert NAMES.cache_volume("/cache") == f"runner-{owner}-cache-{digest}"
    assert NAMES.cache_volume("/cache", protected=True) == f"runner-{owner}-cache-{digest}-protected"
    assert NAMES.temporary_volume("/cache") == f"{NAMES.unique}-0123456789abcdef-cache-{digest}"
    assert NAMES.cache_directory("/cache") == f"runner-{owner}/{digest}"


def test_two_executors_of_one_slot_have_names_of_their_own() -> None:
    fields = {name: getattr(NAMES, name) for name in ("token", "short_token", "system_id")}
    first, second = (Names(**fields, project_id=7, concurrent_project_id=2, job_id=1) for _ in range(2))
    assert first.build != second.build
    assert first.unique == second.unique


@given(st.text())
def test_host_names_are_legal_whatever_the_token_is(text: str) -> None:
    name = dns_name(text)
    assert len(name) <= 63
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith("-")
    assert not name.endswith("-")


def test_labels_of_a_container() -> None:
    labels = Labels(FACTS, {"team": "a"}).of_container(ObjectType.BUILD)
    prefix = "com.gitlab.gitlab-runner."
    assert labels == {
        "team": "a",
        f"{prefix}job.id": "99",
        f"{prefix}job.url": "http://host/-/jobs/99",
        f"{prefix}job.sha": "abc",
        f"{prefix}job.before_sha": "000",
        f"{prefix}job.ref": "main",
        f"{prefix}job.timeout": "1h0m0s",
        f"{prefix}project.id": "7",
        f"{prefix}project.runner_id": "2",
        f"{prefix}pipeline.id": "12",
        f"{prefix}runner.id": "AbCdEfGhI",
        f"{prefix}runner.local_id": "5",
        f"{prefix}runner.system_id": "s_1",
        f"{prefix}managed": "true",
        f"{prefix}type": "build",
    }


def test_labels_of_the_config_go_to_services_twice_and_not_to_volumes() -> None:
    labels = Labels(FACTS, {"team": "a"})
    service = labels.of_container(ObjectType.SERVICE, {"service": "redis"})
    assert service["team"] == service["com.gitlab.gitlab-runner.team"] == "a"
    assert "team" not in labels.of_container(ObjectType.WAIT)
    assert "team" not in labels.of_object()


def test_labels_of_the_config_cannot_hide_ours() -> None:
    labels = Labels(FACTS, {"com.gitlab.gitlab-runner.managed": "no"}).of_container(ObjectType.BUILD)
    assert labels["com.gitlab.gitlab-runner.managed"] == "true"
