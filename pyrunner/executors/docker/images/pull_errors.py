"""What engine and registry say when an image cannot be pulled: who must act, whether another try may help. Pure.

Texts of facts/executors.md 1.3, looked for in this order.
"""

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
    # what the engine says of an image that shall not be pulled and is not there
    "no such image",
)
#: A registry that is busy, restarted or cut off: not in the facts, see docs/architecture.md.
_PASSING = (
    "toomanyrequests",
    "too many requests",
    "parsing http 429 response",
    "received unexpected http status: 5",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "unexpected eof",
    "broken pipe",
    ": eof",
)
EXTERNAL = "runner_external_dependency_failure"
CONFIGURATION = "runner_configuration_error"
UNCLASSIFIED = "image_pull_failure"


def failure_reason(message: str) -> str:
    """The failure reason for what engine or registry said."""
    if _holds(message, _NETWORK):
        return EXTERNAL
    return CONFIGURATION if _holds(message, _CONFIGURATION) else UNCLASSIFIED


def may_pass(message: str) -> bool:
    """Whether another try may help."""
    reason = failure_reason(message)
    return reason == EXTERNAL or (reason == UNCLASSIFIED and _holds(message, _PASSING))


def _holds(message: str, texts: tuple[str, ...]) -> bool:
    lowered = message.lower()
    return any(text in lowered for text in texts)
