"""A connected socket to an engine, whatever kind of address it has."""

from __future__ import annotations

import os
import socket
import ssl
from urllib.parse import urlsplit

from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.errors import EngineError

_DEFAULT_SOCKET = "/var/run/docker.sock"
_PLAIN_PORT, _TLS_PORT = 2375, 2376
#: Seconds to connect.
_LIMIT = 30.0


def dial(address: EngineAddress) -> socket.socket:
    """A new connection.

    Raises:
        OSError: there is none to be had.
        EngineError: ``runner_configuration_error``: the address cannot be used.
    """
    host = address.host or f"unix://{_DEFAULT_SOCKET}"
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = "tcp", host
    if scheme == "unix":
        return _unix(rest)
    if scheme in ("tcp", "http", "https"):
        return _tcp(address, rest, tls=scheme == "https" or bool(address.tls_directory))
    raise EngineError(
        f'the engine\'s address "{host}" cannot be used, expected unix://<path> or tcp://<host>:<port>',
        reason="runner_configuration_error",
    )


def _unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(_LIMIT)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


def _tcp(address: EngineAddress, rest: str, *, tls: bool) -> socket.socket:
    try:
        parts = urlsplit(f"//{rest}")
        name, port = parts.hostname or "localhost", parts.port
    except ValueError as error:
        raise EngineError(
            f'the engine\'s address "{address.host}" cannot be read: {error}', reason="runner_configuration_error"
        ) from error
    sock = socket.create_connection((name, port or (_TLS_PORT if tls else _PLAIN_PORT)), _LIMIT)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return _context(address).wrap_socket(sock, server_hostname=name) if tls else sock
    except BaseException:
        sock.close()
        raise


def _context(address: EngineAddress) -> ssl.SSLContext:
    directory = address.tls_directory
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not address.tls_verify and directory:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif directory:
        context.load_verify_locations(os.path.join(directory, "ca.pem"))
    else:
        context.load_default_certs()
    if directory:
        context.load_cert_chain(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem"))
    return context
