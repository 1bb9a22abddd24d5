"""Output of services in the log of the job, for ``CI_DEBUG_SERVICES`` (facts/job-lifecycle.md 5.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pyrunner.base.cancel import CancelToken
from pyrunner.base.supervisor import Supervisor
from pyrunner.executors.docker.containers import Container
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.engine.hijack import Hijacked
from pyrunner.executors.protocol import TraceWriter

log = logging.getLogger(__name__)

_GREY = b"\x1b[0;90m"
_RESET = b"\x1b[0;m"
#: A line without an end is passed on in pieces of this size.
_LONGEST_LINE = 8 * 1024


class PrefixedLines:
    """Puts the names of a service in front of each of its lines; pieces of any size in, whole lines out."""

    def __init__(self, aliases: Sequence[str]) -> None:
        self._prefix = _GREY + f"[service:{'-'.join(aliases)}] ".encode()
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The lines that are complete now."""
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            whole, newline, rest = whole + newline + rest, b"\n", b""
        self._rest = rest
        return self._marked(whole) if newline else b""

    def flush(self) -> bytes:
        """The last line, which has no end."""
        rest, self._rest = self._rest, b""
        return self._marked(rest) if rest else b""

    def _marked(self, lines: bytes) -> bytes:
        return self._prefix + lines.replace(b"\n", _RESET + b"\n" + self._prefix) + _RESET + b"\n"


class ServiceLogs:
    """Follows services from before their start to their end; a thread each."""

    def __init__(self, engine: Engine, writer: Callable[[], TraceWriter]) -> None:
        self._engine = engine
        self._writer = writer
        self._threads = Supervisor("service-logs")
        self._stop = CancelToken()

    def follow(self, container: Container, aliases: Sequence[str]) -> None:
        """Pass on all output of a container that has not been started yet."""
        engine = self._engine.sibling()
        try:
            stream = engine.attach(container.id)
        except EngineError:
            engine.close()
            raise
        lines, writer = PrefixedLines(aliases), self._writer()
        self._threads.start(container.short_id, lambda: self._pump(engine, stream, lines, writer))

    def close(self, patience: float = 5.0) -> None:
        """Wait for the last words of containers that have been removed, at most `patience` seconds."""
        if not self._threads.join(patience):
            self._stop.cancel(RuntimeError("the job ends"))
            self._threads.join()
        self._stop.close()

    def _pump(self, engine: Engine, stream: Hijacked, lines: PrefixedLines, writer: TraceWriter) -> None:
        try:
            stream.pump(lambda data: writer.write(lines.feed(data)), self._stop)
        except OSError as error:
            log.debug("Lost the output of a service: %s", error, extra={"action": "service_log_lost"})
        finally:
            writer.write(lines.flush())
            stream.close()
            engine.close()
