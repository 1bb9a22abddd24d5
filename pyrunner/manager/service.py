"""The long-running process: it feeds runners to workers until it is told to stop (facts/job-lifecycle.md 11)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyrunner.api.client import RunnerClient
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.supervisor import Supervisor
from pyrunner.config.model import Config
from pyrunner.executors.loader import executor_provider
from pyrunner.manager.advice import long_polling_issues
from pyrunner.manager.assignment import JobOptions
from pyrunner.manager.dispatch import Dispatch
from pyrunner.manager.entry import Clients, Entry, FindProvider, make_entries
from pyrunner.manager.feeder import FeedPlan
from pyrunner.manager.health import Health
from pyrunner.manager.ledger import Ledger
from pyrunner.manager.poller import Poller
from pyrunner.manager.post import Post
from pyrunner.manager.recovery import recover
from pyrunner.manager.reload import WATCH_INTERVAL, ConfigWatch
from pyrunner.manager.rotation import Rotation, rotate
from pyrunner.manager.shutdown import LAST_WAIT, Process, Shutdown, StopAction
from pyrunner.store.letter import Sender
from pyrunner.store.outbox import Outbox

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How a service runs."""

    jobs: JobOptions = field(default_factory=JobOptions)
    #: Called with each config that is taken into use, before it is.
    configured: Callable[[Config], None] = lambda config: None
    find_provider: FindProvider = executor_provider
    #: Where the ends of jobs wait for their server, across processes; None: they end with this one.
    outbox: Outbox | None = None
    #: Directory for what outlives the process; empty = none.
    home: str = ""
    #: ``run --listen-address``
    listen_address: str = ""
    watch_interval: float = WATCH_INTERVAL


class Service:
    """Takes jobs for all runners of a config.

    `run` blocks in the calling thread. The other methods are safe from any thread, also before `run` begins, but not
    from a signal handler: they lock.

    Args:
        load: reads the config; called again on every reload. A config whose `path` is empty is not watched.
    """

    def __init__(self, load: Callable[[], Config], options: ServiceOptions | None = None) -> None:
        self._options = options or ServiceOptions()
        self._watch = ConfigWatch(load)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._shutdown = Shutdown()
        self._signal = ""
        self._reload_asked = False
        self._requests = CancelToken()
        self._stop = CancelToken()
        self._ledger = Ledger()
        self._clients = Clients()
        self._rotation = Rotation()
        self._supervisor = Supervisor("manager")
        self._config = Config()
        self._entries: dict[object, Entry] = {}
        self._plan: FeedPlan[Entry] = FeedPlan((), 3.0, time.monotonic())
        self._dispatch: Dispatch[Entry] = Dispatch(self._start_worker, 1)
        outbox = self._options.outbox
        self._post = Post(outbox, self._client_of, self._stop) if outbox is not None else None
        self._poller = Poller(
            self._ledger,
            replace(self._options.jobs, post=self._post),
            requests=self._requests,
            stop=self._stop,
            again=self._again,
            max_builds=lambda: self._config.concurrent,
        )

    @property
    def state(self) -> Process:
        """Where the process stands."""
        return self._shutdown.state

    @property
    def builds(self) -> int:
        """How many jobs are running."""
        return self._ledger.builds

    def run(self) -> int:
        """Take jobs until told to stop; 0 when everything ended in order, 1 when jobs had to be left behind.

        Raises:
            PyrunnerError: the config cannot be used.
        """
        self._use(self._watch.first())
        if self._post is not None:
            self._post.start()
        self._tell_endpoints()
        self._tell("Initializing executor providers")
        recover(self._entries.values(), self._options.jobs.system_id, self._options.home)
        try:
            while self._shutdown.state is Process.RUNNING:
                self._wake.wait(self._turn())
                self._wake.clear()
        finally:
            self._requests.cancel(PyrunnerError("the process stops"))
            self._dispatch.close()
        try:
            return self._end()
        finally:
            if self._post is not None:
                self._post.close()

    def stop_gracefully(self, signal: str = "quit") -> None:
        """Take no more jobs and end when the running ones have."""
        self._request_stop(self._shutdown.graceful, signal)

    def stop_forcefully(self, signal: str = "terminated") -> None:
        """Abort the running jobs and end when they have, at most ``shutdown_timeout`` later; again: leave at once."""
        self._request_stop(self._shutdown.forceful, signal)

    def reload(self) -> None:
        """Read the config again soon."""
        self._reload_asked = True
        self._wake.set()

    def _request_stop(self, change: Callable[[], StopAction], signal: str) -> None:
        with self._lock:
            action = change()
            self._signal = signal
        self._tell_signal(signal)
        if action is not StopAction.NOTHING:
            self._requests.cancel(PyrunnerError(f"received stop signal: {signal}"))
        if action is StopAction.STOP_FORCEFULLY:
            self._ledger.interrupt(signal)
            if self._post is not None:
                self._post.leave()
        self._wake.set()

    # the feeding loop

    def _turn(self) -> float:
        """Do what is due; seconds until something may be due again."""
        asked, self._reload_asked = self._reload_asked, False
        if (asked or self._watch.changed()) and (config := self._watch.reload()) is not None:
            self._use(config)
            self._ledger.reloaded()
        pauses = [self._options.watch_interval]
        for entry in self._rotation.due(time.time()):
            self._supervisor.start("rotation", lambda entry=entry: self._rotate(entry))  # type: ignore[misc]
        pause = self._rotation.pause(time.time())
        if pause is not None:
            pauses.append(pause)
        feed = self._plan.due(time.monotonic())
        if feed.runner is not None:
            self._feed(feed.runner)
        return min(*pauses, feed.pause)

    def _use(self, config: Config) -> None:
        self._options.configured(config)
        entries = make_entries(config, self._clients, self._options.jobs.system_id, self._options.find_provider)
        with self._lock:
            self._config = config
            self._entries = {entry.place: entry for entry in entries}
        self._dispatch.resize(config.concurrent)
        self._plan.reload(entries, config.effective_check_interval, time.monotonic())
        self._rotation.reload(entries if config.path else [])
        self._tell("Configuration loaded")
        if issues := long_polling_issues(config):
            log.warning("\n".join(issues), extra={"action": "long_polling_issues"})

    def _feed(self, entry: Entry) -> None:
        health = self._ledger.check_health(entry)
        if health is Health.UNHEALTHY:
            return
        if health is Health.FORCED:
            log.warning(
                f'Runner "{entry.unique_id}" is not healthy, but check for a new job will be forced!',
                extra=entry.log_fields,
            )
        self._dispatch.offer(entry.place, entry)

    def _again(self, entry: Entry) -> None:
        with self._lock:
            current = self._entries.get(entry.place)
        if current is not None:
            self._dispatch.offer(current.place, current)

    def _client_of(self, sender: Sender) -> RunnerClient | None:
        with self._lock:
            entries = list(self._entries.values())
        return next((entry.client for entry in entries if entry.is_of(sender)), None)

    def _rotate(self, entry: Entry) -> None:
        try:
            if rotate(entry, self._config.path):
                self.reload()
        except (PyrunnerError, OSError) as error:
            log.error(  # noqa: TRY400 - one line for the operator
                "Could not save the new runner token", extra={**entry.log_fields, "error": str(error)}
            )

    # workers

    def _start_worker(self) -> None:
        self._supervisor.start("worker", self._work)

    def _work(self) -> None:
        while (entry := self._dispatch.take()) is not None:
            try:
                self._poller.poll(entry)
            except Exception:
                log.exception("Worker failed", extra={**entry.log_fields, "action": "worker_failed"})
        self._wake.set()

    # the end

    def _end(self) -> int:
        if not self._wait_for_workers():
            self._ledger.kill()
            self._dispatch_ends_within(LAST_WAIT)
            self._stop.cancel(PyrunnerError("the process must go"))
            log.warning("Forceful shutdown not finished properly", extra=self._counts())
            self._shut_down_providers()
            return 1
        self._supervisor.join()
        self._tell("All workers stopped.")
        self._tell("Shutting down executor providers")
        self._shut_down_providers()
        self._tell("All executor providers shut down.")
        self._clients.close()
        self._requests.close()
        self._tell("Can exit now!")
        return 0

    def _wait_for_workers(self) -> bool:
        """Whether all workers ended: without limit while graceful, within ``shutdown_timeout`` when forceful."""
        deadline: float | None = None
        told: Process | None = None
        while self._dispatch.workers:
            state = self._shutdown.state
            if state is Process.IMPATIENT:
                return False
            if state is not told:
                told = state
                deadline = self._tell_shutdown(state)
            pause = None if deadline is None else deadline - time.monotonic()
            if pause is not None and pause <= 0:
                return False
            self._wake.wait(pause)
            self._wake.clear()
        if told is None:
            self._tell_shutdown(self._shutdown.state)
        return True

    def _dispatch_ends_within(self, seconds: float) -> None:
        """Give the ends of killed jobs the time to be told."""
        deadline = time.monotonic() + seconds
        while self._dispatch.workers and (pause := deadline - time.monotonic()) > 0:
            self._wake.wait(pause)
            self._wake.clear()

    def _tell_shutdown(self, state: Process) -> float | None:
        """Log what begins; the deadline if there is one."""
        if state is Process.GRACEFUL:
            log.warning(
                "Starting graceful shutdown, waiting for builds to finish",
                extra={**self._counts(), "StopSignal": self._signal},
            )
            return None
        timeout = self._config.effective_shutdown_timeout
        log.warning(
            "Graceful shutdown not finished properly. To gracefully clean up running plugins please use SIGQUIT "
            "(ctrl-\\) instead of SIGINT (ctrl-c)",
            extra={**self._counts(), "error": f"received stop signal: {self._signal}"},
        )
        log.warning(
            "Starting forceful shutdown",
            extra={**self._counts(), "StopSignal": self._signal, "shutdown-timeout": f"{timeout}s"},
        )
        return time.monotonic() + timeout

    def _shut_down_providers(self) -> None:
        token = CancelToken()
        token.expire_in(self._config.effective_shutdown_timeout, TimeoutError("shutdown timeout"))
        try:
            providers = {id(entry.provider): entry.provider for entry in self._entries.values() if entry.provider}
            for provider in providers.values():
                provider.shutdown(token)
        finally:
            token.close()

    def _tell_endpoints(self) -> None:
        if self._options.listen_address or self._config.listen_address:
            log.warning(
                "listen_address is ignored: metrics & debug endpoints come in a later version", extra=self._counts()
            )
        else:
            self._tell("listen_address not defined, metrics & debug endpoints disabled")
        if self._config.session_server.listen_address:
            log.warning("[session_server] is ignored: session endpoints come in a later version", extra=self._counts())
        else:
            self._tell("[session_server].listen_address not defined, session endpoints disabled")

    def _tell(self, message: str) -> None:
        log.info(message, extra=self._counts())

    def _tell_signal(self, signal: str) -> None:
        log.warning("[runWait] received stop signal", extra={**self._counts(), "stop-signal": signal})

    def _counts(self) -> dict[str, object]:
        return {"builds": self._ledger.builds, "max_builds": self._config.concurrent}
