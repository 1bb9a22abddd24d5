"""A real HTTP server on a real socket whose every answer, byte for byte, is up to the test."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest


@dataclass(kw_only=True)
class Request:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    #: Number of the connection it came on, from 0.
    connection: int
    head: str = ""
    #: The client's certificate, when it showed one.
    client_certificate: object = None


Answer = Callable[["Request", socket.socket], bool | None]


def reply(
    status: int, body: bytes = b"", *, reason: str = "Some Reason", close: bool = False, **headers: str
) -> Answer:
    """An answer with a length; underscores in header names stand for dashes."""

    def send(_request: Request, sock: socket.socket) -> bool:
        lines = [f"HTTP/1.1 {status} {reason}"]
        if status != 204:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines += ["Connection: close"] if close else []
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return not close

    return send


def json_reply(status: int, text: str, **headers: str) -> Answer:
    """An answer with a JSON body."""
    return reply(status, text.encode(), Content_Type="application/json", **headers)


def raw(data: bytes) -> Answer:
    """These bytes, then the end of the connection."""

    def send(_request: Request, sock: socket.socket) -> bool:
        sock.sendall(data)
        return False

    return send


def hang_up(_request: Request, _sock: socket.socket) -> bool:
    """No answer at all."""
    return False


@dataclass
class Server:
    """Answers requests in order from `answers`, the last one forever."""

    listener: socket.socket
    context: ssl.SSLContext | None = None
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    #: Set to end answers that wait.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: Set whenever a request has arrived.
    arrived: threading.Event = field(default_factory=threading.Event)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://localhost:{self.port}"

    def script(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def silence(self, _request: Request, _sock: socket.socket) -> bool:
        """Hold the request open until the test ends or the client goes away."""
        self.stopping.wait(20)
        return False

    def start(self) -> None:
        self._threads.append(threading.Thread(target=self._accept))
        self._threads[0].start()

    def stop(self) -> None:
        self.stopping.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.drop_connections()
        for thread in self._threads:
            thread.join(10)
        self.listener.close()

    def drop_connections(self) -> None:
        """Close every open connection, as a server does with idle ones."""
        for sock in self._open:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                thread = threading.Thread(target=self._serve, args=(sock, self.connections))
                self.connections += 1
                self._threads.append(thread)
                thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        # a client that gives up in the middle of a request is part of the tests
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            stack.callback(sock.close)
            if self.context is not None:
                sock = stack.enter_context(self.context.wrap_socket(sock, server_side=True))
            self._open.append(sock)
            stack.callback(self._open.remove, sock)
            stream = stack.enter_context(sock.makefile("rb"))
            while (request := read_request(stream, number)) is not None:
                if isinstance(sock, ssl.SSLSocket):
                    request.client_certificate = sock.getpeercert()
                self.requests.append(request)
                self.arrived.set()
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not answer(request, sock):
                    return


def read_request(stream, connection: int) -> Request | None:  # type: ignore[no-untyped-def]
    line = stream.readline().decode()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    head = line
    while (entry := stream.readline().decode("latin-1")) not in ("\r\n", ""):
        head += entry
        name, _, value = entry.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = b""
    if headers.get("transfer-encoding") == "chunked":
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    elif "content-length" in headers:
        body = stream.read(int(headers["content-length"]))
    return Request(method=method, target=target, headers=headers, body=body, connection=connection, head=head)


def _listen() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
def server() -> Iterator[Server]:
    """A plain server."""
    served = Server(_listen())
    served.start()
    yield served
    served.stop()


@pytest.fixture
def make_server() -> Iterator[Callable[..., Server]]:
    """Makes further servers, with TLS when given a context."""
    made: list[Server] = []

    def make(context: ssl.SSLContext | None = None) -> Server:
        served = Server(_listen(), context)
        served.start()
        made.append(served)
        return served

    yield make
    for served in made:
        served.stop()
