"""One runner without a config file: ask, run, ask again (facts/commands.md section 4; runner-api.md 9.2)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyrunner.api.client import RunnerClient
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.supervisor import Supervisor
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.executors.loader import executor_provider
from pyrunner.manager.assignment import JobOptions
from pyrunner.manager.entry import Clients, Entry, FindProvider, make_entries
from pyrunner.manager.ledger import Ledger
from pyrunner.manager.poller import Polled, Poller
from pyrunner.manager.post import Post
from pyrunner.manager.shutdown import LAST_WAIT, Process, Shutdown, StopAction
from pyrunner.store.letter import Sender
from pyrunner.store.outbox import Outbox

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SingleOptions:
    """When a single runner ends by itself, and its pauses in seconds."""

    jobs: JobOptions
    #: End after so many jobs; 0 = never.
    max_builds: int = 0
    #: End when there was no job for so many seconds; 0 = never.
    wait_timeout: float = 0
    check_interval: float = 3.0
    unhealthy_interval: float = 300.0
    shutdown_timeout: float = 30.0
    find_provider: FindProvider = executor_provider
    #: Where the ends of jobs wait for their server, across processes; None: they end with this one.
    outbox: Outbox | None = None


class SingleRunner:
    """Runs the jobs of one runner, one at a time. `run` blocks; the other methods are safe from any thread."""

    def __init__(self, runner: RunnerConfig, options: SingleOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._shutdown = Shutdown()
        self._quit = CancelToken()
        self._stop = CancelToken()
        self._ledger = Ledger()
        self._clients = Clients()
        self._supervisor = Supervisor("single")
        self._signal = ""
        self._finished = False
        self._entry: Entry = make_entries(
            Config(runners=[runner]), self._clients, options.jobs.system_id, options.find_provider
        )[0]
        outbox = options.outbox
        self._post = Post(outbox, self._client_of, self._stop) if outbox is not None else None
        self._poller = Poller(
            self._ledger,
            replace(options.jobs, post=self._post),
            requests=self._quit,
            stop=self._stop,
            again=lambda entry: None,
            max_builds=lambda: 1,
        )

    def run(self) -> None:
        """Take jobs until a limit is reached or told to stop.

        Raises:
            PyrunnerError: the job would not stop in time.
        """
        config = self._entry.config
        log.info("Starting runner for %s with token %s ...", config.url, self._entry.short_token)
        if self._post is not None:
            self._post.start()
        self._supervisor.start("worker", self._work)
        try:
            self._wait()
        finally:
            if self._post is not None:
                self._post.close()
        self._clients.close()
        if self._supervisor.error is not None:
            raise self._supervisor.error

    def _wait(self) -> None:
        deadline: float | None = None
        while not self._finished:
            if self._shutdown.state is Process.IMPATIENT:
                self._leave(f"forced exit: {self._signal}")
            if self._shutdown.state is Process.FORCEFUL and deadline is None:
                deadline = time.monotonic() + self._options.shutdown_timeout
            pause = None if deadline is None else deadline - time.monotonic()
            if pause is not None and pause <= 0:
                self._leave("shutdown timed out")
            self._wake.wait(pause)
            self._wake.clear()
        self._supervisor.join()
        self._shut_down_provider()

    def _shut_down_provider(self) -> None:
        token = CancelToken()
        token.expire_in(self._options.shutdown_timeout, TimeoutError("shutdown timeout"))
        try:
            if self._entry.provider is not None:
                self._entry.provider.shutdown(token)
        finally:
            token.close()

    def _client_of(self, sender: Sender) -> RunnerClient | None:
        return self._entry.client if self._entry.is_of(sender) else None

    def stop_gracefully(self, signal: str = "quit") -> None:
        """End after the running job."""
        self._request_stop(self._shutdown.graceful, signal)

    def stop_forcefully(self, signal: str = "terminated") -> None:
        """Abort the running job and end."""
        self._request_stop(self._shutdown.forceful, signal)

    def _request_stop(self, change: Callable[[], StopAction], signal: str) -> None:
        with self._lock:
            action = change()
            self._signal = signal
        log.warning("Requested exit: %s", signal)
        if action is StopAction.STOP_FORCEFULLY:
            self._ledger.interrupt(signal)
            if self._post is not None:
                self._post.leave()
        self._quit.cancel(PyrunnerError(f"requested exit: {signal}"))
        self._wake.set()

    def _leave(self, text: str) -> None:
        self._ledger.kill()
        deadline = time.monotonic() + LAST_WAIT
        while not self._finished and (pause := deadline - time.monotonic()) > 0:
            self._wake.wait(pause)
            self._wake.clear()
        self._stop.cancel(PyrunnerError(text))
        raise PyrunnerError(text)

    def _work(self) -> None:
        try:
            self._take_jobs()
        finally:
            self._finished = True
            self._wake.set()

    def _take_jobs(self) -> None:
        left = self._options.max_builds
        last_job = time.monotonic()
        while not self._quit.cancelled:
            polled = self._poller.poll(self._entry)
            if polled is Polled.JOB:
                last_job = time.monotonic()
                left -= 1
                if self._options.max_builds and left <= 0:
                    log.info("This runner has processed its build limit, so now exiting")
                    return
            if polled in (Polled.JOB, Polled.LOST_JOB):
                continue
            if polled is Polled.UNHEALTHY:
                log.info("Runner is not healthy!")
            pause = self._options.unhealthy_interval if polled is Polled.UNHEALTHY else self._options.check_interval
            limit = self._options.wait_timeout
            waited = time.monotonic() - last_job
            if limit and waited > limit:
                log.info("This runner has not received a job in %d seconds, so now exiting", int(limit))
                return
            self._quit.wait(min(pause, max(0.0, limit - waited) + 0.01) if limit else pause)
