"""A job whose payload goes out byte for byte."""

from __future__ import annotations

from pyrunner.api.wire import JobResponse


class RawJob(JobResponse):
    """A job with its own `body`: unknown keys, nulls and even mistakes of the payload reach the runner.

    `id`, `token` and `job_info.name` must be those of the body; the server completes nothing in it.
    """

    body: bytes = b""
