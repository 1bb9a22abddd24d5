"""Names of all objects of a job (facts/executors.md 6.1). Pure."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field

#: The longest name that DNS allows for a host.
_LONGEST = 63
_ILLEGAL = re.compile(r"[^a-z0-9-]")


def dns_name(text: str) -> str:
    """`text` as a host name (RFC 1123): lower case, illegal characters removed, not longer than 63."""
    return _ILLEGAL.sub("", text.lower())[:_LONGEST].strip("-")


def path_digest(path: str) -> str:
    """How names tell the destination of a volume."""
    return hashlib.md5(path.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names of one executor object's containers, volumes and network."""

    token: str
    short_token: str
    system_id: str
    project_id: int
    #: Number of this job among the running ones of its project.
    concurrent_project_id: int
    job_id: int
    rand: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def unique(self) -> str:
        """Of this runner, project and slot; also the containers' host name."""
        return dns_name(f"runner-{self.short_token}-project-{self.project_id}-concurrent-{self.concurrent_project_id}")

    @property
    def build(self) -> str:
        """The build container."""
        return f"{self.unique}-{self.rand}-build"

    @property
    def helper(self) -> str:
        """The helper container."""
        return f"{self.unique}-{self.rand}-predefined"

    def service(self, service: str, index: int) -> str:
        """A service's container."""
        return f"{self.unique}-{self.rand}-{service.replace('/', '__')}-{index}"

    def permission(self, volume: str) -> str:
        """The container that opens a volume's permissions."""
        return f"{volume}-set-permission-{secrets.token_hex(8)}"

    @property
    def network(self) -> str:
        """The network of this job."""
        return dns_name(f"runner-{self.short_token}-{self.project_id}-{self.concurrent_project_id}-{self.job_id}")

    @property
    def cache_owner(self) -> str:
        """Whose cache it is: the same for all jobs of a runner, project and slot, and no secret."""
        text = f"{self.token}-{self.system_id}-{self.project_id}-{self.concurrent_project_id}"
        return f"runner-{hashlib.sha256(text.encode()).digest()[:16].hex()}"

    def cache_volume(self, path: str, *, protected: bool = False) -> str:
        """The volume that keeps `path` between jobs."""
        return f"{self.cache_owner}-cache-{path_digest(path)}{_suffix(protected)}"

    def temporary_volume(self, path: str, *, protected: bool = False) -> str:
        """The volume that holds `path` for this job only."""
        return f"{self.unique}-{self.rand}-cache-{path_digest(path)}{_suffix(protected)}"

    def cache_directory(self, path: str, *, protected: bool = False) -> str:
        """Below ``cache_dir`` of the config: the directory on the host that keeps `path` between jobs."""
        return f"{self.cache_owner}/{path_digest(path)}{_suffix(protected)}"


def _suffix(protected: bool) -> str:
    return "-protected" if protected else ""
