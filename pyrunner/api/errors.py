"""Why a request got no HTTP answer. Light: helper commands use this."""

from __future__ import annotations

from pyrunner.base.errors import ApiError


class ClientError(ApiError):
    """No request can be made at all: the URL cannot be used (facts/runner-api.md 1.1)."""


class TransportError(ApiError):
    """The server gave no usable answer: DNS, connection, TLS, timeout, or an answer cut short.

    ``str()`` is one line without credentials. `received` tells whether any byte of an answer arrived.
    """

    def __init__(self, message: str, *, received: bool = False) -> None:
        super().__init__(message)
        self.received = received


class RequestCancelledError(TransportError):
    """The request's token was cancelled; the token's cause is in ``__cause__``."""


def describe(error: BaseException) -> str:
    """What went wrong, in a few words: the system's own text without its numbers and Python's wrapping."""
    import socket
    import ssl

    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "").replace("_", " ").lower()
        return f"TLS failed: {reason or error.strerror or error}"
    if isinstance(error, socket.gaierror):
        return f"cannot resolve the host name: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
