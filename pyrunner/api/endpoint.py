"""Which server a runner talks to, and as whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pyrunner.api.tokens import short_token


class RunnerLike(Protocol):
    """The part of a ``[[runners]]`` entry that says where to connect."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def tls_ca_file(self) -> str: ...
    @property
    def tls_cert_file(self) -> str: ...
    @property
    def tls_key_file(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server and a runner token; two runners with equal endpoints share a client (facts/runner-api.md 1.1)."""

    url: str
    #: Runner token; the registration token when registering.
    token: str = field(repr=False)
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    #: Name of the runner, for log lines only.
    name: str = field(default="", compare=False)

    @classmethod
    def of(cls, runner: RunnerLike) -> Endpoint:
        """The endpoint of a ``[[runners]]`` entry."""
        return cls(
            url=runner.url,
            token=runner.token,
            tls_ca_file=runner.tls_ca_file,
            tls_cert_file=runner.tls_cert_file,
            tls_key_file=runner.tls_key_file,
            name=runner.name,
        )

    @property
    def short_token(self) -> str:
        """The token as logs show it."""
        return short_token(self.token)

    @property
    def log_fields(self) -> dict[str, object]:
        """``runner`` and, when known, ``runner_name``."""
        fields: dict[str, object] = {"runner": self.short_token}
        if self.name:
            fields["runner_name"] = self.name
        return fields
