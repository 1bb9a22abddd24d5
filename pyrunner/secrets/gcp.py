"""``gcp_secret_manager``: Google Cloud Secret Manager by workload identity federation (facts/runner-api.md 5.7).

The job's JWT is exchanged for an access token, which then reads the secret: two plain HTTPS requests, made with the
project's own client instead of Google's SDK (gRPC and protobuf).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from pyrunner.api.exchange import Response
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.crc32c import crc32c
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from pyrunner.secrets.exchange import Caller, Request, refuse
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.spec import GcpServer, GcpSpec, read_spec
from pyrunner.secrets.values import from_base64, text_of

_TYPES = "urn:ietf:params:oauth"
_FULL_NAME = re.compile(r"projects/[^/]+/secrets/[^/]+")


class _Token(msgspec.Struct):
    access_token: str


class _Payload(msgspec.Struct):
    data: str = ""
    #: A 64-bit number, which JSON of Google carries as a text.
    data_crc32c: str = msgspec.field(name="dataCrc32c", default="")


class _Version(msgspec.Struct):
    payload: _Payload


class GcpSource:
    """Reads versions of secrets.

    Args:
        sts_url: of the Security Token Service.
        secrets_url: of Secret Manager.
    """

    def __init__(
        self,
        sts_url: str = "https://sts.googleapis.com",
        secrets_url: str = "https://secretmanager.googleapis.com",
        caller: Caller | None = None,
    ) -> None:
        self._sts_url = sts_url
        self._secrets_url = secrets_url
        self._caller = caller or Caller()
        self._tokens: dict[GcpServer, str] = {}

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """See `SecretSource.resolve`."""
        secret = read_spec(GcpSpec, spec, expand)
        names = ("project_number", "workload_identity_federation_pool_id", "workload_identity_federation_provider_id")
        secret.require("name", *(f"server.{name}" for name in names), "server.jwt")
        path = f"{_resource(secret)}/versions/{quote(secret.version or 'latest', safe='')}"
        token = self._token(secret.server, cancel)
        response = self._caller.call(
            Request(
                method="GET",
                url=f"{self._secrets_url}/v1/{path}:access",
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            ),
            cancel,
        )
        if response.status == 404:
            raise SecretMissingError(self._caller.failure(response))
        if response.status != 200:
            raise refuse(self._caller, response, (403,))
        return text_of(self._payload(response), path)

    def close(self) -> None:
        """Close the connections; the access tokens expire by themselves."""
        self._caller.close()

    def _token(self, server: GcpServer, cancel: CancelToken) -> str:
        if server not in self._tokens:
            self._tokens[server] = self._exchange(server, cancel)
        return self._tokens[server]

    def _exchange(self, server: GcpServer, cancel: CancelToken) -> str:
        self._caller.hide(server.jwt)
        pool, provider = server.workload_identity_federation_pool_id, server.workload_identity_federation_provider_id
        audience = (
            f"//iam.googleapis.com/projects/{server.project_number}/locations/global"
            f"/workloadIdentityPools/{pool}/providers/{provider}"
        )
        body = {
            "audience": audience,
            "grantType": f"{_TYPES}:grant-type:token-exchange",
            "requestedTokenType": f"{_TYPES}:token-type:access_token",
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "subjectTokenType": f"{_TYPES}:token-type:jwt",
            "subjectToken": server.jwt,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = Request(
            method="POST", url=f"{self._sts_url}/v1/token", headers=headers, body=msgspec.json.encode(body)
        )
        response = self._caller.call(request, cancel)
        if response.status != 200:
            raise SecretError(self._caller.failure(response))
        token = self._caller.read(response, _Token).access_token
        self._caller.hide(token)
        return token

    def _payload(self, response: Response) -> bytes:
        payload = self._caller.read(response, _Version).payload
        data = from_base64(payload.data)
        damaged = data is None or (payload.data_crc32c != "" and payload.data_crc32c != str(crc32c(data)))
        if data is None or damaged:
            place = f"{response.method} {response.url}"
            raise SecretOutageError(f"{place}: the secret arrived damaged: its checksum does not match")
        return data


def _resource(secret: GcpSpec) -> str:
    """``projects/<project>/secrets/<name>``; a name may say it all, for a secret of another project."""
    if "/" not in secret.name:
        return f"projects/{quote(secret.server.project_number, safe='')}/secrets/{quote(secret.name, safe='')}"
    if not _FULL_NAME.fullmatch(secret.name):
        raise SecretConfigError(
            f'unknown form of secret name "{secret.name}", expected: <name> or projects/<project number>/secrets/<name>'
        )
    return quote(secret.name)
