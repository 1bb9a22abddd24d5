"""Server URLs: clean-up, base path, and the form that may be logged (facts/runner-api.md 1.1 and 1.6)."""

from __future__ import annotations

from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from pyrunner.api.errors import ClientError

API_PATH = "/api/v4/"
_PORTS = {"http": 80, "https": 443}
# what may stand unquoted in the path and query of a request line
_SAFE = "%/:=&?~#+!$,;'@()*[]"


class Target:
    """One parsed URL: where to connect and what to ask for there."""

    __slots__ = ("host", "path", "port", "scheme", "userinfo")

    def __init__(self, scheme: str, host: str, port: int, path: str, userinfo: str = "") -> None:
        self.scheme = scheme
        #: Without brackets, in ASCII (IDNA).
        self.host = host
        self.port = port
        #: Path and query as they stand in the request line.
        self.path = path
        #: ``user:password``, unquoted; empty without.
        self.userinfo = userinfo

    @property
    def authority(self) -> str:
        """``host`` or ``host:port`` (when it is not the scheme's own) for the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> str:
        """``host:port``, always with the port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two targets must share to be the same server."""
        return self.scheme, self.host, self.port


def parse_target(url: str) -> Target:
    """Split `url`.

    Raises:
        ClientError: it is not an ``http`` or ``https`` URL with a host.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError as error:
        raise ClientError(f'cannot parse the URL "{clean_url(url)}": {error}') from None
    if parts.scheme not in _PORTS:
        raise ClientError(f'cannot use the URL "{clean_url(url)}": it must start with http:// or https://')
    if not host or any(character <= " " for character in host):
        raise ClientError(f'cannot use the URL "{clean_url(url)}": it has no host name')
    path = quote(urlunsplit(("", "", parts.path or "/", parts.query, "")), safe=_SAFE)
    userinfo = unquote(parts.netloc.rpartition("@")[0])
    return Target(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path, userinfo)


def api_base(url: str) -> str:
    """``<url>/api/v4/`` after the clean-up: trailing slashes, then one ``/ci`` suffix."""
    return url.rstrip("/").removesuffix("/ci") + API_PATH


def has_ci_suffix(url: str) -> bool:
    """Whether `url` ends with the deprecated ``/ci``."""
    return url.rstrip("/").endswith("/ci")


def clean_url(url: str) -> str:
    """`url` without userinfo, query and fragment: the form that may be logged."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0].partition("#")[0].rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_same_server(before: Target, after: Target) -> bool:
    """Whether a redirect stays where a token may be sent: the same origin, or the same host with TLS added."""
    upgraded = before.host == after.host and (before.scheme, after.scheme) == ("http", "https")
    return upgraded or before.origin == after.origin


def redirected(url: str, location: str) -> str:
    """Where a ``Location`` header of an answer to `url` leads."""
    return urljoin(url, location)
