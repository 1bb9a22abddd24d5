"""Proxies from the environment: ``HTTP_PROXY``, ``HTTPS_PROXY``, ``NO_PROXY`` with Go's reading of them."""

from __future__ import annotations

from pyrunner.api.errors import ClientError
from pyrunner.api.urls import Target, parse_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Proxies:
    """What the environment says about proxies.

    The environment is read once: a running process does not change its proxies.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._urls = {scheme: _either(environment, f"{scheme}_proxy") for scheme in ("http", "https")}
        if "REQUEST_METHOD" in environment:
            # under CGI, HTTP_PROXY is a request header of a stranger ("httpoxy")
            self._urls["http"] = environment.get("http_proxy", "")
        self._exceptions = [
            entry.strip().lower() for entry in _either(environment, "no_proxy").split(",") if entry.strip()
        ]

    def of(self, target: Target) -> Target | None:
        """The proxy to reach `target` through; None = directly.

        Raises:
            ClientError: the proxy's URL cannot be used.
        """
        url = self._urls[target.scheme]
        if not url or _is_local(target.host) or any(_excepts(entry, target) for entry in self._exceptions):
            return None
        proxy = parse_target(url if "://" in url else f"http://{url}")
        if proxy.scheme != "http":
            raise ClientError(f"cannot use the proxy {proxy.address}: only http:// proxies are supported")
        return proxy


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_local(host: str) -> bool:
    """Loopback is never reached through a proxy."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return host.startswith("127.") and host.replace(".", "").isdigit() or host == "::1"


def _excepts(entry: str, target: Target) -> bool:
    """Whether one entry of ``NO_PROXY`` names the target: ``*``, address, network, name or ``.name``, with port."""
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(entry, target.host)
    name, port = _split_port(entry)
    if port and port != str(target.port):
        return False
    name = name.removeprefix("*")
    host = target.host.lower()
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":")
    name, colon, port = entry.rpartition(":")
    return (name, port) if colon and ":" not in name else (entry, "")


def _in_network(entry: str, host: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False
