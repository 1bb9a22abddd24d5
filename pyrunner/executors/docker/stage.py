"""One stage over one attached stream: script in, output out, and the way out when it is cancelled."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyrunner.base.cancel import CancelToken
from pyrunner.base.supervisor import Supervisor
from pyrunner.executors.docker.engine.errors import EngineUnreachableError
from pyrunner.executors.docker.engine.hijack import Ended, Hijacked
from pyrunner.executors.protocol import ExecutorCommand

log = logging.getLogger(__name__)

#: Seconds of silence after which somebody looks whether the script has ended behind an open stream.
LOOK = 5.0
#: Seconds for the last words of a process that has been stopped.
SETTLE = 5.0


class StageStream:
    """Runs a stage's script through a stream.

    Args:
        stream: attached, its process started or about to be.
        stop: ends the process; called in a thread of its own when the stage is cancelled, while output is still read:
            a process that writes into a full pipe would not notice that it shall end.
        ended: whether the process is over although something in the background keeps its output open.
    """

    def __init__(self, stream: Hijacked, stop: Callable[[], object], ended: Callable[[], bool]) -> None:
        self._stream = stream
        self._stop = stop
        self._ended = ended

    def run(self, command: ExecutorCommand) -> None:
        """Feed the script and pass all output on.

        Raises:
            EngineUnreachableError: the stream broke.
            BaseException: the token's cause, when cancelled; what ran is stopped by then.
        """
        self._stream.send(command.script.encode("utf-8", "surrogateescape"))
        try:
            if self._pump(command, command.token) is Ended.CANCELLED:
                self._cancelled(command)
                command.token.raise_if_cancelled()
        except OSError as error:
            raise EngineUnreachableError(f"lost the connection to the Docker engine: {error.strerror}") from error

    def _pump(self, command: ExecutorCommand, token: CancelToken) -> Ended:
        while True:
            end = self._stream.pump(command.trace.write, token, idle=LOOK)
            if end is not Ended.IDLE or self._ended():
                return end

    def _cancelled(self, command: ExecutorCommand) -> None:
        settled = CancelToken()
        try:
            with Supervisor(f"stop-{command.stage}") as threads:
                threads.start("stop", lambda: self._stop_then(settled))
                self._stream.pump(command.trace.write, settled)
        finally:
            settled.close()

    def _stop_then(self, settled: CancelToken) -> None:
        try:
            self._stop()
        except Exception:  # a thread's top, and the last resort is the removal of the container
            log.exception("Cannot stop the stage", extra={"action": "stop_failed"})
        settled.expire_in(SETTLE, TimeoutError("the stream does not end"))
