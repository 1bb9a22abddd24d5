"""``pyrunner docker ls`` and ``prune``."""

from __future__ import annotations

import time

from pyrunner.base.errors import UsageError
from pyrunner.cli.coordinator.table import age, print_json, print_table
from pyrunner.cli.docker.engines import engines, volume_uses
from pyrunner.executors.docker.engine.engine import opened
from pyrunner.executors.docker.inventory import Item, Wish, doomed, inventory, remove
from pyrunner.executors.docker.leftovers import Standing
from pyrunner.executors.docker.volumes.eviction import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation

_HEAD = ("KIND", "TYPE", "STANDING", "JOB", "RUNNER", "AGE", "LAST USE", "SIZE", "NAME")


def list_objects(call: Invocation) -> int:
    """Print what is ours."""
    found: list[tuple[str, Item]] = []
    uses = volume_uses(call)
    for address in engines(call):
        with opened(address) as engine:
            found += [(address.host, item) for item in inventory(engine, uses, sizes=call.flag("size"))]
    if call.flag("leftovers"):
        found = [(host, item) for host, item in found if item.standing is Standing.LEFTOVER]
    if call.text("output") == "json":
        print_json([_as_json(host, item) for host, item in found])
        return 0
    print_table(_HEAD, [_row(item) for _, item in found])
    return 0


def prune(call: Invocation) -> int:
    """Remove leftovers, and cache volumes as far as the flags say so; 1 when something would not go."""
    wish = _wish(call)
    uses = volume_uses(call)
    dry = call.flag("dry-run")
    gone: list[tuple[str, Item]] = []
    done = True
    for address in engines(call):
        with opened(address) as engine:
            found = inventory(engine, uses, sizes=wish.caches or wish.budget is not None or wish.unused_for is not None)
            items = doomed(found, wish, time.time())
            done &= dry or remove(engine, items, uses)
            gone += [(address.host, item) for item in items]
    if call.text("output") == "json":
        print_json({"dry_run": dry, "complete": done, "removed": [_as_json(host, item) for host, item in gone]})
    else:
        print_table(_HEAD, [_row(item) for _, item in gone])
        size = sum(item.cache.size for _, item in gone if item.cache)
        print(f"{'Would remove' if dry else 'Removed'} {len(gone)} objects, {readable_size(size)} of cache volumes")  # noqa: T201
    return 0 if done else 1


def readable_size(size: int) -> str:
    """``1.5 GB``"""
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _wish(call: Invocation) -> Wish:
    budget = None
    if text := call.text("budget"):
        try:
            budget = parse_size(text)
        except ValueError as error:
            raise UsageError(f"--budget: {error}") from error
    unused = call.seconds("unused-for")
    return Wish(
        unknown=call.flag("unknown"), caches=call.flag("caches"), budget=budget, unused_for=unused if unused else None
    )


def _row(item: Item) -> tuple[object, ...]:
    cache = item.cache
    return (
        item.kind,
        item.type or "-",
        item.standing.value,
        item.label("job.id") or "-",
        item.label("runner.id") or "-",
        age(item.listed.created),
        age(cache.used) if cache else "-",
        readable_size(cache.size) if cache and cache.size else "-",
        item.listed.name,
    )


def _as_json(host: str, item: Item) -> dict[str, object]:
    cache = item.cache
    return {
        "engine": host,
        "kind": item.kind,
        "type": item.type,
        "standing": item.standing.value,
        "id": item.listed.id,
        "name": item.listed.name,
        "job": item.label("job.id"),
        "project": item.label("project.id"),
        "runner": item.label("runner.id"),
        "system_id": item.label("runner.system_id"),
        "created": item.listed.created,
        **({"size": cache.size, "last_use": cache.used, "in_use": cache.busy} if cache else {}),
    }
