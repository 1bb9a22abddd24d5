"""Which cache volumes go, and what is remembered of their use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.cli.docker.objects import readable_size
from pyrunner.executors.docker.volumes.eviction import JUST_USED, CacheVolume, evicted, parse_size
from pyrunner.executors.docker.volumes.uses import VolumeUses

NOW = 1_000_000.0

VOLUMES = st.lists(
    st.builds(
        CacheVolume,
        name=st.uuids().map(str),
        size=st.integers(0, 1000),
        used=st.floats(0, NOW),
        busy=st.booleans(),
    ),
    max_size=12,
)


def volume(name: str, size: int, ago: float, *, busy: bool = False) -> CacheVolume:
    return CacheVolume(name=name, size=size, used=NOW - ago, busy=busy)


@given(VOLUMES, st.integers(0, 5000), st.none() | st.floats(0, NOW))
def test_budget_is_kept_as_far_as_it_can_be(volumes: list[CacheVolume], budget: int, unused: float | None) -> None:
    gone = evicted(volumes, NOW, budget=budget, unused_for=unused)
    left = [item for item in volumes if item not in gone]
    assert not [item for item in gone if item.busy or item.used + JUST_USED > NOW]
    free = [item for item in left if item.size and not item.busy and item.used + JUST_USED <= NOW]
    assert sum(item.size for item in left) <= budget or not free
    if unused is None:
        # none goes that was used later than one that stays
        assert not gone or not free or max(item.used for item in gone) <= min(item.used for item in free)
        # and none goes without need
        if gone:
            assert sum(item.size for item in left) + gone[-1].size > budget


def test_least_recently_used_goes_first() -> None:
    old, middle, new = volume("a", 5, 9000), volume("b", 5, 8000), volume("c", 5, 7000)
    assert evicted([new, old, middle], NOW, budget=10) == [old]
    assert evicted([new, old, middle], NOW, budget=4) == [old, middle, new]
    assert evicted([new, old, middle], NOW, unused_for=7500) == [old, middle]
    assert evicted([new, old, middle], NOW) == []


def test_volume_in_use_or_just_used_stays_and_counts() -> None:
    busy, fresh, old = volume("a", 50, 9000, busy=True), volume("b", 50, 1), volume("c", 1, 8000)
    assert evicted([busy, fresh, old], NOW, budget=100) == [old]
    assert evicted([busy, fresh, old], NOW, budget=0, unused_for=0) == [old]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10GB", 10**10),
        ("10g", 10**10),
        ("512MiB", 512 << 20),
        ("0", 0),
        ("1.5 kB", 1500),
        ("7B", 7),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1XB", "1e9", "ten"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


def test_sizes_for_people() -> None:
    assert [readable_size(size) for size in (0, 999, 1500, 2_000_000, 3 * 10**15)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.0 MB",
        "3000.0 TB",
    ]


def test_use_is_remembered_and_forgotten(tmp_path: Path) -> None:
    uses = VolumeUses(str(tmp_path / "a" / "b"))
    assert uses.last("v") == 0
    assert not uses.never_opened("v")
    uses.used("v")
    assert uses.never_opened("v")
    os.utime(tmp_path / "a/b/v", (5, 5))
    assert uses.last("v") == 5
    uses.used("v", opened=True)
    assert uses.last("v") > 5
    assert not uses.never_opened("v")
    uses.used("v")
    assert not uses.never_opened("v")
    uses.forget("v")
    uses.forget("v")
    assert uses.last("v") == 0


def test_names_that_are_no_files_and_a_missing_directory_do_no_harm(tmp_path: Path) -> None:
    for uses in (VolumeUses(), VolumeUses(str(tmp_path / "file"))):
        (tmp_path / "file").touch()
        for name in ("", "..", "a/b", "ok"):
            uses.used(name)
            uses.forget(name)
            assert uses.last(name) == 0
            assert not uses.never_opened(name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
