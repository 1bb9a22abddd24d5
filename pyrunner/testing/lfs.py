"""Git LFS for jobs of a fake GitLab: the batch endpoint and the basic transfer, downloads only.

Objects lie where Git LFS itself keeps them in a bare repository: ``<project>.git/lfs/objects/ab/cd/<oid>``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from pyrunner.server.desk import Desk
from pyrunner.server.routes.git import basic_password

_MEDIA_TYPE = "application/vnd.git-lfs+json"


def pointer(oid: str, size: int) -> str:
    """What git stores in place of an object."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n"


def object_path(repository: Path, oid: str) -> Path:
    """Where a bare repository keeps the object."""
    return repository / "lfs" / "objects" / oid[:2] / oid[2:4] / oid


class LfsStore:
    """Endpoints for the bare repositories below `root`; like git itself they want the token of an active job."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root)

    def routes(self, desk: Desk) -> Iterable[BaseRoute]:
        """The endpoints."""

        async def batch(request: Request) -> Response:
            if not _allowed(desk, request):
                return _denied()
            wanted = (await request.json())["objects"]
            answers = [self._describe(request, item) for item in wanted]
            return JSONResponse({"transfer": "basic", "objects": answers}, media_type=_MEDIA_TYPE)

        async def download(request: Request) -> Response:
            path = self._path(request, request.path_params["oid"])
            if not _allowed(desk, request):
                return _denied()
            return Response(path.read_bytes()) if path.is_file() else Response(status_code=404)

        return [
            Route("/{project:path}.git/info/lfs/objects/batch", batch, methods=["POST"]),
            Route("/{project:path}.git/lfs-objects/{oid:str}", download, methods=["GET"]),
        ]

    def _path(self, request: Request, oid: str) -> Path:
        repository = (self._root / f"{request.path_params['project']}.git").resolve()
        return object_path(repository, oid)

    def _describe(self, request: Request, item: dict[str, Any]) -> dict[str, Any]:
        if not self._path(request, item["oid"]).is_file():
            return {**item, "error": {"code": 404, "message": "Object does not exist"}}
        href = f"{request.base_url}{request.path_params['project']}.git/lfs-objects/{item['oid']}"
        header = {"Authorization": request.headers["authorization"]}
        return {**item, "authenticated": True, "actions": {"download": {"href": href, "header": header}}}


def _allowed(desk: Desk, request: Request) -> bool:
    return desk.book.token_is_active(basic_password(request.headers.get("authorization", "")))


def _denied() -> Response:
    headers = {"WWW-Authenticate": 'Basic realm="pyrunner"', "LFS-Authenticate": 'Basic realm="pyrunner"'}
    return JSONResponse({"message": "Credentials needed"}, status_code=401, headers=headers, media_type=_MEDIA_TYPE)
