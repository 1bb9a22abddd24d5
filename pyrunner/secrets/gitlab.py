"""``gitlab_secrets_manager``: the OpenBao of a GitLab instance (facts/runner-api.md 5.7).

The login goes along with the read ("inline authentication" of OpenBao): one plain HTTPS request, no token to revoke,
nothing that an SDK would make shorter. Nothing here is expanded: the server made every string for this job.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.exchange import Caller, Request
from pyrunner.secrets.kv import api_url, read_field, secret_path
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.spec import GitLabSpec, InlineAuth, read_spec


class GitLabSource:
    """Reads fields of key-value engines with a login in each request."""

    def __init__(self, caller: Caller | None = None) -> None:
        self._caller = caller or Caller()

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """See `SecretSource.resolve`; `expand` is not used."""
        del expand
        secret = read_spec(GitLabSpec, spec)
        secret.require("server.url", "server.inline_auth.jwt", "path", "field", "engine.name", "engine.path")
        url = api_url(secret.server.url, secret_path(secret.engine, secret.path))
        headers = self._headers(secret.server.inline_auth)
        response = self._caller.call(Request(method="GET", url=url, headers=headers), cancel)
        return read_field(self._caller, response, secret.engine, secret.field)

    def close(self) -> None:
        """Close the connections."""
        self._caller.close()

    def _headers(self, auth: InlineAuth) -> dict[str, str]:
        if not auth.path:
            auth.require("auth_mount")
        headers = {
            "Accept": "application/json",
            "X-Vault-Request": "true",
            "X-Vault-Inline-Auth-Path": auth.path or f"auth/{auth.auth_mount.strip('/')}/login",
            "X-Vault-Inline-Auth-Operation": "update",
            "X-Vault-Inline-Auth-Parameter-jwt": _parameter("jwt", auth.jwt),
        }
        if auth.role:
            headers["X-Vault-Inline-Auth-Parameter-role"] = _parameter("role", auth.role)
        self._caller.hide(auth.jwt, headers["X-Vault-Inline-Auth-Parameter-jwt"])
        return headers


def _parameter(key: str, value: str) -> str:
    """A parameter of the login as OpenBao takes it in a header: URL-safe Base64 without padding of a JSON object."""
    return urlsafe_b64encode(msgspec.json.encode({"key": key, "value": value})).decode().rstrip("=")
