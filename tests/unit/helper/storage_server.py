"""A small real HTTP server: object storage and artifact coordinator in one, with answers that a test prepares."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer:
    """One prepared answer."""

    def __init__(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, *, ranged: bool = False
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
        #: Give the part that the request asks for, as object storage does.
        self.ranged = ranged

    def for_request(self, wanted: str) -> Answer:
        """This answer, or the part of it that the header ``Range: bytes=first-last`` names."""
        if not (self.ranged and wanted):
            return self
        if not self.body:
            return Answer(416)
        first, last = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
        part = self.body[first : last + 1]
        span = f"bytes {first}-{first + len(part) - 1}/{len(self.body)}"
        return Answer(206, part, {**self.headers, "Content-Range": span})


class Seen:
    """One request as it arrived."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body


class StorageServer:
    """Answers in the order that they were prepared, per method; the last one stays."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._answers: dict[str, list[Answer]] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                owner._serve(self)

            do_GET = do_HEAD = do_PUT = do_POST = _serve

            def log_message(self, *arguments: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, method: str, *answers: Answer) -> None:
        self._answers[method] = list(answers)

    def seen(self, method: str) -> list[Seen]:
        return [request for request in self.requests if request.method == method]

    def __enter__(self) -> StorageServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = _body(handler)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append(Seen(handler.command, handler.path, headers, body))
        waiting = self._answers.get(handler.command) or [Answer(404)]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        answer = answer.for_request(headers.get("range", ""))
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        if handler.command != "HEAD" and answer.status != 304:
            handler.wfile.write(answer.body)
        handler.close_connection = True


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    body = b""
    while size := int(handler.rfile.readline(), 16):
        body += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return body
