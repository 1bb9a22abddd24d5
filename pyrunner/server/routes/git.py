"""Git over smart HTTP for jobs, through ``git upload-pack`` as a child process. Read only."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import os
import zlib
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
_ERROR_LIMIT = 64 << 10
_SERVICES = {("GET", "info/refs"), ("POST", "git-upload-pack")}
#: For the child only: any commit may be asked for, as on GitLab; whoever owns the repository.
_GIT_CONFIG = {
    "safe.directory": "*",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
}
_CapabilitiesKey = tuple[Path, str, int, int]


class GitHttp:
    """Serves the bare repositories below `root` to jobs that are on their way."""

    def __init__(self, desk: Desk, *, root: str | os.PathLike[str]) -> None:
        self._desk = desk
        self._root = Path(root).resolve()
        self._advertised: dict[_CapabilitiesKey, bytes] = {}

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [Route("/{project:path}.git/{service:path}", self.serve, methods=["GET", "POST"])]

    async def serve(self, request: Request) -> Response:
        """List what there is, or send a pack."""
        if not self._desk.book.token_is_active(basic_password(request.headers.get("authorization", ""))):
            return Response(
                "HTTP Basic: Access denied\n", status_code=401, headers={"WWW-Authenticate": 'Basic realm="pyrunner"'}
            )
        project, service = request.path_params["project"], request.path_params["service"]
        if (request.method, service) not in _SERVICES:
            raise Refused(403)
        if service == "info/refs" and request.query_params.get("service") != "git-upload-pack":
            raise Refused(403)
        repository = (self._root / f"{project}.git").resolve()
        if not repository.is_relative_to(self._root) or not repository.is_dir():
            raise Refused(404)
        version = request.headers.get("git-protocol", "")
        if service == "info/refs":
            return await self._advertise(repository, version)
        if request.headers.get("content-type", "") != "application/x-git-upload-pack-request":
            raise Refused(415)
        process = await _upload_pack(repository, version, "--stateless-rpc")
        feed = asyncio.ensure_future(_feed(process, _inflated(request)))
        return StreamedResponse(_output(process, feed), headers=_headers("result"))

    async def _advertise(self, repository: Path, version: str) -> Response:
        """What the server can do, and before protocol version 2 every ref with it."""
        with_refs = "version=2" not in version.split(":")
        key = None if with_refs else _capabilities_key(repository, version)
        body = self._advertised.get(key) if key is not None else None
        if body is None:
            process = await _upload_pack(repository, version, "--stateless-rpc", "--advertise-refs")
            body, errors = await process.communicate()
            if process.returncode:
                _log_failure(errors)
                raise Refused(500, "git upload-pack failed")
            if with_refs:
                body = b"001e# service=git-upload-pack\n0000" + body
            elif key is not None:
                self._advertised[key] = body
        return Response(body, headers=_headers("advertisement"))


def _capabilities_key(repository: Path, version: str) -> _CapabilitiesKey | None:
    """What git's capabilities in protocol version 2 depend on beside git itself; None when that cannot be told."""
    with contextlib.suppress(OSError):
        stat = (repository / "config").stat()
        return repository, version, stat.st_mtime_ns, stat.st_ino
    return None


def _headers(kind: str) -> dict[str, str]:
    return {"Content-Type": f"application/x-git-upload-pack-{kind}", "Cache-Control": "no-cache, max-age=0"}


async def _upload_pack(repository: Path, version: str, *options: str) -> asyncio.subprocess.Process:
    """``git upload-pack`` itself: ``git http-backend`` would be two more processes around it for each request."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_PROTOCOL": version, "GIT_CONFIG_COUNT": str(len(_GIT_CONFIG))}
    for index, (key, value) in enumerate(_GIT_CONFIG.items()):
        environment[f"GIT_CONFIG_KEY_{index}"] = key
        environment[f"GIT_CONFIG_VALUE_{index}"] = value
    return await asyncio.create_subprocess_exec(
        *("git", "upload-pack", *options, "."),
        cwd=repository,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_CHUNK,
    )


def basic_password(authorization: str) -> str:
    """The password of a Basic ``Authorization`` header; empty when there is none, or no user."""
    kind, _, encoded = authorization.partition(" ")
    try:
        user, _, password = base64.b64decode(encoded).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password if kind.lower() == "basic" and user else ""


async def _inflated(request: Request) -> AsyncIterator[bytes]:
    """The body, unpacked; a damaged one ends where the damage is."""
    if request.headers.get("content-encoding", "") not in ("gzip", "x-gzip"):
        async for chunk in request.stream():
            yield chunk
        return
    inflate = zlib.decompressobj(wbits=31)
    with contextlib.suppress(zlib.error):
        async for chunk in request.stream():
            while chunk:
                yield inflate.decompress(chunk, _CHUNK)
                chunk = inflate.unconsumed_tail


async def _feed(process: asyncio.subprocess.Process, body: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - it was asked for
    # a child that has read enough closes its end; a client that goes away ends the body
    with contextlib.suppress(ClientDisconnect, ConnectionError):
        async for chunk in body:
            process.stdin.write(chunk)
            await process.stdin.drain()
    with contextlib.suppress(ConnectionError):
        process.stdin.close()


async def _output(process: asyncio.subprocess.Process, feed: asyncio.Future[None]) -> AsyncIterator[bytes]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    assert process.stderr is not None  # noqa: S101
    try:
        while chunk := await process.stdout.read(_CHUNK):
            yield chunk
        if await process.wait():
            _log_failure(await process.stderr.read(_ERROR_LIMIT))
    finally:
        await _end(process, feed)


def _log_failure(errors: bytes) -> None:
    text = errors[:_ERROR_LIMIT].decode("utf-8", "replace").strip()
    log.warning("git upload-pack failed", extra={"action": "git_failed", "error": text})


async def _end(process: asyncio.subprocess.Process, feed: asyncio.Future[None]) -> None:
    feed.cancel()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
