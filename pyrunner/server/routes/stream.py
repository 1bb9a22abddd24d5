"""Bodies of any length, sent with the client's pace and without holding them in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_CHUNK = 256 << 10


class StreamedResponse(Response):
    """Sends `chunks` as they come; starlette's own passes every chunk through a task group."""

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self._chunks = chunks
        self.status_code = status
        self.media_type = media_type
        self.background = None
        self.body = b""
        self.init_headers(headers)
        length = (headers or {}).get("Content-Length")
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length" or length is not None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def file_chunks(path: Path, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
    """The bytes `start` to `end` of a file. Read on the event loop: a page cache read is cheaper than a thread."""
    with path.open("rb") as file:
        file.seek(start)
        left = end - start if end is not None else None
        while chunk := file.read(_CHUNK if left is None else min(_CHUNK, left)):
            if left is not None:
                left -= len(chunk)
            yield chunk
