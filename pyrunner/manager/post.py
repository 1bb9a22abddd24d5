"""Bringing the ends of jobs to their servers when the job's own slot could not: in the background, across restarts.

Each server has a thread while anything waits for it, so that one which hangs does not hold up the others. A delivery
ends when the server has the verdict or says that the job is gone; nothing else ends it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable

import msgspec

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.wire import Info
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import PyrunnerError
from pyrunner.base.kill_point import kill_point
from pyrunner.base.supervisor import Supervisor
from pyrunner.job.trace.final import Ending
from pyrunner.job.trace.plan import Done, FinalPlan, Progress, Wait
from pyrunner.job.trace.protocol import JobEnd, TraceClient, Verdict
from pyrunner.job.trace.sender import Delivery, Snapshot
from pyrunner.manager.lane import Lane, Parcel
from pyrunner.store.letter import Letter, Sender
from pyrunner.store.outbox import Entry, Outbox
from pyrunner.store.seal import SealError

log = logging.getLogger(__name__)

FindClient = Callable[[Sender], TraceClient | None]


class Post:
    """The outbox of one process and the threads that empty it. Safe from any thread.

    Args:
        find_client: the client of the runner that is configured now, which may reach the server where the one of the
            time of the job could not; None when there is none any more.
        stop: cancelled when the process must go at once.
    """

    def __init__(self, outbox: Outbox, find_client: FindClient, stop: CancelToken) -> None:
        self._outbox = outbox
        self._find_client = find_client
        self._requests = stop.child()
        #: Cancelled when running jobs are aborted: their ends get one try, then they wait for the next process.
        self.leaving = stop.child()
        self._supervisor = Supervisor("outbox")
        self._lock = threading.Lock()
        self._lanes: dict[str, Lane] = {}
        self._clients: dict[Sender, RunnerClient] = {}
        self._waiting = 0
        self._closed = False

    def start(self) -> None:
        """Go on with what earlier processes left."""
        self._supervisor.start("adopt", self._adopt)

    @property
    def directory(self) -> str:
        """Where logs grow that may come into the outbox; empty when there is none."""
        try:
            return self._outbox.directory()
        except OSError:
            # `keep` says so, job by job
            return ""

    def box(self, sender: Sender) -> Box:
        """Where a job of `sender` puts its end."""
        return Box(self, self._outbox, sender)

    def leave(self) -> None:
        """The process was told to stop at once."""
        self.leaving.cancel(PyrunnerError("the process stops"))

    def close(self) -> None:
        """Stop delivering; what is left waits for the next process."""
        self.leave()
        self._requests.cancel(PyrunnerError("the process stops"))
        with self._lock:
            self._closed = True
            lanes = list(self._lanes.values())
        for lane in lanes:
            lane.close()
        self._supervisor.join()
        for client in self._clients.values():
            client.close()
        self._outbox.close()
        self.leaving.close()
        self._requests.close()
        if self._waiting:
            log.warning(
                "Final states of jobs wait in the outbox for the next start",
                extra={"action": "outbox_left", "jobs": self._waiting},
            )

    def server_answers(self, url: str) -> None:
        """A request to the server at `url` succeeded: what waits for it need not wait longer. Costs next to nothing."""
        lane = self._lanes.get(url)
        if lane is not None:
            lane.hasten()

    def add(self, entry: Entry, ending: Ending) -> None:
        """Go on with an entry where `ending` stands."""
        ending.plan.endless()
        with self._lock:
            self._waiting += 1
            if self._closed:
                return
            lane = self._lanes.get(entry.letter.sender.url)
            if lane is None:
                lane = self._lanes[entry.letter.sender.url] = Lane(self._step, self._supervisor)
        lane.add(Parcel(entry=entry, ending=ending))

    def _step(self, parcel: Parcel) -> Wait | Done | None:
        """Try a parcel; None when the process is about to go or the parcel cannot be read."""
        letter = parcel.entry.letter
        snapshot = Snapshot(letter.size, letter.checksum)
        delivery = Delivery(
            client=self._find_client(letter.sender) or self._own_client(letter.sender),
            job_id=letter.job_id,
            job_token=letter.job_token,
            info=letter.info,
            debug_trace=letter.debug_trace,
            read=parcel.entry.read,
            snapshot=lambda: snapshot,
        )
        try:
            result = parcel.ending.step(delivery, self._requests)
        except OSError as error:
            log.error(  # noqa: TRY400 - one line for the operator
                "Cannot read an entry of the outbox",
                extra={**parcel.fields, "action": "outbox_unreadable", "path": parcel.entry.path, "error": str(error)},
            )
            return None
        if isinstance(result, Done) and not result.delivered:
            return None
        if isinstance(result, Done):
            parcel.entry.remove()
            with self._lock:
                self._waiting -= 1
            log.info("Delivered the final state of a job from the outbox", extra=parcel.fields)
        return result

    def _adopt(self) -> None:
        try:
            entries = self._outbox.adopt()
        except OSError as error:
            log.warning(
                "The outbox cannot be used: verdicts do not survive this process",
                extra={"action": "outbox_unusable", "error": str(error)},
            )
            return
        if entries:
            log.info("Resuming final states of jobs from the outbox", extra={"jobs": len(entries)})
        for entry in entries:
            self.add(entry, _fresh(entry.letter))
        # what is wrong here is said when a job needs it
        with contextlib.suppress(OSError, SealError):
            self._outbox.warm_up()

    def _own_client(self, sender: Sender) -> RunnerClient:
        """A client for a runner that is not configured any more; the job's token is all that it needs."""
        with self._lock:
            client = self._clients.get(sender)
            if client is None:
                endpoint = Endpoint(
                    url=sender.url,
                    token=sender.short_token,
                    tls_ca_file=sender.tls_ca_file,
                    tls_cert_file=sender.tls_cert_file,
                    tls_key_file=sender.tls_key_file,
                    name=sender.name,
                )
                client = self._clients[sender] = RunnerClient(endpoint)
            return client


def _fresh(letter: Letter) -> Ending:
    plan = FinalPlan(Progress(offset=min(letter.offset, letter.size)), letter.size)
    return Ending(Verdict(state=letter.state, failure_reason=letter.failure_reason, exit_code=letter.exit_code), plan)


class Box:
    """Keeps the ends of one runner's jobs; implements `Keeper`."""

    def __init__(self, post: Post, outbox: Outbox, sender: Sender) -> None:
        self._post = post
        self._outbox = outbox
        self._sender = sender

    def keep(self, end: JobEnd) -> KeptEnd | None:
        """Write `end` to the outbox."""
        letter = Letter(
            sender=self._sender,
            job_id=end.job_id,
            job_token=end.job_token,
            info=end.info or Info(),
            debug_trace=end.debug_trace,
            state=end.verdict.state,
            failure_reason=end.verdict.failure_reason,
            exit_code=end.verdict.exit_code,
            size=end.size,
            checksum=end.checksum,
            offset=end.offset,
            decided_at=time.time(),
        )
        try:
            entry = self._outbox.put(letter, end.save_trace)
        except (OSError, SealError) as error:
            log.warning(
                "Cannot keep the end of a job in the outbox",
                extra={"action": "outbox_failed", "job": end.job_id, "error": _reason(error)},
            )
            return None
        kill_point("outbox.kept")
        return KeptEnd(self._post, self._outbox, entry)


class KeptEnd:
    """One job's end in the outbox while the job still has its slot; implements `Kept`."""

    def __init__(self, post: Post, outbox: Outbox, entry: Entry) -> None:
        self._post = post
        self._outbox = outbox
        self._entry = entry
        self._synced = False

    @property
    def leaving(self) -> CancelToken:
        """Cancelled when the process is about to go."""
        return self._post.leaving

    def sync(self) -> None:
        """Write it through to the disk, once."""
        if self._synced:
            return
        self._synced = True
        try:
            self._entry.sync()
        except OSError as error:
            self._say("outbox_failed", error)

    def delivered(self) -> None:
        """Remove it."""
        self._entry.remove()

    def hand_over(self, ending: Ending) -> None:
        """Let the background go on."""
        try:
            letter = msgspec.structs.replace(self._entry.letter, offset=ending.plan.offset)
            self._entry = self._outbox.update(self._entry, letter)
        except (OSError, SealError) as error:
            self._say("outbox_failed", error)
        self.sync()
        kill_point("outbox.handed-over")
        self._post.add(self._entry, ending)

    def _say(self, action: str, error: Exception) -> None:
        extra = {"action": action, "job": self._entry.letter.job_id, "error": _reason(error)}
        log.warning("Cannot write an entry of the outbox", extra=extra)


def _reason(error: Exception) -> str:
    """The system's words without its number, and the file if one is known."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
