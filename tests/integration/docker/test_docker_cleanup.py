"""Leftovers, `docker ls` and `docker prune` on a real engine: only what is ours and nobody's any more goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrunner.config.system_id import FILE_NAME
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.cleaning import keep_within, sweep
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.owner import start_of, this_process
from pyrunner.executors.docker.volumes.eviction import CachePolicy
from pyrunner.executors.docker.volumes.uses import VolumeUses, uses_directory
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.docker_stage import DockerStages


@pytest.fixture
def engine() -> Iterator[Engine]:
    with opened(EngineAddress()) as engine:
        yield engine


def dead_owner() -> str:
    with subprocess.Popen(["true"]) as process:
        owner = replace(this_process(), pid=process.pid, start=start_of(process.pid) or 1)
    return str(owner)


def labelled(scope: DockerScope, owner: str, **more: str) -> dict[str, str]:
    return {
        labels.MANAGED: "true",
        labels.SYSTEM_ID: scope.system_id,
        labels.JOB_ID: "99",
        labels.TYPE: "service",
        labels.JOB_TIMEOUT: "1h0m0s",
        **({labels.OWNER: owner, labels.RUN: "r"} if owner else {}),
        **more,
    }


def make(engine: Engine, scope: DockerScope, name: str, found: dict[str, str]) -> None:
    """A running container on a network of its own, with a volume: all with these labels."""
    name = f"{name}-{scope.system_id}"
    engine.create_volume(name, found)
    engine.create_network(name, {"Labels": found})
    host = {"Binds": [f"{name}:/v"], "NetworkMode": name}
    body = {"Image": scope.images.build, "Cmd": ["sleep", "1000"], "Labels": found, "HostConfig": host}
    engine.start_container(engine.create_container(name, body))


def names(engine: Engine, scope: DockerScope) -> list[str]:
    return sorted(item.name.partition("-")[0] for item in scope.belongings(engine))


def command(directory: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pyrunner", "docker", *arguments, "--config", str(directory / "config.toml")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def ours(text: str, scope: DockerScope) -> list[dict[str, Any]]:
    found = json.loads(text)
    items = found["removed"] if isinstance(found, dict) else found
    return [item for item in items if item["system_id"] == scope.system_id]


def test_sweep_removes_what_dead_processes_left_and_nothing_else(engine: Engine, scope: DockerScope) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        living = replace(this_process(), pid=process.pid, start=start_of(process.pid) or 0)
        elsewhere = replace(this_process(), namespace=1, pid=1)
        make(engine, scope, "dead", labelled(scope, dead_owner()))
        make(engine, scope, "living", labelled(scope, str(living)))
        make(engine, scope, "elsewhere", labelled(scope, str(elsewhere)))
        make(engine, scope, "foreign", labelled(scope, ""))
        engine.create_volume(f"cache-{scope.system_id}", labelled(scope, dead_owner(), **{labels.REUSABLE: "true"}))
        swept = sweep(engine, scope.system_id)
        assert (len(swept.removed), swept.complete, swept.unknown) == (3, True, True)
        assert names(engine, scope) == ["cache", *["elsewhere"] * 3, *["foreign"] * 3, *["living"] * 3]
        process.kill()
    assert len(sweep(engine, scope.system_id).removed) == 3
    assert len(sweep(engine, "s_another").removed) == 0
    for kind in ("elsewhere", "foreign"):
        engine.remove_container(f"{kind}-{scope.system_id}")
        engine.remove_volume(f"{kind}-{scope.system_id}")
        engine.remove_network(f"{kind}-{scope.system_id}")


def test_listing_and_pruning(engine: Engine, scope: DockerScope, tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    (tmp_path / FILE_NAME).write_text(scope.system_id)
    make(engine, scope, "dead", labelled(scope, dead_owner()))
    cache_labels = labelled(scope, dead_owner(), **{labels.REUSABLE: "true", labels.TYPE: "cache"})
    cache = f"cache-{scope.system_id}"
    engine.create_volume(cache, cache_labels)
    with DockerStages(scope) as job:
        listed = ours(command(tmp_path, "ls", "--output", "json"), scope)
        standings = {(item["kind"], item["type"], item["standing"]) for item in listed}
        assert ("container", "build", "in use") in standings
        assert ("volume", "cache", "cache") in standings
        assert len([item for item in listed if item["standing"] == "leftover"]) == 3
        text = command(tmp_path, "ls", "--leftovers")
        assert text.startswith("KIND")
        assert f"dead-{scope.system_id}" in text
        assert job.container(labels.ObjectType.BUILD).name not in text

        dry = ours(command(tmp_path, "prune", "--dry-run", "--output", "json"), scope)
        assert sorted(item["kind"] for item in dry) == ["container", "network", "volume"]
        assert "dead" in names(engine, scope)
        assert len(ours(command(tmp_path, "prune", "--output", "json"), scope)) == 3
        assert "dead" not in names(engine, scope)
        assert job.run("echo untouched\n") == "untouched\n"

    uses = VolumeUses(uses_directory(str(tmp_path)))
    assert not ours(command(tmp_path, "prune", "--unused-for", "1h", "--output", "json"), scope)
    assert engine.volume_labels(cache) is not None
    uses.used(cache, opened=True)
    assert os.path.exists(os.path.join(uses.directory, cache))


def test_failed_job_of_this_process_is_swept_once_it_has_ended(engine: Engine, scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        assert len(sweep(engine, scope.system_id).removed) == 0
        assert job.run("echo here\n") == "here\n"


def test_cache_volume_of_a_killed_job_is_opened_by_the_next_one(
    engine: Engine, scope: DockerScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyrunner.executors.docker.volumes.uses import USES

    monkeypatch.setattr(USES, "directory", str(tmp_path / "uses"))
    first = DockerStages(scope, volumes=["/cache"], user="tester")
    first.prepare()
    (name,) = (item.name for item in scope.belongings(engine).volumes if item.labels[labels.REUSABLE] == "true")
    # as if its helper had never come so far
    first.executor.cleanup()
    engine.remove_volume(name)
    engine.create_volume(name, labelled(scope, dead_owner(), **{labels.REUSABLE: "true"}))
    assert USES.never_opened(name)
    with DockerStages(scope, volumes=["/cache"], user="tester") as second:
        second.run(":\n", helper=True)
        assert second.run("touch /cache/x && echo fine\n") == "fine\n"
    assert not USES.never_opened(name)
    assert time.time() - USES.last(name) < 60


def test_caches_beyond_their_budget_go_the_least_recently_used_first(
    engine: Engine, scope: DockerScope, tmp_path: Path
) -> None:
    uses, now = VolumeUses(str(tmp_path / "uses")), time.time() + 7200
    for number, name in enumerate(("old", "held", "new")):
        volume = f"{name}-{scope.system_id}"
        engine.create_volume(volume, labelled(scope, dead_owner(), **{labels.REUSABLE: "true"}))
        script = "head -c 1000000 /dev/zero > /v/data"
        run = ["docker", "run", "--rm", "-v", f"{volume}:/v", scope.images.build, "sh", "-c", script]
        subprocess.run(run, check=True)
        uses.used(volume, opened=True)
        os.utime(os.path.join(uses.directory, volume), (time.time() + number, time.time() + number))
    # a volume that any container has does not go, whoever made the container
    host = {"Binds": [f"held-{scope.system_id}:/v"]}
    body = {"Image": scope.images.build, "Labels": labelled(scope, ""), "HostConfig": host}
    holder = engine.create_container(f"holder-{scope.system_id}", body)
    assert keep_within(engine, "s_another", CachePolicy(budget=0), uses, now) == []
    assert keep_within(engine, scope.system_id, CachePolicy(budget=10_000_000), uses, now) == []
    assert keep_within(engine, scope.system_id, CachePolicy(budget=2_500_000), uses, now) == [f"old-{scope.system_id}"]
    assert keep_within(engine, scope.system_id, CachePolicy(unused_for=3600), uses, now) == [f"new-{scope.system_id}"]
    assert keep_within(engine, scope.system_id, CachePolicy(budget=0), uses, now) == []
    engine.remove_container(holder)
