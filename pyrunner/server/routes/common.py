"""What all endpoints share: bodies with a limit, tokens, answers."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pyrunner.server.jobs import Answer

T = TypeVar("T")

#: Largest JSON or trace body that is taken into memory; runners send at most 1 MiB of trace at a time.
BODY_LIMIT = 32 << 20

_REASONS = {
    400: "400 Bad request",
    401: "401 Unauthorized",
    403: "403 Forbidden",
    404: "404 Not Found",
    409: "409 Conflict",
    412: "412 Precondition Failed",
    413: "413 Request Entity Too Large",
    416: "416 Range Not Satisfiable",
}


class Refused(Exception):  # noqa: N818 - an answer, not an error of ours
    """Ends a request with this status."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The whole body.

    Raises:
        Refused: 413 when it is larger than `limit` bytes.
        ClientDisconnect: the client went away before its end.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refused(413)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_json(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """The body as a structure.

    Raises:
        Refused: 400 with the decoder's words when it is none.
    """
    try:
        return decoder.decode(await read_body(request) or b"{}")
    except msgspec.DecodeError as error:
        raise Refused(400, str(error)) from None


def job_token(request: Request, body_token: str = "") -> str:
    """The job token: 19.x sends ``JOB-TOKEN``, 17.x ``PRIVATE-TOKEN``, some only a parameter or the body's field."""
    headers = request.headers
    return (
        headers.get("job-token") or headers.get("private-token") or body_token or request.query_params.get("token", "")
    )


def runner_token(request: Request, body_token: str = "") -> str:
    """The runner's token, by header or body."""
    return request.headers.get("runner-token") or body_token or request.headers.get("private-token", "")


def json_answer(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    """A JSON body."""
    return Response(msgspec.json.encode(content), status_code=status, headers=headers, media_type="application/json")


def error_answer(status: int, message: str = "") -> Response:
    """GitLab's error body: ``{"message": "403 Forbidden"}``."""
    return json_answer(status, {"message": message or _REASONS.get(status, str(status))})


def book_answer(answer: Answer, update_interval: int) -> Response:
    """The answer of the job book with the headers that runners read (facts/runner-api.md 1.3); its body is a number."""
    headers = {"X-GitLab-Trace-Update-Interval": str(update_interval)}
    if answer.job_status:
        headers["Job-Status"] = answer.job_status
    if answer.trace_size is not None:
        headers["Range"] = f"0-{answer.trace_size}"
    body = str(answer.status).encode() if answer.status < 400 else b""
    if not body:
        body = msgspec.json.encode({"message": _REASONS.get(answer.status, str(answer.status))})
    return Response(body, status_code=answer.status, headers=headers, media_type="application/json")
