"""What counts as left behind: pure, with every kind of owner."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.records import Listed
from pyrunner.executors.docker.leftovers import GRACE, Standing, Viewpoint, is_ours, of_system, standing
from pyrunner.executors.docker.owner import Fate, Owner, Runs, fate_of, start_of, this_process

HERE = Owner(boot="b1", namespace=1, pid=100, start=5)
NOW = 1_000_000.0


def look(start: int | None = 7, *, local: bool = True, runs: frozenset[str] = frozenset()) -> Viewpoint:
    return Viewpoint(here=HERE, now=NOW, runs=runs, local=local, start=lambda pid: start)


def thing(owner: Owner | str, **more: str) -> Listed:
    found = {
        labels.MANAGED: "true",
        labels.OWNER: str(owner),
        labels.RUN: "r1",
        labels.SYSTEM_ID: "s_1",
        labels.JOB_TIMEOUT: "1h0m0s",
        **more,
    }
    return Listed(id="x", name="x", labels=found, created=NOW - 60)


@given(
    st.builds(
        Owner,
        boot=st.text("0123456789abcdef-", min_size=0, max_size=36),
        namespace=st.integers(0),
        pid=st.integers(0),
        start=st.integers(0),
    )
)
def test_owner_survives_its_label(owner: Owner) -> None:
    assert Owner.parse(str(owner)) == owner


@pytest.mark.parametrize("text", ["", "x", "a.b.c.d", "b.1.2", "b.1.2.-3", "b.1.2.3.4"])
def test_foreign_text_is_no_owner(text: str) -> None:
    assert Owner.parse(text) is None
    assert standing(thing(text), look()) is Standing.UNKNOWN


def test_own_object_is_in_use_while_its_try_runs() -> None:
    assert standing(thing(HERE), look(runs=frozenset({"r1"}))) is Standing.IN_USE
    assert standing(thing(HERE), look(runs=frozenset({"r2"}))) is Standing.LEFTOVER


def test_living_other_manager_is_never_touched() -> None:
    other = replace(HERE, pid=101, start=7)
    assert standing(thing(other), look(7)) is Standing.IN_USE
    # /proc is hidden, but the process is there
    assert standing(thing(other), look(0)) is Standing.IN_USE


def test_process_id_that_was_given_again_is_another_process() -> None:
    other = replace(HERE, pid=101, start=7)
    assert standing(thing(other), look(8)) is Standing.LEFTOVER
    assert standing(thing(other), look(None)) is Standing.LEFTOVER


def test_reboot_ends_every_process_that_used_a_local_engine() -> None:
    other = replace(HERE, boot="b0")
    assert standing(thing(other), look()) is Standing.LEFTOVER
    assert standing(thing(other), look(local=False)) is Standing.UNKNOWN


def test_process_of_another_container_or_machine_is_believed_until_its_job_cannot_run_any_more() -> None:
    item = thing(replace(HERE, namespace=2))
    assert standing(item, look(None)) is Standing.UNKNOWN
    assert standing(replace(item, created=NOW - 3600 - GRACE - 1), look(None)) is Standing.LEFTOVER
    assert standing(replace(item, created=0.0), look(None)) is Standing.UNKNOWN
    unclear = thing(replace(HERE, namespace=2), **{labels.JOB_TIMEOUT: "soon"})
    assert standing(replace(unclear, created=NOW - 86400), look(None)) is Standing.UNKNOWN


def test_cache_volume_of_a_dead_manager_is_a_cache() -> None:
    item = thing(replace(HERE, pid=1, start=1), **{labels.REUSABLE: "true"})
    assert standing(item, look(None)) is Standing.CACHE


def test_objects_of_gitlab_runner_and_of_other_installations_are_not_ours() -> None:
    item = thing(HERE)
    theirs = {key: value for key, value in item.labels.items() if key != labels.OWNER}
    assert is_ours(item)
    assert not is_ours(replace(item, labels=theirs))
    assert of_system("s_1")(item)
    assert not of_system("s_2")(item)
    assert not of_system("")(item)


def test_runs_are_known_between_begin_and_end() -> None:
    runs = Runs()
    runs.begin("a")
    assert "a" in runs
    runs.end("a")
    runs.end("a")
    assert "a" not in runs


def test_this_very_process_lives_and_a_killed_one_does_not() -> None:
    here = this_process()
    assert here.pid == os.getpid()
    assert start_of(os.getpid()) == here.start
    with subprocess.Popen(["sleep", "60"]) as process:
        other = replace(here, pid=process.pid, start=start_of(process.pid) or 0)
        assert other.start >= here.start
        assert fate_of(other, here, local=True) is Fate.ALIVE
        process.kill()
    assert fate_of(other, here, local=True) is Fate.DEAD
