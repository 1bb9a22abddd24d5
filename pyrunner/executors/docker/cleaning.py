"""Removes, in the background, what has been left behind: by a killed process, or by an engine that did not answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import ConfigError
from pyrunner.base.supervisor import Supervisor
from pyrunner.config.docker import DockerConfig
from pyrunner.executors.docker import labels
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.ledger import Belongings, belongings, remove_all, remove_quietly
from pyrunner.executors.docker.leftovers import Standing, Viewpoint, of_system, standing
from pyrunner.executors.docker.owner import RUNS, this_process
from pyrunner.executors.docker.volumes.eviction import JUST_USED, CachePolicy, CacheVolume, cache_policy, evicted
from pyrunner.executors.docker.volumes.uses import USES, VolumeUses

log = logging.getLogger(__name__)

#: Seconds after the start of a process at which it looks: an engine may still be making what a killed one asked for.
AFTER_START = (0.0, 3.0, 15.0, 45.0)
#: The same after a job whose removal went wrong: what the engine was told last may still be on its way.
AFTER_FAILURE = (0.0, 15.0)
#: The same after a job that has used caches, which may go from then on.
AFTER_USE = (JUST_USED + 1,)
#: Seconds between two tries with an engine that does not answer or does not remove.
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 60.0
#: Seconds until something is looked at again whose owner cannot be seen.
_UNKNOWN_PAUSE = 1800.0
#: Seconds between two looks at caches that may have become old.
_CACHE_PAUSE = 3600.0


def viewpoint(address: EngineAddress) -> Viewpoint:
    """This process, now."""
    local = not address.host or address.host.startswith(("unix://", "npipe://"))
    return Viewpoint(here=this_process(), now=time.time(), runs=RUNS, local=local)


def policy_or_none(docker: DockerConfig) -> CachePolicy | None:
    """What the config says of cache volumes; what it says wrongly is logged, and holds for none."""
    try:
        return cache_policy(docker)
    except ConfigError as error:
        log.error("%s", error, extra={"action": "docker_cache_policy"})  # noqa: TRY400 - a line for the operator
        return None


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a look at an engine has come to."""

    removed: Belongings
    #: All that was to be removed is.
    complete: bool
    #: Something is there whose owner cannot be seen.
    unknown: bool


def sweep(engine: Engine, system_id: str) -> Swept:
    """Remove what this installation has left in an engine; caches and what is in use stay.

    Raises:
        EngineError: it does not answer.
    """
    view = viewpoint(engine.address)
    ours = belongings(engine, system_id=system_id).only(of_system(system_id))
    standings = {id(item): standing(item, view) for item in ours}
    doomed = ours.only(lambda item: standings[id(item)] is Standing.LEFTOVER)
    for item in doomed:
        log.info("Removing leftover %s", item.name, extra={"action": "docker_leftover", "object": item.name})
    complete = remove_all(engine, doomed)
    return Swept(removed=doomed, complete=complete, unknown=Standing.UNKNOWN in standings.values())


@dataclass(kw_only=True)
class _Task:
    address: EngineAddress
    system_id: str
    #: Moments (monotonic) at which to look.
    due: list[float]
    pause: float = _FIRST_PAUSE
    policy: CachePolicy | None = None


@dataclass(kw_only=True)
class _State:
    tasks: dict[tuple[EngineAddress, str], _Task] = field(default_factory=dict)
    running: bool = False


class Cleaner:
    """Looks at engines until nothing is left there; its thread only lives while there is something to do.

    Safe from any thread. Requests are heard between `open` and `close` only: a thread that nobody will end would keep
    the process.
    """

    def __init__(self, clean: Callable[[EngineAddress, str, CachePolicy | None], Swept] | None = None) -> None:
        self._clean = clean or _clean
        self._lock = threading.Lock()
        self._state = _State()
        self._opened = False
        self._stop = CancelToken()
        self._wake = threading.Event()
        self._threads = Supervisor("docker-cleaner")

    def open(self) -> None:
        """Somebody will call `close`."""
        with self._lock:
            self._opened = True

    def request(
        self,
        address: EngineAddress,
        system_id: str,
        after: Sequence[float] = (0.0,),
        *,
        policy: CachePolicy | None = None,
        again: bool = True,
    ) -> None:
        """Look at this engine soon, so many seconds from now; without `again` only if nobody does until then.

        Cache volumes are kept within `policy` from now on.
        """
        now = time.monotonic()
        with self._lock:
            if not self._opened:
                return
            task = self._state.tasks.setdefault(
                (address, system_id), _Task(address=address, system_id=system_id, due=[])
            )
            task.policy = policy or task.policy
            if not again and task.due:
                return
            task.due = sorted({*task.due, *(now + seconds for seconds in after)})
            start, self._state.running = not self._state.running, True
            if start and self._stop.cancelled:
                self._stop = CancelToken()
            stop = self._stop
        self._wake.set()
        if start:
            self._threads.start("sweep", lambda: self._work(stop))

    def close(self, timeout: float | None = None) -> None:
        """Stop; what is being removed now is waited for."""
        with self._lock:
            self._opened = False
            stop = self._stop
        stop.cancel(RuntimeError("the process ends"))
        self._wake.set()
        self._threads.join(timeout)

    def _work(self, stop: CancelToken) -> None:
        while (pause := self._pause(stop)) is not None:
            if pause > 0:
                self._wake.wait(pause)
                self._wake.clear()
                continue
            for task in self._due():
                self._look(task)

    def _pause(self, stop: CancelToken) -> float | None:
        """Seconds until something is due; None: this was all."""
        with self._lock:
            moments = [task.due[0] for task in self._state.tasks.values() if task.due]
            if stop.cancelled or not moments:
                self._state = _State()
                return None
            return min(moments) - time.monotonic()

    def _due(self) -> list[_Task]:
        now = time.monotonic()
        with self._lock:
            tasks = [task for task in self._state.tasks.values() if task.due and task.due[0] <= now]
            for task in tasks:
                task.due = [moment for moment in task.due if moment > now]
            return tasks

    def _look(self, task: _Task) -> None:
        try:
            swept = self._clean(task.address, task.system_id, task.policy)
        except EngineError as error:
            log.warning("Cannot look for leftovers: %s", error, extra={"action": "docker_sweep_failed"})
            self._again(task, task.pause)
            return
        except Exception:  # a thread's top
            log.exception("Cannot look for leftovers", extra={"action": "docker_sweep_failed"})
            return
        if not swept.complete:
            self._again(task, task.pause)
            return
        task.pause = _FIRST_PAUSE
        if task.policy is not None and task.policy.unused_for is not None:
            self._again(task, _CACHE_PAUSE)
        if swept.unknown:
            self._again(task, _UNKNOWN_PAUSE)

    def _again(self, task: _Task, pause: float) -> None:
        with self._lock:
            task.due = sorted([*task.due, time.monotonic() + pause])
        task.pause = min(task.pause * 2, _LONGEST_PAUSE)


def keep_within(engine: Engine, system_id: str, policy: CachePolicy, uses: VolumeUses, now: float) -> list[str]:
    """Remove cache volumes of this installation until `policy` holds; the names of those that had to go.

    Raises:
        EngineError: the engine does not answer.
    """
    volumes = [item for item in engine.volumes({labels.MANAGED: "true", labels.REUSABLE: "true"})]
    usage = engine.volume_usage() if volumes else {}
    caches = []
    for item in filter(of_system(system_id), volumes):
        size, busy = usage.get(item.name, (0, True))
        caches.append(CacheVolume(name=item.name, size=size, used=max(uses.last(item.name), item.created), busy=busy))
    gone = []
    for volume in evicted(caches, now, budget=policy.budget, unused_for=policy.unused_for):
        # A job may have begun to use it while the engine was counting.
        if max(uses.last(volume.name), volume.used) == volume.used and _removed(engine, volume.name):
            uses.forget(volume.name)
            gone.append(volume.name)
    return gone


def _removed(engine: Engine, volume: str) -> bool:
    log.info("Removing cache volume %s", volume, extra={"action": "docker_cache_evicted", "object": volume})
    return remove_quietly(f"cache volume {volume}", lambda: engine.remove_volume(volume))


def _clean(address: EngineAddress, system_id: str, policy: CachePolicy | None) -> Swept:
    with opened(address) as engine:
        swept = sweep(engine, system_id)
        if policy is not None:
            keep_within(engine, system_id, policy, USES, time.time())
        return swept


#: One for the process: jobs and their manager meet here.
CLEANER = Cleaner()
