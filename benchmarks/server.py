"""The smallest server of the runner API that can hold a runner busy, in a process of its own.

It answers from memory and counts, so that what is measured is the runner: ``python -m benchmarks.server JOBS SCRIPT``
prints its port and ends when its standard input closes, printing the counts as one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

_REQUEST = re.compile(rb"(POST|PUT|PATCH|GET|DELETE) (\S+) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_JOB = re.compile(rb"/jobs/(\d+)")


class Book:
    """What has been given out and what came back."""

    def __init__(self, jobs: int, script: list[str], variables: list[dict[str, object]]) -> None:
        self.left = jobs
        self.jobs = jobs
        self.script = script
        self.variables = variables
        self.given: dict[int, float] = {}
        self.done: dict[int, float] = {}
        self.polls = 0
        self.bytes = 0
        self.failed = 0

    def next_job(self) -> bytes:
        """The payload of the next job, empty when none is left."""
        self.polls += 1
        if not self.left:
            return b""
        self.left -= 1
        number = self.jobs - self.left
        self.given[number] = time.perf_counter()
        return json.dumps(
            {
                "id": number,
                "token": f"glcbt-64_{number:020d}",
                "job_info": {"id": number, "name": "bench", "stage": "test", "project_id": 1, "project_name": "bench"},
                "git_info": {"repo_url": "http://127.0.0.1/group/bench.git", "ref": "main", "sha": "0" * 40},
                "runner_info": {"timeout": 3600},
                "variables": [{"key": "GIT_STRATEGY", "value": "none", "public": True}, *self.variables],
                "steps": [{"name": "script", "script": self.script, "timeout": 3600, "when": "on_success"}],
                "features": {"trace_sections": True, "failure_reasons": ["script_failure"]},
            }
        ).encode()

    def update(self, job: int, body: bytes) -> None:
        """Note a final state."""
        state = json.loads(body).get("state")
        if state in ("success", "failed"):
            self.done[job] = time.perf_counter()
            self.failed += state == "failed"

    def report(self) -> dict[str, object]:
        """The counts."""
        took = sorted(self.done[job] - self.given[job] for job in self.done)
        span = max(self.done.values()) - min(self.given.values()) if self.done else 0.0
        return {
            "done": len(self.done),
            "failed": self.failed,
            "polls": self.polls,
            "bytes": self.bytes,
            "median": took[len(took) // 2] if took else 0.0,
            "span": span,
            "running": len(self.given) - len(self.done),
        }


async def _serve(book: Book, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length.group(1))) if length else b""
            writer.write(_answer(book, head, body))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _answer(book: Book, head: bytes, body: bytes) -> bytes:
    match = _REQUEST.match(head)
    method, path = match.groups() if match else (b"", b"")
    if path.endswith(b"/jobs/request"):
        job = book.next_job()
        if not job:
            return b"HTTP/1.1 204 No Content\r\nX-GitLab-Last-Update: 1\r\n\r\n"
        return _with_body(b"201 Created", job)
    if method == b"PATCH":
        book.bytes += len(body)
        return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nJob-Status: running\r\n\r\n"
    if method == b"PUT" and (found := _JOB.search(path)):
        book.update(int(found.group(1)), body)
        return _with_body(b"200 OK", b"200")
    return _with_body(b"200 OK", json.dumps(book.report()).encode())


def _with_body(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


async def _main(book: Book) -> None:
    server = await asyncio.start_server(lambda r, w: _serve(book, r, w), "127.0.0.1", 0, limit=1 << 22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(book.report()), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main(Book(int(sys.argv[1]), json.loads(sys.argv[2]), json.loads((sys.argv[3:] or ["[]"])[0]))))
