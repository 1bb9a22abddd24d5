"""What a container shall be, and the body that the Engine API wants for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """One container to create. `host_config` comes from `host_config.py`, everything else is said here."""

    name: str
    #: What the engine is given: the digest or id of an image that is present.
    image: str
    labels: Mapping[str, str]
    host_config: Mapping[str, Any]
    #: None = the image's own.
    command: Sequence[str] | None = None
    entrypoint: Sequence[str] | None = None
    environment: Sequence[str] = ()
    hostname: str = ""
    user: str = ""
    #: Keep stdin open for a script; `once` closes it behind the first who attaches.
    stdin: bool = False
    stdin_once: bool = False
    #: Network name → aliases, where it is not the one of ``NetworkMode`` alone.
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    mac_address: str = ""
    platform: str = ""

    def payload(self) -> dict[str, Any]:
        """Body of ``POST /containers/create``; what is not set is left to image and engine."""
        body: dict[str, Any] = {
            "Image": self.image,
            "Labels": dict(self.labels),
            "Env": list(self.environment),
            "Tty": False,
            "AttachStdin": self.stdin,
            "AttachStdout": True,
            "AttachStderr": True,
            "OpenStdin": self.stdin,
            "StdinOnce": self.stdin_once,
            "HostConfig": dict(self.host_config),
        }
        optional = {
            "Cmd": None if self.command is None else list(self.command),
            "Entrypoint": None if self.entrypoint is None else list(self.entrypoint),
            "Hostname": self.hostname or None,
            "User": self.user or None,
            "NetworkingConfig": self._endpoints(),
        }
        return {**body, **{key: value for key, value in optional.items() if value is not None}}

    def _endpoints(self) -> dict[str, Any] | None:
        endpoints: dict[str, Any] = {name: {"Aliases": list(aliases)} for name, aliases in self.aliases.items()}
        if self.mac_address:
            mode = str(self.host_config.get("NetworkMode") or "default")
            endpoints.setdefault(mode, {})["MacAddress"] = self.mac_address
        return {"EndpointsConfig": endpoints} if endpoints else None
