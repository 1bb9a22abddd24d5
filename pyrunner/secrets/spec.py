"""What the payload says of each provider's secrets (facts/runner-api.md 5.7).

Reading is lenient, as on the rest of the wire: unknown keys are ignored, a missing key or a null takes the zero value.
A spec holds the job's tokens, so its `repr` shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pyrunner.secrets.errors import SecretConfigError
from pyrunner.secrets.protocol import Expand


class Spec(msgspec.Struct, kw_only=True, frozen=True):
    """Base of all specs."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def require(self, *names: str) -> None:
        """Refuse a spec that lacks one of `names`.

        Raises:
            SecretConfigError: the message names the first empty field.
        """
        for name in names:
            value: object = self
            for part in name.split("."):
                value = getattr(value, part)
            if not value:
                raise SecretConfigError(f'"{name}" is empty in the definition of the secret')


class Engine(Spec, frozen=True):
    """A secrets engine of Vault or OpenBao."""

    name: str = ""
    path: str = ""


class VaultAuth(Spec, frozen=True):
    """How to log in to Vault."""

    name: str = ""
    path: str = ""
    #: Body of the login request: ``jwt``, ``role``.
    data: dict[str, Any] = {}


class VaultServer(Spec, frozen=True):
    """A Vault or OpenBao server."""

    url: str = ""
    namespace: str = ""
    auth: VaultAuth = VaultAuth()


class VaultSpec(Spec, frozen=True):
    """``vault``"""

    server: VaultServer = VaultServer()
    engine: Engine = Engine()
    path: str = ""
    field: str = ""


class InlineAuth(Spec, frozen=True):
    """A login that goes with each request."""

    path: str = ""
    jwt: str = ""
    role: str = ""
    auth_mount: str = ""


class GitLabServer(Spec, frozen=True):
    """The OpenBao server of a GitLab instance."""

    url: str = ""
    inline_auth: InlineAuth = InlineAuth()


class GitLabSpec(Spec, frozen=True):
    """``gitlab_secrets_manager``"""

    server: GitLabServer = GitLabServer()
    engine: Engine = Engine()
    path: str = ""
    field: str = ""


class GcpServer(Spec, frozen=True):
    """The workload identity pool that trusts the job's token."""

    project_number: str = ""
    workload_identity_federation_pool_id: str = ""
    workload_identity_federation_provider_id: str = ""
    jwt: str = ""


class GcpSpec(Spec, frozen=True):
    """``gcp_secret_manager``"""

    name: str = ""
    version: str = ""
    server: GcpServer = GcpServer()


class AzureServer(Spec, frozen=True):
    """A key vault and the application that may read it."""

    client_id: str = ""
    tenant_id: str = ""
    jwt: str = ""
    url: str = ""


class AzureSpec(Spec, frozen=True):
    """``azure_key_vault``"""

    name: str = ""
    version: str = ""
    server: AzureServer = AzureServer()


class AwsServer(Spec, frozen=True):
    """Defaults for the secrets of a job, and its token."""

    region: str = ""
    jwt: str = ""
    role_arn: str = ""
    role_session_name: str = ""


class AwsSpec(Spec, frozen=True):
    """``aws_secrets_manager``"""

    secret_id: str = ""
    version_id: str = ""
    version_stage: str = ""
    field: str = ""
    region: str = ""
    role_arn: str = ""
    role_session_name: str = ""
    server: AwsServer = AwsServer()


AnySpec = TypeVar("AnySpec", bound=Spec)


def read_spec(kind: type[AnySpec], payload: Mapping[str, Any], expand: Expand | None = None) -> AnySpec:
    """`payload` as a `kind`, its strings expanded by `expand` if there is one.

    Raises:
        SecretConfigError: a field has the wrong type; the message names it and not its value.
    """
    try:
        return msgspec.convert(_read(payload, expand), kind)
    except msgspec.ValidationError as error:
        raise SecretConfigError(f"the definition of the secret is malformed: {error}") from None


def _read(value: Any, expand: Expand | None) -> Any:
    if isinstance(value, str):
        return expand(value) if expand is not None else value
    if isinstance(value, Mapping):
        return {key: _read(item, expand) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_read(item, expand) for item in value]
    return value
