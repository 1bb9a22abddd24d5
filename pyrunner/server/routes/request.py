"""``POST jobs/request``: the long poll (facts/runner-api.md section 4)."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.api.wire import JobRequest, JobResponse
from pyrunner.server.desk import Desk, Waiter
from pyrunner.server.raw_job import RawJob
from pyrunner.server.routes.common import Refused, read_json, runner_token
from pyrunner.server.runners import RunnerRecord

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(JobRequest)


class JobRequests:
    """Gives jobs to runners; holds a request up to `long_poll` seconds while there is none.

    The first request of a process (without ``last_update``) is answered at once, so that the runner learns the value.
    """

    def __init__(self, desk: Desk, *, long_poll: float) -> None:
        self._desk = desk
        self._long_poll = long_poll

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [Route("/api/v4/jobs/request", self.request, methods=["POST"])]

    async def request(self, request: Request) -> Response:
        """One job request."""
        asked = await read_json(request, _decoder)
        runner = self._desk.runners.by_token(runner_token(request, asked.token))
        if runner is None:
            raise Refused(403)
        if asked.system_id and self._desk.runners.seen(runner, asked.system_id):
            self._desk.ledger.save_runner(runner)
        job = self._desk.take(runner, asked)
        if job is None and asked.last_update and self._long_poll > 0:
            job = await self._held(request, runner, asked)
        headers = {"X-GitLab-Last-Update": self._desk.last_update}
        if job is None:
            return Response(status_code=204, headers=headers)
        body = job.body if isinstance(job, RawJob) else _encode(job)
        return Response(body, status_code=201, headers=headers, media_type="application/json")

    async def _held(self, request: Request, runner: RunnerRecord, asked: JobRequest) -> JobResponse | None:
        disconnect = asyncio.ensure_future(_gone(request))
        waiter = Waiter(runner, asked, disconnect.done)
        self._desk.hold(waiter)
        try:
            await asyncio.wait((waiter.job, disconnect), timeout=self._long_poll, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._desk.let_go(waiter)
            gone = disconnect.done()
            disconnect.cancel()
        job = waiter.job.result() if waiter.job.done() else None
        if job is not None and gone:
            self._desk.give_back(job.id)
            return None
        return job


async def _gone(request: Request) -> None:
    """Return when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        continue
