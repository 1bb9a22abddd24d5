"""Upload and download of artifacts (facts/runner-api.md section 8)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.server.desk import Desk
from pyrunner.server.files import safe_name
from pyrunner.server.jobs import StoredArtifact
from pyrunner.server.multipart import MultipartError, MultipartReader, PartBegin, boundary_of
from pyrunner.server.routes.common import Refused, job_token, json_answer
from pyrunner.server.routes.stream import StreamedResponse, file_chunks
from pyrunner.server.tokens import same


class Artifacts:
    """Artifacts of jobs, one file per type; a later upload of a type replaces the earlier one.

    `limit` is the largest file in bytes; 0 is no limit.
    """

    def __init__(self, desk: Desk, *, limit: int) -> None:
        self._desk = desk
        self._limit = limit

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [
            Route("/api/v4/jobs/{id:int}/artifacts", self.upload, methods=["POST"]),
            Route("/api/v4/jobs/{id:int}/artifacts", self.download, methods=["GET"]),
        ]

    async def upload(self, request: Request) -> Response:
        """Take a file from a running job."""
        job_id = request.path_params["id"]
        refused = self._desk.book.refusal(job_id, job_token(request))
        if refused is not None:
            raise Refused(refused.status)
        kind = request.query_params.get("artifact_type") or "archive"
        directory = self._desk.files.artifact_directory(job_id, kind)
        descriptor, temporary = tempfile.mkstemp(prefix=".upload-", dir=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                filename, size = await self._receive(request, file)
            target = directory / safe_name(filename)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        artifact = StoredArtifact(
            type=kind,
            format=request.query_params.get("artifact_format") or "zip",
            filename=safe_name(filename),
            path=str(target.relative_to(self._desk.files.directory(job_id))),
            size=size,
            expire_in=request.query_params.get("expire_in", ""),
        )
        self._desk.store_artifact(job_id, artifact)
        return json_answer(201, {"file": {"filename": artifact.filename, "size": size}})

    async def _receive(self, request: Request, file: IO[bytes]) -> tuple[str, int]:
        filename, size, inside = None, 0, False
        try:
            reader = MultipartReader(boundary_of(request.headers.get("content-type", "")))
            async for chunk in request.stream():
                for event in reader.feed(chunk):
                    if isinstance(event, PartBegin):
                        inside = event.name == "file"
                        filename = event.filename or "file" if inside else filename
                    elif inside:
                        size += file.write(event.content)
                        self._check(size)
            reader.close()
        except MultipartError as error:
            raise Refused(400, str(error)) from None
        if filename is None:
            raise Refused(400, "the form has no field named file")
        return filename, size

    def _check(self, size: int) -> None:
        if self._limit and size > self._limit:
            raise Refused(413)

    async def download(self, request: Request) -> Response:
        """Give the archive of a job to whoever has its token, also after its end."""
        job_id = request.path_params["id"]
        record = self._desk.book.find(job_id)
        if record is None:
            raise Refused(404)
        if not same(job_token(request), record.token):
            raise Refused(403)
        artifact = record.artifacts.get(request.query_params.get("artifact_type") or "archive")
        path = self._desk.files.directory(job_id) / artifact.path if artifact else None
        if artifact is None or path is None or not path.is_file():
            raise Refused(404)
        return file_response(path, artifact.filename)


def file_response(path: Path, filename: str) -> Response:
    """A whole file as a download."""
    headers = {
        "Content-Length": str(path.stat().st_size),
        "Content-Disposition": f'attachment; filename="{filename}"',
    }
    return StreamedResponse(file_chunks(path), headers=headers, media_type="application/octet-stream")
