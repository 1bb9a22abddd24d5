"""Signature version 4 of AWS. Pure: the clock is a parameter."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, unquote, urlsplit

from pyrunner.api.urls import parse_target
from pyrunner.secrets.exchange import Request

_ALGORITHM = "AWS4-HMAC-SHA256"
#: What RFC 3986 calls unreserved, beside letters and digits.
_UNRESERVED = "-_.~"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key of AWS; `repr` shows the key's id only."""

    key_id: str
    secret: str = field(repr=False)
    #: Of temporary credentials; empty otherwise.
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a signature is good for."""

    region: str
    service: str


def signed(request: Request, credentials: Credentials, scope: Scope, now: datetime) -> Request:
    """`request` with the headers of its signature; all of its own headers are signed, and ``Host``."""
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = dict(request.headers) | {"X-Amz-Date": moment}
    if credentials.session_token:
        headers["X-Amz-Security-Token"] = credentials.session_token
    canonical = canonical_headers(headers | {"Host": parse_target(request.url).authority})
    names = ";".join(canonical)
    place = f"{moment[:8]}/{scope.region}/{scope.service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{moment}\n{place}\n{_digest(canonical_request(request, canonical).encode())}"
    signature = hmac.digest(signing_key(credentials.secret, place), to_sign.encode(), "sha256").hex()
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={credentials.key_id}/{place}, SignedHeaders={names}, Signature={signature}"
    )
    return Request(method=request.method, url=request.url, headers=headers, body=request.body)


def canonical_headers(headers: dict[str, str]) -> dict[str, str]:
    """Lower-case names in order, values without surplus white space."""
    return {name.lower(): " ".join(headers[name].split()) for name in sorted(headers, key=str.lower)}


def canonical_request(request: Request, headers: dict[str, str]) -> str:
    """The text of a request whose digest is signed; `headers` are canonical."""
    parts = urlsplit(request.url)
    pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
    query = sorted((_encoded(name), _encoded(value)) for name, _, value in pairs)
    return "\n".join(
        (
            request.method,
            # all services but S3 encode the path of the URL, which is encoded already, once more
            quote(parts.path or "/", safe="/" + _UNRESERVED),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            ";".join(headers),
            _digest(request.body or b""),
        )
    )


def signing_key(secret: str, place: str) -> bytes:
    """The key for ``<date>/<region>/<service>/aws4_request``."""
    key = f"AWS4{secret}".encode()
    for part in place.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _encoded(text: str) -> str:
    return quote(unquote(text), safe=_UNRESERVED)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
