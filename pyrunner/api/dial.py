"""New connections: address by address, through a proxy, with TLS, each step with its own time limit.

A dial can be broken off from another thread at any moment: the socket is handed to `watch` before it blocks.
"""

from __future__ import annotations

import socket
import time

from pyrunner.api.errors import ClientError, TransportError, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from pyrunner.api.urls import Target

_ANSWER_LIMIT = 16 * 1024


class Timeouts:
    """Time limits in seconds (facts/runner-api.md 1.4)."""

    __slots__ = ("dial", "handshake", "header", "total")

    def __init__(
        self, *, dial: float = 30.0, handshake: float = 10.0, header: float = 600.0, total: float = 3600.0
    ) -> None:
        self.dial = dial
        self.handshake = handshake
        #: From the end of the request to the start of the answer.
        self.header = header
        #: The whole request with its answer.
        self.total = total


def dial(
    target: Target,
    proxy: Target | None,
    context: Callable[[], ssl.SSLContext],
    timeouts: Timeouts,
    watch: Callable[[socket.socket], None],
) -> socket.socket:
    """A connected socket to `target`, speaking TLS when its scheme is ``https``.

    Args:
        context: makes the TLS context; only called for ``https``.
        watch: gets every socket before it is used.

    Raises:
        TransportError: no connection; the message names the address.
        ClientError: the proxy cannot be used.
    """
    first = proxy or target
    try:
        sock = _connect(first, timeouts.dial, watch)
    except OSError as error:
        raise TransportError(f"cannot connect to {first.address}: {describe(error)}") from error
    try:
        if proxy is not None and target.scheme == "https":
            sock.settimeout(timeouts.dial)
            _tunnel(sock, target, proxy)
        if target.scheme == "https":
            return _start_tls(sock, target, context(), timeouts.handshake, watch)
    except OSError as error:
        sock.close()
        raise TransportError(f"cannot connect to {target.address}: {describe(error)}") from error
    except BaseException:
        sock.close()
        raise
    return sock


def _connect(target: Target, timeout: float, watch: Callable[[socket.socket], None]) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise ClientError(f'cannot use the host name "{target.host}"') from None
    deadline = time.monotonic() + timeout
    failure: OSError = TimeoutError("timed out")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            # later addresses get their share of the time even if the first ones never answer
            share = (deadline - time.monotonic()) / (len(addresses) - number)
            sock.settimeout(max(share, 0.001))
            watch(sock)
            sock.connect(address)
            _tune(sock)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure


def _tune(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):
        if option := getattr(socket, name, None):
            sock.setsockopt(socket.IPPROTO_TCP, option, 30)


def _start_tls(
    sock: socket.socket,
    target: Target,
    context: ssl.SSLContext,
    timeout: float,
    watch: Callable[[socket.socket], None],
) -> ssl.SSLSocket:
    sock.settimeout(timeout)
    secure = context.wrap_socket(sock, server_hostname=target.host, do_handshake_on_connect=False)
    try:
        watch(secure)
        secure.do_handshake()
    except BaseException:
        secure.close()
        raise
    return secure


def _tunnel(sock: socket.socket, target: Target, proxy: Target) -> None:
    head = f"CONNECT {target.address} HTTP/1.1\r\nHost: {target.address}\r\n{proxy_authorization(proxy)}\r\n"
    sock.sendall(head.encode("latin-1"))
    answer = b""
    while b"\r\n\r\n" not in answer:
        # nothing can follow the headers: in TLS the client speaks first
        piece = sock.recv(4096)
        answer += piece
        if not piece or len(answer) > _ANSWER_LIMIT:
            raise TransportError(f"the proxy {proxy.address} gave no answer")
    status = answer.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")[2]
    if not status.startswith("200"):
        raise TransportError(f"the proxy {proxy.address} refused the connection to {target.address}: {status}")


def proxy_authorization(proxy: Target) -> str:
    """The header line with the credentials of the proxy's URL, or nothing."""
    return f"Proxy-Authorization: {basic(proxy.userinfo)}\r\n" if proxy.userinfo else ""


def basic(userinfo: str) -> str:
    """Value of an ``Authorization`` header for ``user:password``."""
    from base64 import b64encode

    full = userinfo if ":" in userinfo else f"{userinfo}:"
    return f"Basic {b64encode(full.encode()).decode('ascii')}"
