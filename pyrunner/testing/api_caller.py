"""A client of the runner API with one connection, as tests need it."""

from __future__ import annotations

import http.client
import json
import zlib
from typing import Any

FEATURES = {"two_phase_job_commit": True, "cancel_gracefully": True}


class Caller:
    """Calls below ``/api/v4/``; use as a context manager."""

    def __init__(self, url: str, timeout: float = 10) -> None:
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        content = json.dumps(body) if isinstance(body, (dict, list)) else body
        self.connection.request(method, f"/api/v4/{path}", content, headers or {})
        response = self.connection.getresponse()
        return response.status, {key.lower(): value for key, value in response.getheaders()}, response.read()

    def ask(self, token: str, **fields: Any) -> tuple[int, dict[str, str], bytes]:
        """One job request."""
        body = {"info": {"features": FEATURES}, "token": token, "system_id": "s_test", **fields}
        return self("POST", "jobs/request", body)

    def take(self, token: str, **fields: Any) -> dict[str, Any]:
        """One job request that gets a job."""
        status, _, body = self.ask(token, **fields)
        assert status == 201, (status, body)
        return dict(json.loads(body))

    def commit(self, job: dict[str, Any]) -> None:
        """Start a job."""
        status, _, _ = self("PUT", f"jobs/{job['id']}", {"token": job["token"], "state": "running"})
        assert status == 200

    def patch(self, job: dict[str, Any], content: bytes, start: int = 0) -> tuple[int, dict[str, str], bytes]:
        """Send a piece of trace."""
        headers = {"JOB-TOKEN": job["token"], "Content-Range": f"{start}-{start + len(content) - 1}"}
        return self("PATCH", f"jobs/{job['id']}/trace", content, headers)

    def finish(self, job: dict[str, Any], state: str, trace: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """Send the final update."""
        output = {"checksum": f"crc32:{zlib.crc32(trace):08x}", "bytesize": len(trace)} if trace else {}
        return self("PUT", f"jobs/{job['id']}", {"token": job["token"], "state": state, "output": output})

    def upload(self, job: dict[str, Any], pieces: Any, query: str = "") -> int:
        """Upload an artifact in pieces, chunked; returns the status."""

        def body() -> Any:
            yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="artifacts.zip"\r\n\r\n'
            yield from pieces
            yield b"\r\n--b--\r\n"

        headers = {"JOB-TOKEN": job["token"], "Content-Type": "multipart/form-data; boundary=b"}
        self.connection.request("POST", f"/api/v4/jobs/{job['id']}/artifacts?{query}", body(), headers)
        response = self.connection.getresponse()
        response.read()
        return response.status
