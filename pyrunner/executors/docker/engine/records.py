"""What an engine tells, as far as we look at it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What the engine tells of itself."""

    api: tuple[int, int]
    version: str
    #: ``linux``, ``windows``, ``freebsd``
    os: str
    #: Go's name: ``amd64``, ``arm64``
    arch: str
    kernel: str = ""


@dataclass(frozen=True, kw_only=True)
class ContainerState:
    """``State`` of a container, and where it is on its networks."""

    running: bool
    exit_code: int
    #: A process in it was killed because its memory limit was reached.
    out_of_memory: bool
    #: Why it could not be started; usually empty.
    error: str
    #: Network name → IPv4 address.
    addresses: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """An image that is present."""

    id: str
    digests: Sequence[str]
    entrypoint: Sequence[str]
    user: str
    exposed_ports: Sequence[str]
    #: ``KEY=value``
    environment: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A container, volume or network as listings show it. `id` is the name for volumes."""

    id: str
    name: str
    labels: Labels
    #: Seconds since 1970; 0 when the listing does not tell.
    created: float = 0.0
    running: bool = False


def moment(text: str | None) -> float:
    """Seconds since 1970 of a time as engines write it (``2026-11-21T12:00:00.123456789Z``); 0 for anything else."""
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return 0.0


def label_filter(labels: Labels) -> str:
    """`labels` as the engine's listings want them; an empty value means: with any value."""
    return json.dumps({"label": [f"{key}={value}" if value else key for key, value in labels.items()]})
