"""Which cache volumes have to go so that the rest fits: the least recently used ones. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyrunner.base.errors import ConfigError
from pyrunner.config.docker import DockerConfig

#: Seconds after a use during which a volume stays: its job may not have made a container of it yet.
JUST_USED = 600.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, kw_only=True)
class CacheVolume:
    """A cache volume of the engine."""

    name: str
    #: Bytes; 0 when the engine cannot tell.
    size: int
    #: Last use, seconds since 1970.
    used: float
    #: A container has it.
    busy: bool


@dataclass(frozen=True, kw_only=True)
class CachePolicy:
    """How much cache volumes may take; None = no limit."""

    budget: int | None = None
    unused_for: float | None = None


def cache_policy(docker: DockerConfig) -> CachePolicy | None:
    """What ``[runners.docker.cache_volumes]`` says; None when that is nothing.

    Raises:
        ConfigError: the budget is no size.
    """
    config = docker.cache_volumes
    if config is None or not (config.budget or config.unused_for):
        return None
    try:
        budget = parse_size(config.budget) if config.budget else None
    except ValueError as error:
        raise ConfigError(f"[runners.docker.cache_volumes] budget: {error}") from error
    return CachePolicy(budget=budget, unused_for=config.unused_for or None)


def evicted(
    volumes: Iterable[CacheVolume], now: float, *, budget: int | None = None, unused_for: float | None = None
) -> list[CacheVolume]:
    """What has to go, the least recently used first.

    Those unused for `unused_for` seconds go in any case, then as many as it takes until all together have at most
    `budget` bytes. One that is in use, or has just been, never goes, and counts.
    """
    known = sorted(volumes, key=lambda volume: (volume.used, volume.name))
    free = [volume for volume in known if not volume.busy and volume.used + JUST_USED <= now]
    doomed = [volume for volume in free if unused_for is not None and volume.used + unused_for <= now]
    left = sum(volume.size for volume in known) - sum(volume.size for volume in doomed)
    for volume in free:
        if budget is None or left <= budget:
            break
        # an empty one makes no room
        if volume not in doomed and volume.size:
            doomed.append(volume)
            left -= volume.size
    return sorted(doomed, key=lambda volume: (volume.used, volume.name))


def parse_size(text: str) -> int:
    """Bytes of ``10GB`` (10⁹ each) or ``10GiB`` (2³⁰ each).

    Raises:
        ValueError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is no size, expected one such as "10GB" or "512MiB"')
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS[match[2].lower()])
