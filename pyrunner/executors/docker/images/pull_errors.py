"""Who must act when an image cannot be pulled (facts/executors.md 1.3). Pure."""

from __future__ import annotations

_NETWORK = (
    "dial tcp",
    "connection refused",
    "no such host",
    "i/o timeout",
    "tls handshake",
    "client.timeout exceeded",
    "request canceled",
    "connection reset",
)
_CONFIGURATION = (
    "not found",
    "manifest unknown",
    "pull access denied",
    "access to the resource is denied",
    "no basic auth credentials",
    "repository does not exist or may require",
    "unauthorized",
    "authentication required",
)


def is_network_error(message: str) -> bool:
    """Whether another try may help."""
    lowered = message.lower()
    return any(text in lowered for text in _NETWORK)


def failure_reason(message: str) -> str:
    """The failure reason for what engine or registry said."""
    if is_network_error(message):
        return "runner_external_dependency_failure"
    lowered = message.lower()
    if "no such image" in lowered or any(text in lowered for text in _CONFIGURATION):
        return "runner_configuration_error"
    return "image_pull_failure"
