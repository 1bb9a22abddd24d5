"""The background sweeper: it comes back until an engine is clean, and ends when it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyrunner.executors.docker.cleaning import Cleaner, Swept
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.errors import EngineUnreachableError
from pyrunner.executors.docker.ledger import Belongings
from pyrunner.executors.docker.volumes.eviction import CachePolicy

HERE = EngineAddress(host="unix:///nowhere")
CLEAN = Swept(removed=Belongings(containers=[], volumes=[], networks=[]), complete=True, unknown=False)


class Engines:
    """What sweeps come to, in turn; the last one stays."""

    def __init__(self, *results: Swept | Exception) -> None:
        self.results = list(results)
        self.seen: list[tuple[EngineAddress, str]] = []
        self.changed = threading.Condition()

    def __call__(self, address: EngineAddress, system_id: str, policy: CachePolicy | None) -> Swept:
        with self.changed:
            self.seen.append((address, system_id))
            self.changed.notify_all()
            result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, 10), self.seen


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("docker-cleaner")]


def test_thread_lives_as_long_as_there_is_something_to_do() -> None:
    engines = Engines(CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    cleaner.request(HERE, "s_1", after=(0.0, 0.1))
    engines.wait_for(2)
    wait_until(lambda: not threads())
    assert engines.seen == [(HERE, "s_1")] * 2
    cleaner.request(HERE, "s_1")
    engines.wait_for(3)
    cleaner.close()
    assert not threads()


def test_engine_that_does_not_answer_is_asked_again() -> None:
    engines = Engines(EngineUnreachableError("down"), CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    cleaner.request(HERE, "s_1")
    engines.wait_for(2)
    wait_until(lambda: not threads())
    cleaner.close()


def test_what_could_not_be_removed_is_tried_again() -> None:
    engines = Engines(Swept(removed=CLEAN.removed, complete=False, unknown=False), CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    cleaner.request(HERE, "s_1")
    engines.wait_for(2)
    cleaner.close()


def test_close_does_not_wait_for_what_is_due_later() -> None:
    engines = Engines(CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    cleaner.request(HERE, "s_1", after=(0.0, 3600.0))
    engines.wait_for(1)
    begin = time.monotonic()
    cleaner.close()
    assert time.monotonic() - begin < 5
    assert not threads()


def test_error_of_our_own_does_not_end_the_sweeper(caplog: object) -> None:
    engines = Engines(ValueError("bug"), CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    cleaner.request(HERE, "s_1", after=(0.0, 0.1))
    engines.wait_for(2)
    cleaner.close()


def test_request_that_nobody_would_end_is_not_heard() -> None:
    engines = Engines(CLEAN)
    cleaner = Cleaner(engines)
    cleaner.request(HERE, "s_1")
    cleaner.open()
    cleaner.close()
    cleaner.request(HERE, "s_1")
    assert not threads()
    assert engines.seen == []


def test_reminder_does_not_add_to_what_is_due() -> None:
    engines = Engines(CLEAN)
    cleaner = Cleaner(engines)
    cleaner.open()
    policy = CachePolicy(budget=1)
    cleaner.request(HERE, "s_1", after=(0.3,), policy=policy)
    for _ in range(5):
        cleaner.request(HERE, "s_1", after=(0.1,), again=False)
    engines.wait_for(1)
    wait_until(lambda: not threads())
    assert len(engines.seen) == 1
    cleaner.close()
