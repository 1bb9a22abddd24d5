"""All that is ours in an engine, for people: what it is, whose it is, what may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrunner.executors.docker import labels
from pyrunner.executors.docker.cleaning import viewpoint
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.records import Listed
from pyrunner.executors.docker.ledger import Belongings, belongings, remove_all
from pyrunner.executors.docker.leftovers import Standing, is_ours, standing
from pyrunner.executors.docker.volumes.eviction import CacheVolume, evicted
from pyrunner.executors.docker.volumes.uses import VolumeUses


@dataclass(frozen=True, kw_only=True)
class Item:
    """One object."""

    #: ``container``, ``volume``, ``network``
    kind: str
    listed: Listed
    standing: Standing
    #: Of a cache volume; None for everything else.
    cache: CacheVolume | None = None

    @property
    def type(self) -> str:
        """``build``, ``predefined``, ``service``, ``cache`` …; empty for networks."""
        return self.listed.labels.get(labels.TYPE, "")

    def label(self, key: str) -> str:
        """A label, by its name behind the common prefix."""
        return self.listed.labels.get(f"{labels.PREFIX}{key}", "")


def inventory(engine: Engine, uses: VolumeUses, *, sizes: bool = False) -> list[Item]:
    """Everything that carries our labels, containers first; `sizes` takes an engine a while.

    Raises:
        EngineError: it does not answer.
    """
    view = viewpoint(engine.address)
    found = belongings(engine).only(is_ours)
    usage = engine.volume_usage() if sizes and found.volumes else {}

    def item(kind: str, listed: Listed) -> Item:
        place = standing(listed, view)
        # not asked for is as good as in use: then nobody removes it
        size, busy = usage.get(listed.name, (0, True))
        last = max(uses.last(listed.name), listed.created)
        is_cache = place is Standing.CACHE
        cache = CacheVolume(name=listed.name, size=size, used=last, busy=busy) if is_cache else None
        return Item(kind=kind, listed=listed, standing=place, cache=cache)

    return [
        *(item("container", listed) for listed in found.containers),
        *(item("volume", listed) for listed in found.volumes),
        *(item("network", listed) for listed in found.networks),
    ]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a person wants to be rid of, beside leftovers."""

    #: Also what belongs to processes that cannot be seen from here.
    unknown: bool = False
    #: All cache volumes that are not in use.
    caches: bool = False
    budget: int | None = None
    unused_for: float | None = None


def doomed(items: Sequence[Item], wish: Wish, now: float) -> list[Item]:
    """What has to go. Pure."""
    kinds = {Standing.LEFTOVER, *({Standing.UNKNOWN} if wish.unknown else ())}
    caches = [item.cache for item in items if item.cache is not None]
    unused_for = 0.0 if wish.caches else wish.unused_for
    gone = {volume.name for volume in evicted(caches, now, budget=wish.budget, unused_for=unused_for)}
    return [
        item
        for item in items
        if item.standing in kinds or (item.standing is Standing.CACHE and item.listed.name in gone)
    ]


def remove(engine: Engine, items: Sequence[Item], uses: VolumeUses) -> bool:
    """Remove these; what cannot be removed is logged. Whether all went."""
    by_kind: dict[str, list[Listed]] = {"container": [], "volume": [], "network": []}
    for item in items:
        by_kind[item.kind].append(item.listed)
    done = remove_all(
        engine,
        Belongings(containers=by_kind["container"], volumes=by_kind["volume"], networks=by_kind["network"]),
    )
    for volume in by_kind["volume"]:
        uses.forget(volume.name)
    return done
