"""Where the engine is: the config, else the environment, else the platform's default (facts/executors.md 6.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyrunner.config.docker import DockerConfig


@dataclass(frozen=True, kw_only=True)
class EngineAddress:
    """How to reach an engine. Equal addresses are the same engine."""

    #: ``unix:///…``, ``tcp://host:port``, ``ssh://user@host``; empty = the platform's default socket.
    host: str = ""
    #: Directory with ``ca.pem``, ``cert.pem``, ``key.pem``; empty = no TLS.
    tls_directory: str = ""
    tls_verify: bool = False


def engine_address(config: DockerConfig, environment: Mapping[str, str] | None = None) -> EngineAddress:
    """The engine that `config` names; with an empty ``host`` all three settings come from the environment."""
    if config.host:
        return EngineAddress(host=config.host, tls_directory=config.tls_cert_path, tls_verify=config.tls_verify)
    known = os.environ if environment is None else environment
    host = known.get("DOCKER_HOST", "")
    if not host:
        return EngineAddress()
    return EngineAddress(
        host=host,
        tls_directory=known.get("DOCKER_CERT_PATH", ""),
        tls_verify=known.get("DOCKER_TLS_VERIFY", "") != "",
    )
