"""All endpoints put together."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from pyrunner.server.desk import Desk
from pyrunner.server.routes.artifacts import Artifacts
from pyrunner.server.routes.common import Refused, error_answer
from pyrunner.server.routes.git import GitHttp
from pyrunner.server.routes.request import JobRequests
from pyrunner.server.routes.runners import RunnerEndpoints
from pyrunner.server.routes.updates import JobUpdates

if TYPE_CHECKING:
    from pyrunner.server.app import ServerSettings

log = logging.getLogger(__name__)


def application(desk: Desk, settings: ServerSettings, git_root: str | os.PathLike[str] | None) -> ASGIApp:
    """The ASGI application of the server."""
    routes: list[BaseRoute] = [
        *JobRequests(desk, long_poll=settings.long_poll).routes(),
        *JobUpdates(desk, update_interval=settings.update_interval).routes(),
        *RunnerEndpoints(
            desk, registration_token=settings.registration_token, admin_token=settings.admin_token
        ).routes(),
    ]
    routes += Artifacts(desk, limit=settings.artifact_limit).routes()
    if settings.extra_routes is not None:
        routes += settings.extra_routes(desk)
    if git_root is not None:
        # the last one: whatever else lies below a repository's URL is git's
        routes += GitHttp(desk, root=git_root).routes()
    return _answering(Router(routes, redirect_slashes=False, default=_not_found))


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await error_answer(404)(scope, receive, send)


def _answering(app: ASGIApp) -> ASGIApp:
    """Turn refusals into answers, a vanished client into nothing, and everything unforeseen into a logged 500."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: object) -> None:
            nonlocal started
            started = True
            await send(message)  # type: ignore[arg-type]

        try:
            await app(scope, receive, watched)
        except ClientDisconnect:
            return
        except Refused as refused:
            await error_answer(refused.status, refused.message)(scope, receive, send)
        except Exception:
            if started:
                raise
            log.exception("Request failed", extra={"action": "request_failed", "path": scope.get("path", "")})
            await error_answer(500, "500 Internal Server Error")(scope, receive, send)

    return answer
