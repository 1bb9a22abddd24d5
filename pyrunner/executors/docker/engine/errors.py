"""What goes wrong between us and an engine."""

from __future__ import annotations

from pyrunner.base.errors import SystemFailure


class EngineError(SystemFailure):
    """The engine refused a request; `status` is its HTTP status, 0 when there was no answer at all.

    Without a more exact reason it counts as a failure of the runner's side that another try may cure.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message, reason=reason)
        self.status = status


class EngineUnreachableError(EngineError):
    """No connection to the engine, or it broke in the middle of an answer."""


class NotFoundError(EngineError):
    """The container, image, volume or network is not there (404)."""


class ConflictError(EngineError):
    """The name is taken, or the object is in use (409)."""


def refused(status: int, message: str) -> EngineError:
    """The error for an answer with this HTTP status."""
    kinds = {404: NotFoundError, 409: ConflictError}
    return kinds.get(status, EngineError)(message, status=status)
