"""Key-value engines of Vault and OpenBao: where a secret is, and what comes back."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from pyrunner.api.exchange import Response
from pyrunner.secrets.errors import SecretConfigError, SecretMissingError
from pyrunner.secrets.exchange import Caller, Request, refuse
from pyrunner.secrets.spec import Engine
from pyrunner.secrets.values import field_of

#: Statuses that are the job's to mend: token, role and path are chosen by it.
WRONG_SETTING = (400, 401, 403, 404)
_VERSIONED = "kv-v2"
_PLAIN = ("kv-v1", "generic")

Fields = dict[str, msgspec.Raw]


class _Read(msgspec.Struct):
    data: Fields | None = None


class _Version(msgspec.Struct):
    data: Fields | None = None


class _VersionedRead(msgspec.Struct):
    data: _Version | None = None


def api_url(server: str, path: str) -> str:
    """``<server>/v1/<path>``; `path` is quoted."""
    return f"{server.rstrip('/')}/v1/{quote(path.strip('/'))}"


def secret_path(engine: Engine, path: str) -> str:
    """The API path of a secret.

    Raises:
        SecretConfigError: the kind of engine is not known.
    """
    mount, inner = engine.path.strip("/"), path.strip("/")
    if engine.name == _VERSIONED:
        return f"{mount}/data/{inner}"
    if engine.name in _PLAIN:
        return f"{mount}/{inner}"
    known = ", ".join((*_PLAIN, _VERSIONED))
    raise SecretConfigError(f'unknown secrets engine "{engine.name}", expected one of: {known}')


def read_field(caller: Caller, response: Response, engine: Engine, field: str) -> str:
    """The field of the secret that was asked for.

    Raises:
        SecretMissingError: there is no such secret, version or field.
        SecretError: the server refused.
    """
    if response.status == 404:
        raise SecretMissingError(caller.failure(response))
    if response.status != 200:
        raise refuse(caller, response, WRONG_SETTING)
    fields: Fields | None
    if engine.name == _VERSIONED:
        version = caller.read(response, _VersionedRead).data
        fields = version.data if version else None
    else:
        fields = caller.read(response, _Read).data
    return field_of(fields or {}, field, response.url)


def redirected_request(request: Request, response: Response) -> Request | None:
    """The request that an answer asks to repeat elsewhere: a standby server names the active one (307).

    The token goes along, as with every client of Vault, but never from TLS to plain text.
    """
    location = response.header("Location")
    if response.status not in (307, 308) or not location:
        return None
    if request.url.startswith("https://") and not location.startswith("https://"):
        return None
    if not location.startswith(("https://", "http://")):
        return None
    return Request(method=request.method, url=location, headers=request.headers, body=request.body)
