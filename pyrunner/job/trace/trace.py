"""The trace of one job: what the user sees as its log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from pyrunner.api.outcomes import UpdateAnswer
from pyrunner.api.wire import Info
from pyrunner.base.cancel import CancelToken
from pyrunner.base.supervisor import Supervisor
from pyrunner.job.trace.final import Ending, deliver
from pyrunner.job.trace.limit import DEFAULT_LIMIT, Limit
from pyrunner.job.trace.masker import Masks
from pyrunner.job.trace.plan import DEFAULT_RETRY_LIMIT, FinalPlan, Progress
from pyrunner.job.trace.protocol import JobEnd, Keeper, Kept, TraceClient, Verdict
from pyrunner.job.trace.runs import DEFAULT_PREFIX
from pyrunner.job.trace.sender import Delivery, Sender, Snapshot
from pyrunner.job.trace.spool import Spool
from pyrunner.job.trace.stream import Stream


class JobTrace:
    """Takes output, masks, stamps, limits and spools it, and brings it to the server.

    `runner` is the stream of the runner's own lines, `script` that of the job's output; both are safe from any thread.
    `start` begins to send (nothing is sent within the first interval), `finish` sends the rest and the verdict.
    Without a client the trace is only spooled. `read` gives what has been spooled, for live views.
    """

    def __init__(
        self,
        client: TraceClient | None,
        job_id: int,
        job_token: str,
        *,
        masks: Iterable[str] = (),
        token_prefixes: Sequence[str] = (),
        limit_bytes: int = DEFAULT_LIMIT,
        timestamps: bool = False,
        sections: bool = True,
        info: Info | None = None,
        debug_trace: bool = False,
        retry_limit: int = DEFAULT_RETRY_LIMIT,
        spool_dir: str | None = None,
        dynamic_force_send: bool = False,
        keeper: Keeper | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._limit = Limit(limit_bytes)
        self._spool = Spool(spool_dir)
        self._sections = sections
        self._retry_limit = retry_limit
        self._keeper = keeper
        self._progress = Progress(dynamic=dynamic_force_send)
        self._supervisor = Supervisor(f"trace-{job_id}")
        self._sender: Sender | None = None
        self._sending = True
        self._masks = Masks(_encoded(masks))
        prefixes = (DEFAULT_PREFIX, *token_prefixes)
        self.runner = Stream("00O", self._append, self._masks, prefixes, timestamps=timestamps)
        self.script = Stream("01O", self._append, self._masks, prefixes, timestamps=timestamps, commands=True)
        self._new_stream: Callable[[], Stream] = lambda: Stream(
            "0fO", self._append, self._masks, prefixes, timestamps=timestamps
        )
        self._services: list[Stream] = []
        self._delivery = (
            Delivery(
                client=client,
                job_id=job_id,
                job_token=job_token,
                info=info,
                debug_trace=debug_trace,
                read=self.read,
                snapshot=self._snapshot,
            )
            if client is not None
            else None
        )

    @property
    def size(self) -> int:
        """Bytes of the trace so far, as the server will see them."""
        return self._snapshot().size

    @property
    def checksum(self) -> str:
        """``crc32:<8 hex digits>`` of the trace so far."""
        return self._snapshot().checksum

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes of the trace from `start`."""
        with self._lock:
            return self._spool.read(start, length)

    def add_masks(self, values: Iterable[str]) -> None:
        """Mask `values` too, in both streams, from the next byte on."""
        self._masks.add(_encoded(values))

    def service_stream(self) -> Stream:
        """Another stream, for the output of one service."""
        stream = self._new_stream()
        with self._lock:
            self._services.append(stream)
        return stream

    def section_start(self, name: str) -> None:
        """Open a foldable section; the next line of the runner is its title (facts/job-lifecycle.md 5.3)."""
        self._section("start", name)

    def section_end(self, name: str) -> None:
        """Close a section; what the script left unfinished comes before."""
        self._section("end", name)

    def _section(self, kind: str, name: str) -> None:
        self.script.flush()
        if self._sections:
            self.runner.write(f"section_{kind}:{int(time.time())}:{name}\r\x1b[0K".encode())

    def start(self, abort: Callable[[], None], cancel: Callable[[], None]) -> None:
        """Begin to send. `abort` is called once when the server has given up on the job, `cancel` once when it asks
        to cancel gracefully; both in the sending thread, which they must not block.
        """
        if self._delivery is not None and self._sender is None:
            self._sender = Sender(self._delivery, self._progress, abort, cancel)
            self._supervisor.start("sender", self._sender.run)

    def heard(self, answer: UpdateAnswer) -> None:
        """Take over the update interval that the server asks for in its answer to another update of this job."""
        self._progress.heard(answer)

    def disable_sending(self) -> None:
        """The job is not ours any more: send nothing, not even the verdict."""
        self._stop_sender()
        self._sending = False

    def finish(self, state: str, failure_reason: str = "", exit_code: int = 0, stop: CancelToken | None = None) -> bool:
        """Send the rest of the trace and the verdict; whether the server knows them (or wants nothing more).

        With a `keeper` both are on disk first and stay there until the server has them, whatever this returns.
        `state` is ``success`` or ``failed``; `failure_reason` is already mapped. `stop` gives up early. A trace with a
        client gives its spool back afterwards: `read` yields nothing any more, `size` and `checksum` stay.
        """
        for stream in (self.script, *self._services, self.runner):
            stream.flush()
        verdict = Verdict(state=state, failure_reason=failure_reason, exit_code=exit_code)
        kept = self._keep(verdict)
        detach = stop.on_cancel(self._cut) if stop is not None else None
        self._stop_sender()
        if detach is not None:
            detach()
        if self._delivery is None:
            return False
        try:
            return self._sending and self._deliver(self._delivery, verdict, kept, stop)
        finally:
            self.close()

    def _keep(self, verdict: Verdict) -> Kept | None:
        """Write down what is about to be told, before anything that may take its time."""
        if self._keeper is None or self._delivery is None or not self._sending:
            return None
        delivery, now = self._delivery, self._snapshot()
        end = JobEnd(
            job_id=delivery.job_id,
            job_token=delivery.job_token,
            info=delivery.info,
            debug_trace=delivery.debug_trace,
            verdict=verdict,
            size=now.size,
            checksum=now.checksum,
            offset=self._progress.offset,
            save_trace=self._save,
        )
        return self._keeper.keep(end)

    def _deliver(self, delivery: Delivery, verdict: Verdict, kept: Kept | None, stop: CancelToken | None) -> bool:
        plan = FinalPlan(self._progress, delivery.snapshot().size, self._retry_limit)
        ending = Ending(verdict, plan)
        delivered = deliver(ending, delivery, kept, stop)
        if kept is not None and delivered:
            kept.delivered()
        elif kept is not None:
            kept.hand_over(ending)
        return delivered

    def close(self) -> None:
        """Stop sending and remove the spool; what is written afterwards is gone. May be called twice."""
        self._stop_sender()
        with self._lock:
            self._closed = True
            self._spool.close()

    def _stop_sender(self) -> None:
        if self._sender is not None:
            self._sender.stop()
            self._supervisor.join()

    def _cut(self) -> None:
        if self._sender is not None:
            self._sender.cut()

    def _append(self, data: bytes) -> bool:
        with self._lock:
            if self._closed:
                return False
            taken = self._limit.take(data)
            if taken:
                self._spool.append(taken)
            return not self._limit.full

    def _save(self, path: str) -> None:
        with self._lock:
            self._spool.save_as(path)

    def _snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(self._spool.size, self._spool.checksum)


def _encoded(values: Iterable[str]) -> list[bytes]:
    return [value.encode("utf-8", "surrogateescape") for value in values]
