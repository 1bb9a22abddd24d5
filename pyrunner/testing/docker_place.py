"""Rows of jobs in containers of a real engine (see `job_life`)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyrunner.testing.docker_images import test_images
from pyrunner.testing.docker_scope import DockerScope, host_address, why_no_engine
from pyrunner.testing.job_life import Place
from pyrunner.testing.runner_service import service_options

#: Jobs of one runner at once.
_AT_ONCE = 6


def docker_place() -> Place:
    """Jobs in containers. The table's directory is there at its own path, so rows see their rooms."""
    # tables of other processes meet the same engine
    system_id = f"s_{secrets.token_hex(6)}"
    return Place(
        name="docker",
        entry=_entry,
        project_dir=lambda builds, short, slug: f"{builds}/{slug}",
        options=service_options(system_id=system_id),
        exit_code="exit code",
        missing=why_no_engine,
        host=host_address,
        around=lambda: _nothing_left(system_id),
        in_time=120.0,
    )


def _entry(directory: Path) -> Mapping[str, Any]:
    images = test_images()
    docker = {
        "image": images.build,
        "helper_image": images.helper,
        "pull_policy": ["never"],
        "volumes": ["/cache", f"{directory.parent}:{directory.parent}"],
    }
    return {"builds_dir": "/builds", "limit": _AT_ONCE, "docker": docker}


def _nothing_left(system_id: str) -> AbstractContextManager[DockerScope]:
    return DockerScope(images=test_images(), system_id=system_id).checked()
