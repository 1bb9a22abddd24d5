"""A service that has been started: what its check and the other containers need to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyrunner.executors.docker.containers import Container
from pyrunner.executors.docker.images.store import PresentImage
from pyrunner.executors.docker.services import Service


@dataclass(frozen=True, kw_only=True)
class RunningService:
    """A started service."""

    service: Service
    container: Container
    image: PresentImage
    #: On the default bridge; empty on a network of its own.
    address: str
    #: ``KEY=value`` of its container.
    environment: Sequence[str] = field(default=(), repr=False)
