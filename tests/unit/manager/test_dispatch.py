from __future__ import annotations

import threading

from pyrunner.manager.dispatch import Dispatch


class Pool:
    """Workers that keep what they took until told to go on."""

    def __init__(self, limit: int) -> None:
        self.taken: list[str] = []
        self.changed = threading.Condition()
        self.gate = threading.Semaphore(0)
        self.threads: list[threading.Thread] = []
        self.dispatch: Dispatch[str] = Dispatch(self.start, limit)

    def start(self) -> None:
        thread = threading.Thread(target=self.work)
        self.threads.append(thread)
        thread.start()

    def work(self) -> None:
        while (runner := self.dispatch.take()) is not None:
            with self.changed:
                self.taken.append(runner)
                self.changed.notify_all()
            self.gate.acquire()

    def wait(self, count: int) -> list[str]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.taken) >= count, 5)
            return list(self.taken)

    def close(self) -> None:
        self.dispatch.close()
        self.gate.release(100)
        for thread in self.threads:
            thread.join(5)
        assert self.dispatch.workers == 0


def test_workers_are_started_only_when_needed() -> None:
    pool = Pool(10)
    pool.dispatch.offer("a", "a")
    pool.wait(1)
    pool.gate.release()
    pool.dispatch.offer("a", "a")
    pool.wait(2)
    assert len(pool.threads) <= 2
    pool.close()


def test_a_runner_stands_in_the_queue_once() -> None:
    pool = Pool(1)
    pool.dispatch.offer("x", "x")
    pool.wait(1)
    for _ in range(5):
        pool.dispatch.offer("a", "a")
        pool.dispatch.offer("b", "b")
    pool.gate.release(3)
    assert pool.wait(3) == ["x", "a", "b"]
    pool.close()
    assert pool.taken == ["x", "a", "b"]


def test_no_more_workers_than_allowed() -> None:
    pool = Pool(2)
    for name in "abcd":
        pool.dispatch.offer(name, name)
    pool.wait(2)
    assert len(pool.threads) == 2
    pool.close()


def test_resize_lets_surplus_workers_go_and_more_come() -> None:
    pool = Pool(3)
    for name in "abc":
        pool.dispatch.offer(name, name)
    pool.wait(3)
    pool.dispatch.resize(1)
    pool.gate.release(3)
    ended = [thread for thread in pool.threads if thread.join(0.5) or not thread.is_alive()]
    assert len(ended) == 2
    pool.dispatch.resize(2)
    pool.dispatch.offer("d", "d")
    pool.dispatch.offer("e", "e")
    pool.wait(5)
    pool.close()


def test_closed_dispatch_hands_over_nothing() -> None:
    pool = Pool(1)
    pool.dispatch.close()
    pool.dispatch.offer("a", "a")
    assert pool.dispatch.take() is None
    assert pool.taken == []
