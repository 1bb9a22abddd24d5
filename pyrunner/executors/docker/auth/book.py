"""The credentials of a job by registry path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

#: What the engine calls the hub when it sends credentials to it.
_HUB_ADDRESS = "https://index.docker.io/v1/"


@dataclass(frozen=True, kw_only=True)
class RegistryCredentials:
    """For one registry or a path in it; either user and password or one of the tokens."""

    #: Normalised: ``registry.example:5000/group``; ``docker.io`` for the hub.
    registry: str
    #: For the line in the log: ``$DOCKER_AUTH_CONFIG``, a path, ``job payload (GitLab Registry)``.
    source: str
    username: str = ""
    password: str = field(default="", repr=False)
    #: Given to the registry's token server in place of user and password.
    identity_token: str = field(default="", repr=False)
    #: Given to the registry itself.
    registry_token: str = field(default="", repr=False)

    def auth(self) -> dict[str, str]:
        """As the engine wants it."""
        address = _HUB_ADDRESS if self.registry == "docker.io" else self.registry.partition("/")[0]
        values = {
            "username": self.username,
            "password": self.password,
            "identitytoken": self.identity_token,
            "registrytoken": self.registry_token,
        }
        return {**{key: value for key, value in values.items() if value}, "serveraddress": address}


class CredentialError(Exception):
    """A source of credentials cannot be read; the text is for a warning in the log."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Credentials that a source has, or can ask a helper program for."""

    registry: str
    source: str
    #: None: there are none after all. Raises `CredentialError`.
    take: Callable[[], RegistryCredentials | None]


#: Lists what a source offers. Raises `CredentialError`.
Source = Callable[[], Iterable[Offer]]


class CredentialBook:
    """All credentials of a job; the longest path wins, of several for one path the first.

    Nothing is read before the first image is pulled, and helper programs are asked only for the registry in question.
    """

    def __init__(self, sources: Sequence[Source], warn: Callable[[str], object] = lambda text: None) -> None:
        self._sources = sources
        self._warn = warn
        self._offers: list[Offer] | None = None
        self._taken: dict[int, RegistryCredentials | None] = {}

    def for_image(self, reference: str) -> RegistryCredentials | None:
        """Those of the longest path that `reference` lies in.

        Raises:
            SystemFailure: ``runner_configuration_error``: a config names an impossible helper program.
        """
        image = registry_path(reference)
        offers = [(number, offer) for number, offer in enumerate(self._all()) if _covers(offer.registry, image)]
        for number, offer in sorted(offers, key=lambda item: -len(item[1].registry)):
            found = self._take(number, offer)
            if found is not None:
                return found
        return None

    def _take(self, number: int, offer: Offer) -> RegistryCredentials | None:
        if number not in self._taken:
            try:
                self._taken[number] = offer.take()
            except CredentialError as error:
                self._warn(str(error))
                self._taken[number] = None
        return self._taken[number]

    def _all(self) -> list[Offer]:
        if self._offers is None:
            found: list[Offer] = []
            for source in self._sources:
                try:
                    found.extend(source())
                except CredentialError as error:
                    self._warn(str(error))
            self._offers = found
        return self._offers


def registry_path(reference: str) -> str:
    """``registry/path/image`` of an image name: tag cut, hub images below ``docker.io``, host in lower case."""
    name = reference.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = f"{head}{slash}{tail.partition(':')[0]}"
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host.lower() == "localhost"):
        return f"docker.io/{name}"
    return f"{_host(host)}/{path}"


def registry_key(key: str) -> str:
    """A key of a config file as `RegistryCredentials.registry`: ``https://host/v1/`` is the host alone."""
    bare = key.partition("://")[2] or key
    host, slash, path = bare.rstrip("/").partition("/")
    return _host(host) if path in ("", "v1", "v2") else f"{_host(host)}{slash}{path}"


def _host(host: str) -> str:
    lowered = host.lower()
    return "docker.io" if lowered == "index.docker.io" else lowered


def _covers(registry: str, image: str) -> bool:
    return image == registry or image.startswith(f"{registry}/")
