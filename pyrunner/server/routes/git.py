"""Git over smart HTTP for jobs, through ``git http-backend`` as a CGI child process. Read only."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.server.desk import Desk
from pyrunner.server.routes.common import Refused
from pyrunner.server.routes.stream import StreamedResponse

log = logging.getLogger(__name__)

_CHUNK = 256 << 10
_HEADER_LIMIT = 64 << 10
_SERVICES = {("GET", "info/refs"), ("POST", "git-upload-pack")}
#: For the child only: any commit may be asked for, as on GitLab; whoever owns the repository; no pushes.
_GIT_CONFIG = {
    "safe.directory": "*",
    "http.receivepack": "false",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
}


class GitHttp:
    """Serves the bare repositories below `root` to jobs that are on their way."""

    def __init__(self, desk: Desk, *, root: str | os.PathLike[str]) -> None:
        self._desk = desk
        self._root = Path(root).resolve()

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [Route("/{project:path}.git/{service:path}", self.serve, methods=["GET", "POST"])]

    async def serve(self, request: Request) -> Response:
        """One CGI call."""
        if not self._desk.book.token_is_active(basic_password(request.headers.get("authorization", ""))):
            return Response(
                "HTTP Basic: Access denied\n", status_code=401, headers={"WWW-Authenticate": 'Basic realm="pyrunner"'}
            )
        project, service = request.path_params["project"], request.path_params["service"]
        if (request.method, service) not in _SERVICES or request.query_params.get("service") == "git-receive-pack":
            raise Refused(403)
        repository = (self._root / f"{project}.git").resolve()
        if not repository.is_relative_to(self._root) or not repository.is_dir():
            raise Refused(404)
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            env=self._environment(request, f"/{project}.git/{service}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_HEADER_LIMIT,
        )
        feed = asyncio.ensure_future(_feed(process, request))
        try:
            status, headers = await _head(process)
        except BaseException:
            await _end(process, feed)
            raise
        return StreamedResponse(_output(process, feed), status=status, headers=headers)

    def _environment(self, request: Request, path: str) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        headers = request.headers
        environment |= {
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": path,
            "QUERY_STRING": request.url.query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "REMOTE_ADDR": request.client.host if request.client else "",
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": str(len(_GIT_CONFIG)),
        }
        # the child inflates gzip bodies itself; a chunked one has no length and ends with its stream
        if "content-encoding" in headers:
            environment["HTTP_CONTENT_ENCODING"] = headers["content-encoding"]
        if "content-length" in headers:
            environment["CONTENT_LENGTH"] = headers["content-length"]
        for index, (key, value) in enumerate(_GIT_CONFIG.items()):
            environment[f"GIT_CONFIG_KEY_{index}"] = key
            environment[f"GIT_CONFIG_VALUE_{index}"] = value
        return environment


def basic_password(authorization: str) -> str:
    """The password of a Basic ``Authorization`` header; empty when there is none, or no user."""
    kind, _, encoded = authorization.partition(" ")
    try:
        user, _, password = base64.b64decode(encoded).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password if kind.lower() == "basic" and user else ""


async def _feed(process: asyncio.subprocess.Process, request: Request) -> None:
    assert process.stdin is not None  # noqa: S101 - it was asked for
    # a child that has read enough closes its end; a client that goes away ends the body
    with contextlib.suppress(ClientDisconnect, ConnectionError):
        async for chunk in request.stream():
            process.stdin.write(chunk)
            await process.stdin.drain()
    with contextlib.suppress(ConnectionError):
        process.stdin.close()


async def _head(process: asyncio.subprocess.Process) -> tuple[int, dict[str, str]]:
    """Status and headers of a CGI answer."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    try:
        head = await process.stdout.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await _log_failure(process)
        raise Refused(500, "git http-backend failed") from None
    status, headers = 200, {}
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if name.lower() == "status":
            status = int(value.split()[0])
        elif colon:
            headers[name] = value.strip()
    return status, headers


async def _output(process: asyncio.subprocess.Process, feed: asyncio.Future[None]) -> AsyncIterator[bytes]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    try:
        while chunk := await process.stdout.read(_CHUNK):
            yield chunk
        if await process.wait():
            await _log_failure(process)
    finally:
        await _end(process, feed)


async def _log_failure(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None  # noqa: S101 - it was asked for
    text = (await process.stderr.read(_HEADER_LIMIT)).decode("utf-8", "replace").strip()
    log.warning("git http-backend failed", extra={"action": "git_failed", "error": text})


async def _end(process: asyncio.subprocess.Process, feed: asyncio.Future[None]) -> None:
    feed.cancel()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
