"""``PUT jobs/:id`` and ``PATCH jobs/:id/trace`` (facts/runner-api.md section 6)."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.api.wire import JobUpdate
from pyrunner.server.desk import Desk
from pyrunner.server.routes.common import book_answer, job_token, read_body, read_json

_decoder = msgspec.json.Decoder(JobUpdate)


class JobUpdates:
    """Job states and traces; `update_interval` is what runners are asked to wait between patches, in seconds."""

    def __init__(self, desk: Desk, *, update_interval: int) -> None:
        self._desk = desk
        self._interval = update_interval

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [
            Route("/api/v4/jobs/{id:int}/trace", self.patch, methods=["PATCH"]),
            Route("/api/v4/jobs/{id:int}", self.put, methods=["PUT"]),
        ]

    async def put(self, request: Request) -> Response:
        """A new state."""
        update = await read_json(request, _decoder)
        token = job_token(request, update.token)
        return book_answer(self._desk.update(request.path_params["id"], token, update), self._interval)

    async def patch(self, request: Request) -> Response:
        """More trace."""
        job_id = request.path_params["id"]
        record = self._desk.book.find(job_id)
        if record is not None:
            record.open_patches += 1
        try:
            content = await read_body(request)
        finally:
            if record is not None:
                record.open_patches -= 1
        range_header = request.headers.get("content-range", "")
        answer = self._desk.store_patch(job_id, job_token(request), range_header, content)
        return book_answer(answer, self._interval)
