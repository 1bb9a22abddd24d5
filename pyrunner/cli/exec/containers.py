"""What `exec --executor docker` has beyond the shell: images, and a server that containers reach."""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

from pyrunner.base.errors import PyrunnerError, UsageError
from pyrunner.cli.exec.plan import Plan
from pyrunner.cli.exec.rooms import Room

if TYPE_CHECKING:
    from pyrunner.config.docker import DockerConfig

#: Executors whose jobs run in containers.
DOCKER = ("docker",)
_BRIDGE = "bridge"
_SECRET = 24


def check_images(plan: Plan) -> None:
    """Hold flags and file against the executor before anything starts.

    Raises:
        UsageError: a flag that the executor has no use for, or a job without an image.
    """
    if plan.executor not in DOCKER:
        given = "--image" if plan.image else "--helper-image" if plan.helper_image else ""
        if given:
            raise UsageError(f"{given}: the {plan.executor} executor has no images; --executor docker has")
        return
    bare = [job.name for job in plan.graph.jobs.values() if job.image is None]
    if bare and not plan.image:
        more = f" (and {len(bare) - 1} more)" if len(bare) > 1 else ""
        raise UsageError(f'job "{bare[0]}"{more} has no image: say one in the file with image:, or with --image')


def server_host(plan: Plan) -> str:
    """The address of this machine that the jobs reach: loopback, or for containers the bridge's gateway.

    It is the only address that is listened on: other machines have no route to it by themselves.

    Raises:
        PyrunnerError: the engine does not answer, or its bridge is not on this machine.
    """
    if plan.executor not in DOCKER:
        return "127.0.0.1"
    from pyrunner.config.docker import DockerConfig
    from pyrunner.executors.docker.engine.address import engine_address
    from pyrunner.executors.docker.engine.engine import opened

    with opened(engine_address(DockerConfig())) as engine:
        gateway = engine.network_gateway(_BRIDGE)
    try:
        socket.create_server((gateway, 0)).close()
    except OSError as error:
        raise PyrunnerError(
            f"the containers would not reach this process: the gateway of the engine's bridge ({gateway or 'none'}) is "
            f"no address of this machine ({error.strerror}); exec needs an engine that runs here, as root"
        ) from None
    return gateway


def docker_config(plan: Plan, room: Room) -> DockerConfig:
    """``[runners.docker]`` of the run.

    Images that are here are taken as they are, a job may say otherwise. Caches are in a directory because each slot of
    jobs would have a volume of its own, and a job would miss what another one has cached.
    """
    from pyrunner.config.docker import PULL_POLICIES, DockerConfig

    caches = room.caches / "containers"
    caches.mkdir(mode=0o700, exist_ok=True)
    return DockerConfig(
        image=plan.image,
        helper_image=plan.helper_image,
        pull_policy=["if-not-present"],
        allowed_pull_policies=list(PULL_POLICIES),
        volumes=[f"{caches}:/cache"],
    )


def lasting_secret(room: Room) -> str:
    """24 random hex digits that stay the same for a room: volumes are named after the runner's whole token."""
    path = room.builds.parent / "runner-secret"
    try:
        kept = path.read_text()
    except FileNotFoundError:
        kept = ""
    if len(kept) != _SECRET:
        kept = secrets.token_hex(_SECRET // 2)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(kept)
        fresh.rename(path)
    return kept
