"""The coordinator's own endpoints, for its commands: runners, the queue, logs. Opened by the admin token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.base.errors import PyrunnerError
from pyrunner.server.desk import Desk
from pyrunner.server.job_list import describe_job
from pyrunner.server.pipeline_queue import PipelineQueue
from pyrunner.server.queue_source import QueuedJob
from pyrunner.server.routes.artifacts import file_response
from pyrunner.server.routes.common import Refused, json_answer, read_json
from pyrunner.server.runners import RunnerRecord
from pyrunner.server.submit import PipelineOrder
from pyrunner.server.tokens import same

_BASE = "/api/v4/coordinator"
#: A reader of a log gets at most this much at once, and waits at most this long for more.
_LOG_CHUNK = 4 << 20
_LOG_WAIT = 50.0
_ENDED = ("success", "failed", "canceled")


class NewRunner(msgspec.Struct, kw_only=True):
    """Body of ``POST runners``."""

    description: str = ""
    tags: list[str] = []
    run_untagged: bool = True
    paused: bool = False
    maximum_timeout: int = 0


class NewJob(msgspec.Struct, kw_only=True):
    """Body of ``POST jobs``: a payload as runners get it."""

    payload: dict[str, Any]
    tags: list[str] = []


_decode_runner = msgspec.json.Decoder(NewRunner)
_decode_job = msgspec.json.Decoder(NewJob)
_decode_order = msgspec.json.Decoder(PipelineOrder)

Handler = Callable[[Request], Awaitable[Response]]


class AdminEndpoints:
    """Everything below ``/api/v4/coordinator``."""

    def __init__(self, desk: Desk, source: PipelineQueue, *, admin_token: str) -> None:
        self._desk = desk
        self._source = source
        self._queue = source.queue
        self._admin_token = admin_token

    def routes(self) -> list[Route]:
        """The endpoints."""
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/runners", self.list_runners),
            ("POST", "/runners", self.create_runner),
            ("DELETE", "/runners/{id:int}", self.delete_runner),
            ("GET", "/jobs", self.list_jobs),
            ("POST", "/jobs", self.submit),
            ("POST", "/pipelines", self.submit_pipeline),
            ("GET", "/jobs/{id:int}", self.show_job),
            ("POST", "/jobs/{id:int}/cancel", self.cancel),
            ("GET", "/jobs/{id:int}/log", self.log),
            ("GET", "/jobs/{id:int}/artifacts", self.artifacts),
        ]
        return [Route(_BASE + path, self._guarded(handler), methods=[method]) for method, path, handler in table]

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            if not same(request.headers.get("private-token", ""), self._admin_token):
                raise Refused(401)
            return await handler(request)

        return guarded

    # --- runners ----------------------------------------------------------------------------------------------

    async def list_runners(self, request: Request) -> Response:
        """All runners, without their tokens."""
        return json_answer(200, [_runner(record) for record in self._desk.runners.records()])

    async def create_runner(self, request: Request) -> Response:
        """Make a runner; the only answer that shows its token."""
        asked = await read_json(request, _decode_runner)
        record = self._desk.runners.create(RunnerRecord(id=0, token="", **msgspec.structs.asdict(asked)))
        self._desk.ledger.save_runner(record)
        return json_answer(201, {**_runner(record), "token": record.token})

    async def delete_runner(self, request: Request) -> Response:
        """Forget a runner."""
        record = self._desk.runners.delete(request.path_params["id"])
        if record is None:
            raise Refused(404)
        self._desk.ledger.delete_runner(record.id)
        return Response(status_code=204)

    # --- jobs -------------------------------------------------------------------------------------------------

    async def list_jobs(self, request: Request) -> Response:
        """All jobs, oldest first."""
        return json_answer(200, [self._describe(job) for job in self._queue.jobs()])

    async def submit(self, request: Request) -> Response:
        """Queue a job."""
        asked = await read_json(request, _decode_job)
        job_id = self._queue.submit(asked.payload, tags=asked.tags)
        return json_answer(201, self._describe(self._known(job_id)))

    async def submit_pipeline(self, request: Request) -> Response:
        """Start a pipeline; answers with its id and the jobs that are ready."""
        order = await read_json(request, _decode_order)
        try:
            pipeline_id = self._source.submit(order)
        except (PyrunnerError, msgspec.ValidationError) as error:
            raise Refused(400, str(error)) from None
        jobs = [self._describe(job) for job in self._queue.jobs_of(pipeline_id)]
        return json_answer(201, {"id": pipeline_id, "jobs": jobs})

    async def show_job(self, request: Request) -> Response:
        """One job."""
        return json_answer(200, self._describe(self._known(request.path_params["id"])))

    async def cancel(self, request: Request) -> Response:
        """Cancel a job; 409 when it has ended already."""
        job = self._known(request.path_params["id"])
        force = request.query_params.get("force") == "true"
        if not self._source.cancel(job.id) and not self._desk.cancel(job.id, force=force):
            state = self._describe(job)["state"]
            raise Refused(409, f"job {job.id} is {state}")
        return json_answer(200, self._describe(self._known(job.id)))

    async def log(self, request: Request) -> Response:
        """The trace from ``offset`` on; with ``follow`` it waits for more until the job has ended.

        ``X-Job-State`` is the state as of the answer: an empty answer with a final state is the end.
        """
        job = self._known(request.path_params["id"])
        offset = _number(request.query_params.get("offset", "0"))
        if request.query_params.get("follow") == "true":
            await self._more(job, offset)
        described = self._describe(self._known(job.id))
        content = self._desk.files.read_trace(job.id, offset, offset + _LOG_CHUNK)
        headers = {"X-Job-State": described["state"], "X-Trace-Size": str(described["trace_size"])}
        return Response(content, headers=headers, media_type="application/octet-stream")

    async def _more(self, job: QueuedJob, offset: int) -> None:
        event = self._desk.watch(job.id)
        try:
            async with asyncio.timeout(_LOG_WAIT):
                while not self._desk.closing:
                    described = self._describe(self._known(job.id))
                    # a smaller trace than what was read is a new try of the job: the reader must hear of it
                    if described["trace_size"] != offset or described["state"] in _ENDED:
                        return
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return
        finally:
            self._desk.unwatch(job.id, event)

    async def artifacts(self, request: Request) -> Response:
        """The stored file of an artifact type."""
        job_id = request.path_params["id"]
        record = self._desk.book.find(job_id)
        artifact = record.artifacts.get(request.query_params.get("type", "archive")) if record else None
        path = self._desk.files.directory(job_id) / artifact.path if artifact else None
        if artifact is None or path is None or not path.is_file():
            raise Refused(404, f"job {job_id} has no such artifact")
        return file_response(path, artifact.filename)

    def _describe(self, job: QueuedJob) -> dict[str, Any]:
        return describe_job(job, self._desk.book.find(job.id))

    def _known(self, job_id: int) -> QueuedJob:
        job = self._queue.job(job_id)
        if job is None:
            raise Refused(404, f"there is no job {job_id}")
        return job


def _runner(record: RunnerRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "description": record.description,
        "tags": record.tags,
        "run_untagged": record.run_untagged,
        "paused": record.paused,
        "maximum_timeout": record.maximum_timeout,
        "managers": record.managers,
    }


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(400, "offset must be a number")
    return int(text)
