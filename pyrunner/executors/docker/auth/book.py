"""The credentials of a job by registry path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class RegistryCredentials:
    """For one registry or a path in it."""

    #: Normalised: ``registry.example:5000/group``; ``docker.io`` for the hub.
    registry: str
    username: str
    password: str = field(repr=False)
    #: In place of user and password.
    identity_token: str = field(default="", repr=False)
    #: For the line in the log: ``$DOCKER_AUTH_CONFIG``, a path, ``job payload (GitLab Registry)``.
    source: str

    def auth(self) -> dict[str, str]:
        """As the engine wants it."""
        if self.identity_token:
            return {"identitytoken": self.identity_token, "serveraddress": self.registry}
        return {"username": self.username, "password": self.password, "serveraddress": self.registry}


class CredentialBook:
    """All credentials of a job; of several for one path the first stays."""

    def __init__(self, entries: Iterable[RegistryCredentials]) -> None:
        self._entries: dict[str, RegistryCredentials] = {}
        for entry in entries:
            self._entries.setdefault(entry.registry, entry)

    def for_image(self, reference: str) -> RegistryCredentials | None:
        """Those of the longest path that `reference` lies in."""
        path = registry_path(reference)
        while path:
            if path in self._entries:
                return self._entries[path]
            path = path.rpartition("/")[0]
        return None


def registry_path(reference: str) -> str:
    """``registry/path/image`` of an image name: tag cut, hub images below ``docker.io``, host in lower case."""
    name = reference.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = f"{head}{slash}{tail.partition(':')[0]}"
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        return f"docker.io/{name}"
    host = host.lower()
    return f"{'docker.io' if host == 'index.docker.io' else host}/{path}"


def registry_key(key: str) -> str:
    """A key of a config file as `RegistryCredentials.registry`: ``https://host/v1/`` is the host alone."""
    bare = key.partition("://")[2] or key
    host, slash, path = bare.rstrip("/").partition("/")
    host = host.lower()
    host = "docker.io" if host == "index.docker.io" else host
    return host if path in ("", "v1", "v2") else f"{host}{slash}{path}"
