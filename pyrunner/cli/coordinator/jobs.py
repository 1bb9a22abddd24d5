"""``pyrunner coordinator jobs | log | cancel | artifacts``."""

from __future__ import annotations

import os
import sys

from pyrunner.base.errors import ApiError
from pyrunner.cli.coordinator.client import CoordinatorClient, data_dir_of
from pyrunner.cli.coordinator.runners import number_of, numbers_of
from pyrunner.cli.coordinator.table import age, print_json, print_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation

_ENDED = ("success", "failed", "canceled")


def list_jobs(call: Invocation) -> int:
    """Print all jobs."""
    with CoordinatorClient(data_dir_of(call)) as client:
        jobs = client.call("GET", "jobs")
    if call.text("output") == "json":
        print_json(jobs)
        return 0
    rows = [
        (
            job["id"],
            job["pipeline_id"] or "-",
            job["name"] or "-",
            job["state"],
            job["failure_reason"] or "-",
            job["runner_id"] or "-",
            age(job["started_at"], job["finished_at"]),
            age(job["created_at"]),
        )
        for job in jobs
    ]
    print_table(("ID", "PIPELINE", "NAME", "STATE", "REASON", "RUNNER", "DURATION", "AGE"), rows)
    return 0


def log(call: Invocation) -> int:
    """Write a job's log to stdout; with ``--follow`` until the job has ended."""
    number = number_of(call, "job")
    offset = 0
    with CoordinatorClient(data_dir_of(call)) as client:
        while True:
            query = f"offset={offset}&follow={'true' if call.flag('follow') else 'false'}"
            response = client.send("GET", f"jobs/{number}/log?{query}")
            size = int(response.header("X-Trace-Size") or 0)
            if size < offset:
                # another try of the job has begun its log anew
                offset = 0
                continue
            sys.stdout.buffer.write(response.body)
            sys.stdout.buffer.flush()
            offset += len(response.body)
            ended = response.header("X-Job-State") in _ENDED
            if offset >= size and (ended or not call.flag("follow")):
                return 0


def cancel(call: Invocation) -> int:
    """Cancel jobs."""
    numbers = numbers_of(call, "job")
    force = "true" if call.flag("force") else "false"
    with CoordinatorClient(data_dir_of(call)) as client:
        for number in numbers:
            job = client.call("POST", f"jobs/{number}/cancel?force={force}")
            sys.stdout.write(f"Job {number} is {job['state']}\n")
    return 0


def artifacts(call: Invocation) -> int:
    """Save a job's artifact file."""
    number = number_of(call, "job")
    kind = call.text("type")
    with CoordinatorClient(data_dir_of(call)) as client:
        job = client.call("GET", f"jobs/{number}")
        if kind not in job["artifacts"]:
            known = ", ".join(job["artifacts"]) or "none"
            raise ApiError(f"job {number} has no artifact of type {kind}; it has: {known}")
        if call.text("output") == "-":
            client.send("GET", f"jobs/{number}/artifacts?type={kind}", sink=_Pipe())
            return 0
        target = call.text("output") or f"job-{number}-{kind}.zip"
        partial = f"{target}.part"
        try:
            with open(partial, "wb") as file:
                client.send("GET", f"jobs/{number}/artifacts?type={kind}", sink=file)
            os.replace(partial, target)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
    sys.stdout.write(f"{target}\n")
    return 0


class _Pipe:
    """stdout as the sink of a download: it cannot start over, so a broken transfer ends in an error."""

    def __init__(self) -> None:
        self._written = 0

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        sys.stdout.buffer.write(data)
        self._written += len(data)

    def tell(self) -> int:
        return self._written

    def seek(self, offset: int, /) -> int:
        if offset != self._written:
            raise ApiError("the transfer broke off")
        return offset

    def truncate(self) -> None:
        sys.stdout.buffer.flush()
