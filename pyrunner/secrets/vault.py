"""``vault``: HashiCorp Vault and OpenBao with the job's JWT (facts/runner-api.md 5.7).

One login per server, namespace and role serves all secrets of a job; its token is revoked when the job has them. It is
two plain HTTPS requests beside the login, made with the project's own client: an SDK would add nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from pyrunner.api.exchange import Response
from pyrunner.api.http import HttpClient
from pyrunner.api.tls import TlsFiles
from pyrunner.api.urls import clean_url
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretOutageError
from pyrunner.secrets.exchange import Caller, Request, certified_client, refuse
from pyrunner.secrets.kv import WRONG_SETTING, api_url, read_field, redirected_request, secret_path
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.spec import VaultServer, VaultSpec, read_spec

log = logging.getLogger(__name__)

#: Seconds to give a token back: it expires by itself too.
_REVOKE_TIMEOUT = 5.0


class _Auth(msgspec.Struct):
    client_token: str
    #: ``service`` or ``batch``; batch tokens cannot be revoked and are gone soon.
    kind: str = msgspec.field(name="token_type", default="")


class _Login(msgspec.Struct):
    auth: _Auth


def vault_client(url: str, environment: Mapping[str, str] = os.environ) -> HttpClient:
    """A client with the certificates that Vault's own tools read from the environment."""
    names = ("VAULT_CACERT", "VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY")
    return certified_client(url, TlsFiles(*(environment.get(name, "") for name in names)))


class VaultSource:
    """Reads fields of key-value engines."""

    def __init__(self, caller: Caller | None = None) -> None:
        self._caller = caller or Caller(vault_client)
        self._logins: dict[bytes, tuple[VaultServer, _Auth]] = {}

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """See `SecretSource.resolve`."""
        secret = read_spec(VaultSpec, spec, expand)
        secret.require("server.url", "path", "field", "engine.name", "engine.path")
        path = secret_path(secret.engine, secret.path)
        headers = _headers(secret.server, self._token(secret.server, cancel))
        request = Request(method="GET", url=api_url(secret.server.url, path), headers=headers)
        return read_field(self._caller, self._send(request, cancel), secret.engine, secret.field)

    def close(self) -> None:
        """Revoke all tokens and close the connections."""
        # not under the job's cancel: a cancelled job leaves no token behind either
        limit = CancelToken().child(_REVOKE_TIMEOUT)
        for server, login in self._logins.values():
            if login.kind != "batch":
                self._revoke(server, login.client_token, limit)
        limit.close()
        self._logins.clear()
        self._caller.close()

    def _token(self, server: VaultServer, cancel: CancelToken) -> str:
        key = msgspec.json.encode(server, order="sorted")
        if key not in self._logins:
            self._logins[key] = (server, self._login(server, cancel))
        return self._logins[key][1].client_token

    def _login(self, server: VaultServer, cancel: CancelToken) -> _Auth:
        auth = server.auth
        server.require("auth.path", "auth.data")
        if auth.name not in ("jwt", ""):
            raise SecretConfigError(f'unknown Vault authentication method "{auth.name}", expected: jwt')
        # everything but the role proves something; the role is what messages of a refused login are about
        self._caller.hide(*(str(value) for name, value in auth.data.items() if name != "role"))
        response = self._send(
            Request(
                method="PUT",
                url=api_url(server.url, f"auth/{auth.path.strip('/')}/login"),
                headers=_headers(server) | {"Content-Type": "application/json"},
                body=msgspec.json.encode(auth.data),
            ),
            cancel,
        )
        if response.status != 200:
            raise refuse(self._caller, response, WRONG_SETTING)
        login = self._caller.read(response, _Login).auth
        if not login.client_token:
            raise SecretOutageError(f"{self._caller.failure(response)}: the answer has no token")
        self._caller.hide(login.client_token)
        return login

    def _send(self, request: Request, cancel: CancelToken) -> Response:
        response = self._caller.call(request, cancel)
        again = redirected_request(request, response)
        return self._caller.call(again, cancel) if again else response

    def _revoke(self, server: VaultServer, token: str, limit: CancelToken) -> None:
        url = api_url(server.url, "auth/token/revoke-self")
        reason = ""
        try:
            response = self._send(Request(method="PUT", url=url, headers=_headers(server, token)), limit)
            if response.status >= 300:
                reason = self._caller.failure(response)
        except (SecretError, TimeoutError) as error:
            reason = str(error)
        if reason:
            fields = {"action": "vault_token_kept", "url": clean_url(url), "error": reason}
            log.warning("Vault token was not revoked and lives until it expires", extra=fields)


def _headers(server: VaultServer, token: str = "") -> dict[str, str]:
    headers = {"X-Vault-Request": "true", "Accept": "application/json"}
    if server.namespace:
        headers["X-Vault-Namespace"] = server.namespace
    if token:
        headers["X-Vault-Token"] = token
    return headers
