"""Reading a job payload; what cannot be read is still told apart by job, so that it can be failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pyrunner.api.wire import JobResponse, decode_job

if TYPE_CHECKING:
    from pyrunner.api.exchange import Response

_LARGEST_ID = 2**63 - 1


def read_job(response: Response) -> tuple[JobResponse | None, str]:
    """The job of a 201 answer, and what is wrong with it (empty = nothing).

    With something wrong the job holds only its id and token, and is None unless both can be read.
    """
    if not response.is_json:
        return None, f"the job payload is not JSON but {response.header('Content-Type') or 'of no type'}"
    try:
        job = decode_job(response.body)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        return _salvage(response.body), f"the job payload cannot be read: {error}"
    if 0 < job.id <= _LARGEST_ID and job.token:
        return job, ""
    return None, "the job payload has no usable id or no token"


def _salvage(body: bytes) -> JobResponse | None:
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    number, token = raw.get("id"), raw.get("token")
    if isinstance(number, int) and 0 < number <= _LARGEST_ID and isinstance(token, str) and token:
        return JobResponse(id=number, token=token)
    return None
