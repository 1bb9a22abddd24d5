"""Faults that a fake server injects into its answers, and the log of what was asked."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyrunner.server.listener import Application

#: So much of each request's body is kept for tests to look at.
_BODY_KEPT = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong.

    Without `handled` the server never sees the request; with it the request takes effect and only the answer suffers.

    Args:
        kind: ``status`` answers with `status`, `headers` and `body`; ``slow`` waits `seconds`, then goes on as usual
            (with `handled`: the request takes effect first, the answer is late); ``drop`` closes the connection
            without an answer; ``cut`` sends about half of the answer, then closes; ``cut-request`` closes after half of
            the request's body.
    """

    kind: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    handled: bool = False


def status(code: int, headers: Mapping[str, str] | None = None, *, body: bytes = b"", handled: bool = False) -> Fault:
    """Answer with this status."""
    return Fault(kind="status", status=code, headers=headers or {}, body=body, handled=handled)


def slow(seconds: float, *, handled: bool = False) -> Fault:
    """Wait before the request is served, or (`handled`) before its answer is sent."""
    return Fault(kind="slow", seconds=seconds, handled=handled)


def drop(*, handled: bool = False) -> Fault:
    """Close the connection without an answer."""
    return Fault(kind="drop", handled=handled)


def cut() -> Fault:
    """Serve the request, send half of the answer, close."""
    return Fault(kind="cut", handled=True)


def cut_request() -> Fault:
    """Close when half of the request's body has come."""
    return Fault(kind="cut-request")


@dataclass
class Injection:
    """A fault in place; `count` says how often it has struck."""

    method: str
    path: re.Pattern[str]
    fault: Fault
    times: int | None
    skip: int
    count: int = 0

    def strikes(self, method: str, path: str) -> bool:
        """Whether this request is hit; counts it."""
        if self.method not in ("*", method) or not self.path.search(path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None and self.count >= self.times:
            return False
        self.count += 1
        return True


@dataclass
class SeenRequest:
    """One request; `status` is 0 when no answer was begun. `path` has no query."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    at: float = 0.0
    status: int = 0
    body: bytes = b""
    fault: Fault | None = None

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class FaultLayer:
    """Wraps the application: logs every request and lets injected faults strike."""

    def __init__(self) -> None:
        self.requests: list[SeenRequest] = []
        self.changed = threading.Condition()
        self._injections: list[Injection] = []
        self._closing: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def inject(self, injection: Injection) -> Injection:
        """Put a fault in place; of several that fit a request the first one strikes."""
        self._injections.append(injection)
        return injection

    def clear(self) -> None:
        """Take all faults away."""
        self._injections.clear()

    def release(self) -> None:
        """Let slow answers go."""
        if self._loop is not None and self._closing is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._closing.set)

    def wrap(self, app: Application) -> Application:
        """The application with faults."""
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()

        async def faulty(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
            seen = SeenRequest(
                method=scope["method"],
                path=scope["path"],
                query=scope["query_string"].decode("latin-1"),
                headers={key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]},
                at=time.monotonic(),
            )
            injection = next((i for i in self._injections if i.strikes(seen.method, seen.path)), None)
            seen.fault = injection.fault if injection else None
            with self.changed:
                self.requests.append(seen)
                self.changed.notify_all()
            exchange = _Exchange(app=app, scope=scope, receive=receive, send=send, seen=seen)
            try:
                await self._serve(exchange, seen.fault)
            finally:
                with self.changed:
                    self.changed.notify_all()

        return faulty

    async def _serve(self, exchange: _Exchange, fault: Fault | None) -> None:
        if fault is None:
            await exchange.pass_on()
        elif fault.kind == "slow":
            if fault.handled:
                await exchange.pass_on(before_answer=lambda: self._wait(fault.seconds))
            else:
                await self._wait(fault.seconds)
                await exchange.pass_on()
        elif fault.kind == "cut":
            await exchange.cut_answer()
        elif fault.kind == "cut-request":
            await exchange.cut_request()
        else:
            await exchange.swallow() if fault.handled else await exchange.read()
            await (exchange.close() if fault.kind == "drop" else exchange.answer(fault))

    async def _wait(self, seconds: float) -> None:
        assert self._closing is not None
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return


@dataclass
class _Exchange:
    """One request and the ways to spoil it."""

    app: Application
    scope: dict[str, Any]
    receive: Callable[..., Any]
    send: Callable[..., Any]
    seen: SeenRequest

    async def pass_on(self, before_answer: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve as usual."""

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                if before_answer is not None:
                    await before_answer()
                self.seen.status = message["status"]
            await self.send(message)

        await self.app(self.scope, self._recording, send)

    async def swallow(self) -> list[dict[str, Any]]:
        """Let the server handle the request, but keep its answer."""
        messages: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self.app(self.scope, self._recording, send)
        return messages

    async def read(self) -> None:
        """Read the whole request and do nothing about it."""
        while (await self._recording()).get("more_body"):
            continue

    async def answer(self, fault: Fault) -> None:
        """Answer with the fault's status."""
        body = fault.body or json.dumps({"message": f"{fault.status} injected"}).encode()
        if fault.status in (204, 304):
            body = b""
        headers = {"content-type": "application/json", "content-length": str(len(body)), **fault.headers}
        self.seen.status = fault.status
        raw = [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]
        await self.send({"type": "http.response.start", "status": fault.status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})

    async def cut_answer(self) -> None:
        """Send the head and half of the body."""
        messages = await self.swallow()
        body = b"".join(message.get("body", b"") for message in messages)
        start = dict(messages[0])
        kept = [pair for pair in start["headers"] if pair[0].lower() not in (b"content-length", b"transfer-encoding")]
        start["headers"] = [*kept, (b"content-length", str(max(len(body), 2)).encode())]
        self.seen.status = start["status"]
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        await self.close()

    async def cut_request(self) -> None:
        """Read half of the request's body, then close."""
        length = int(self.seen.headers.get("content-length", "2"))
        while len(self.seen.body) * 2 < length:
            if not (await self._recording()).get("more_body"):
                break
        await self.close(abort=True)

    async def close(self, *, abort: bool = False) -> None:
        """Close the connection under the server's feet."""
        # ASGI has no word for this: uvicorn's request cycle owns `receive`, and knows its transport
        cycle = self.receive.__self__  # type: ignore[attr-defined]
        transport = cycle.transport
        transport.abort() if abort else transport.close()
        while not cycle.disconnected:
            await asyncio.sleep(0.001)

    async def _recording(self) -> dict[str, Any]:
        message: dict[str, Any] = await self.receive()
        room = _BODY_KEPT - len(self.seen.body)
        if room > 0:
            self.seen.body += message.get("body", b"")[:room]
        return message
