"""One run: the embedded server and a manager against it, in this process, and what happens between them."""

from __future__ import annotations

import logging
import os
import queue
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from pyrunner.base.supervisor import Supervisor
from pyrunner.cli.exec.board import Board, Row
from pyrunner.cli.exec.containers import DOCKER, docker_config, lasting_secret, server_host
from pyrunner.cli.exec.context import REF, run_context
from pyrunner.cli.exec.display import Display
from pyrunner.cli.exec.git import LOCAL_VARIABLES
from pyrunner.cli.exec.plan import Plan
from pyrunner.cli.exec.rooms import Room, repository_key
from pyrunner.cli.exec.snapshot import take_snapshot
from pyrunner.cli.signals import SIGNAL_TEXTS
from pyrunner.pipeline.schedule import State
from pyrunner.pipeline.variables import RunContext, job_tags
from pyrunner.server.app import EmbeddedServer
from pyrunner.server.files import JobFiles
from pyrunner.server.ledger import NoLedger
from pyrunner.server.pipeline_source import Change, PipelineSource
from pyrunner.server.runners import RunnerRecord
from pyrunner.server.tokens import RUNNER_PREFIX

if TYPE_CHECKING:
    from pyrunner.config.model import Config
    from pyrunner.manager.service import Service

log = logging.getLogger(__name__)

#: Length of the part of a token that builds directories are named after (facts/job-lifecycle.md 2).
_SHORT = 9


class _Stop(Struct, frozen=True, kw_only=True):
    """A signal asks to end."""

    name: str


class _Ended(Struct, frozen=True, kw_only=True):
    """The manager has ended."""


_News = Change | _Stop | _Ended


class _OneRunner(NoLedger):
    """A server that knows one runner from the start."""

    def __init__(self, record: RunnerRecord) -> None:
        self._record = record

    def runners(self) -> list[RunnerRecord]:
        """The one."""
        return [self._record]


class Session:
    """Runs one plan in one room, and shows it."""

    def __init__(self, plan: Plan, room: Room, display: Display) -> None:
        self._plan = plan
        self._room = room
        self._display = display
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        self._source = PipelineSource(plan.graph, observe=self._news.put)
        self._runner = _runner_record(plan, room)
        self._server = EmbeddedServer(
            self._source,
            host=server_host(plan),
            data_dir=room.data,
            git_root=room.git_root,
            ledger=_OneRunner(self._runner),
        )
        self._service: Service | None = None
        self._stops = 0

    def run(self) -> State:
        """Run the pipeline; what it came to.

        Raises:
            PyrunnerError: it could not be run.
        """
        board = Board(self._plan.graph, time.monotonic())
        with self._server, _signals(lambda name: self._news.put(_Stop(name=name))):
            # the server's thread loads its libraries while git looks at the work tree
            context = self._context(self._server.url)
            self._runner.tags = _tags(self._plan, context)
            self._display.begin(board)
            try:
                self._work(board, context)
            finally:
                self._display.close()
        outcome = self._source.outcome
        self._display.finish(outcome)
        return outcome

    def _context(self, url: str) -> RunContext:
        plan, root = self._plan, self._room.git_root
        fresh = root / "new.git"
        snapshot = take_snapshot(plan.repository, fresh, REF)
        # in a hook these name the user's repository, and jobs would work on it
        for name in LOCAL_VARIABLES:
            os.environ.pop(name, None)
        context = run_context(
            plan.repository.top,
            snapshot,
            server_url=url,
            overrides=plan.variables,
            timeout=plan.timeout,
            config_path=plan.config_path,
        )
        served = root / f"{context.project_path}.git"
        served.parent.mkdir(parents=True, exist_ok=True)
        fresh.rename(served)
        return context

    def _work(self, board: Board, context: RunContext) -> None:
        from pyrunner.manager.assignment import JobOptions
        from pyrunner.manager.service import Service, ServiceOptions

        config = self._config(context)
        system_id = f"s_{repository_key(self._plan.repository.top)[:12]}"
        service = Service(lambda: config, ServiceOptions(jobs=JobOptions(system_id=system_id)))
        self._service = service
        with Supervisor("exec") as supervisor:
            self._source.begin(context)
            supervisor.start("manager", lambda: self._manage(service))
            try:
                self._follow(board)
            except BaseException:
                # nobody looks on any more, e.g. the reader of a pipe has gone: jobs are not left to run unseen
                self._source.cancel()
                service.stop_forcefully("interrupt")
                raise
            service.stop_gracefully("finished")

    def _manage(self, service: Service) -> None:
        try:
            service.run()
        finally:
            self._news.put(_Ended())

    def _follow(self, board: Board) -> None:
        """Show what happens until the run is over and everything has been shown."""
        while not (self._source.over and self._news.empty()):
            news = self._news.get()
            if isinstance(news, _Ended):
                # nobody is left who could finish the jobs that are still out
                self._source.cancel()
                return
            if isinstance(news, _Stop):
                self._stop(news.name)
            else:
                was = board.row(news.job).state
                self._display.changed(board.apply(news, time.monotonic()), was)

    def _stop(self, name: str) -> None:
        self._stops += 1
        if self._stops == 1:
            self._display.note("Canceling; once more leaves at once.")
            self._source.cancel()
        if self._service is not None:
            self._service.stop_forcefully(name)

    def _config(self, context: RunContext) -> Config:
        from pyrunner.config.model import Config, RunnerConfig

        plan, room = self._plan, self._room
        contained = plan.executor in DOCKER
        runner = RunnerConfig(
            name="exec",
            url=context.server_url,
            id=self._runner.id,
            token=self._runner.token,
            executor=plan.executor,
            builds_dir="" if contained else str(room.builds),
            cache_dir="" if contained else str(room.caches),
            docker=docker_config(plan, room) if contained else None,
            # no stamp before each line: this log is read as it comes
            feature_flags={"FF_TIMESTAMPS": False},
        )
        return Config(concurrent=self._plan.concurrent, check_interval=1, runners=[runner])


def _runner_record(plan: Plan, room: Room) -> RunnerRecord:
    """A runner whose short token, which names the builds directory, is the same in every run."""
    secret = lasting_secret(room) if plan.executor in DOCKER else secrets.token_hex(12)
    token = RUNNER_PREFIX + repository_key(plan.repository.top)[:_SHORT] + secret
    return RunnerRecord(id=1, token=token, description="pyrunner exec", run_untagged=True)


def _tags(plan: Plan, context: RunContext) -> list[str]:
    """All tags that jobs ask for: this runner takes every job."""
    return sorted({tag for job in plan.graph.jobs.values() for tag in job_tags(job, context)})


@contextmanager
def _signals(stop: Callable[[str], None]) -> Iterator[None]:
    """Have the stop signals of a terminal call `stop` with GitLab's name for them."""
    names = {**SIGNAL_TEXTS, signal.SIGHUP: "hangup"}
    before = {number: signal.signal(number, lambda given, frame: stop(names[given])) for number in names}  # type: ignore[index]
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def traces(room: Room) -> Callable[[Row], bytes]:
    """Reads the log of a job's latest try; empty when there is none."""
    files = JobFiles(room.data)

    def read(row: Row) -> bytes:
        path = files.trace_path(row.job_id)
        return path.read_bytes() if path.exists() else b""

    return read
