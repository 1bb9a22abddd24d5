"""``pyrunner coordinator submit``."""

from __future__ import annotations

import json
import sys

from pyrunner.base.errors import PyrunnerError, UsageError
from pyrunner.cli.coordinator.client import CoordinatorClient, data_dir_of
from pyrunner.cli.coordinator.table import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyrunner.cli.parse import Invocation


def submit(call: Invocation) -> int:
    """Queue what is in a file: a pipeline (YAML) or a job payload (JSON)."""
    path, *jobs = call.arguments or [""]
    if not path:
        raise UsageError("which file? Give one, or - for stdin", hint=f"see: {call.program} coordinator submit --help")
    content = _content(path)
    with CoordinatorClient(data_dir_of(call)) as client:
        if path.endswith((".yml", ".yaml")):
            return _submit_pipeline(call, client, content)
        if jobs:
            raise UsageError(f"{path} is one job: jobs can be chosen from a pipeline only")
        return _submit_job(call, client, content)


def _submit_job(call: Invocation, client: CoordinatorClient, content: bytes) -> int:
    payload = _payload(call.arguments[0], content)
    tags = [*payload.pop("tags", []), *call.items("tag-list")]
    job = client.call("POST", "jobs", {"payload": payload, "tags": tags})
    if call.text("output") == "json":
        print_json(job)
    else:
        sys.stdout.write(f"Job {job['id']}\n")
    return 0


def _submit_pipeline(call: Invocation, client: CoordinatorClient, content: bytes) -> int:
    from pyrunner.cli.coordinator.pipeline import make_pipeline

    path, *jobs = call.arguments
    order = make_pipeline(path, content.decode("utf-8", "replace"), jobs, client, call.items("variable"))
    pipeline = client.call("POST", "pipelines", order)
    if call.text("output") == "json":
        print_json(pipeline)
    else:
        ready = ", ".join(f"{job['id']} ({job['name']})" for job in pipeline["jobs"])
        sys.stdout.write(f"Pipeline {pipeline['id']}, jobs ready: {ready or 'none'}\n")
    return 0


def _content(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        return file.read()


def _payload(path: str, content: bytes) -> dict[str, Any]:
    """The payload, checked as a runner would read it.

    Raises:
        PyrunnerError: it is no JSON object, or a field has a wrong type.
    """
    import msgspec

    from pyrunner.api.wire import decode_job

    try:
        payload = json.loads(content)
    except ValueError as error:
        raise PyrunnerError(f"{path}: not JSON: {error}") from None
    if not isinstance(payload, dict) or not payload.get("steps"):
        raise PyrunnerError(f"{path}: not a job: an object with steps is expected")
    tags = payload.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise PyrunnerError(f"{path}: tags must be a list of texts")
    try:
        decode_job(content)
    except msgspec.MsgspecError as error:
        raise PyrunnerError(f"{path}: {error}") from None
    return payload
