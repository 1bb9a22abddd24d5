"""``azure_key_vault``: Azure Key Vault by a federated credential (facts/runner-api.md 5.7).

The job's JWT is the client assertion for an access token, which then reads the secret: two plain HTTPS requests, made
with the project's own client instead of Azure's SDK.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from pyrunner.api.errors import ClientError
from pyrunner.api.urls import parse_target
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError
from pyrunner.secrets.exchange import Caller, Request, refuse
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.spec import AzureServer, AzureSpec, read_spec

_API_VERSION = "7.4"
#: Domain of key vaults → where to log in, one row per cloud.
_CLOUDS = {
    "vault.azure.net": "https://login.microsoftonline.com",
    "vault.azure.cn": "https://login.chinacloudapi.cn",
    "vault.usgovcloudapi.net": "https://login.microsoftonline.us",
}
_PUBLIC = "vault.azure.net"


class _Token(msgspec.Struct):
    access_token: str


class _Secret(msgspec.Struct):
    value: str | None = None


class AzureSource:
    """Reads versions of secrets.

    Args:
        environment: where ``AZURE_AUTHORITY_HOST`` is read from.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, caller: Caller | None = None) -> None:
        self._environment = environment
        self._caller = caller or Caller()
        self._tokens: dict[AzureServer, str] = {}

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """See `SecretSource.resolve`."""
        secret = read_spec(AzureSpec, spec, expand)
        secret.require("name", *(f"server.{name}" for name in ("url", "client_id", "tenant_id", "jwt")))
        token = self._token(secret.server, cancel)
        place = "/".join(quote(part, safe="") for part in (secret.name, secret.version) if part)
        response = self._caller.call(
            Request(
                method="GET",
                url=f"{secret.server.url.rstrip('/')}/secrets/{place}?api-version={_API_VERSION}",
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            ),
            cancel,
        )
        if response.status == 404:
            raise SecretMissingError(self._caller.failure(response))
        if response.status != 200:
            raise refuse(self._caller, response, (403,))
        value = self._caller.read(response, _Secret).value
        if value is None:
            raise SecretMissingError(f"{self._caller.failure(response)}: the secret has no value")
        return value

    def close(self) -> None:
        """Close the connections; the access tokens expire by themselves."""
        self._caller.close()

    def _token(self, server: AzureServer, cancel: CancelToken) -> str:
        if server not in self._tokens:
            self._tokens[server] = self._login(server, cancel)
        return self._tokens[server]

    def _login(self, server: AzureServer, cancel: CancelToken) -> str:
        self._caller.hide(server.jwt)
        authority, scope = cloud_of(server.url, self._environment)
        form = {
            "grant_type": "client_credentials",
            "client_id": server.client_id,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": server.jwt,
            "scope": scope,
        }
        request = Request(
            method="POST",
            url=f"{authority}/{quote(server.tenant_id, safe='')}/oauth2/v2.0/token",
            headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
            body=urlencode(form).encode(),
        )
        response = self._caller.call(request, cancel)
        if response.status != 200:
            raise SecretError(self._caller.failure(response))
        token = self._caller.read(response, _Token).access_token
        self._caller.hide(token)
        return token


def cloud_of(url: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Where to log in, and for what, to read the key vault at `url`.

    Raises:
        SecretConfigError: `url` cannot be used.
    """
    try:
        host = parse_target(url).host
    except ClientError as error:
        raise SecretConfigError(str(error)) from None
    domain = next((domain for domain in _CLOUDS if host.endswith(f".{domain}")), _PUBLIC)
    authority = (environment.get("AZURE_AUTHORITY_HOST") or _CLOUDS[domain]).rstrip("/")
    return authority if "://" in authority else f"https://{authority}", f"https://{domain}/.default"
