"""`Supervisor`: names, joins, first error."""

from __future__ import annotations

import threading

import pytest

from pyrunner.base.supervisor import Supervisor


def test_leaving_joins_all_threads_and_raises_the_first_error() -> None:
    gate, done = threading.Event(), []

    def fail() -> None:
        gate.wait(5)
        raise ValueError("first")

    def work() -> None:
        gate.wait(5)
        done.append(threading.current_thread().name)

    with pytest.raises(ValueError, match="first"), Supervisor("jobs") as supervisor:
        supervisor.start("fail", fail)
        supervisor.start("work", work)
        assert supervisor.alive() == 2
        gate.set()
    assert done == ["jobs/work"]
    assert supervisor.alive() == 0


def test_join_tells_whether_all_ended_in_time() -> None:
    gate = threading.Event()
    supervisor = Supervisor("x")
    supervisor.start("waits", lambda: gate.wait(5))
    assert not supervisor.join(0.01)
    gate.set()
    assert supervisor.join(5)
    assert supervisor.error is None


def test_the_error_of_the_body_is_not_replaced_by_that_of_a_thread() -> None:
    def fail() -> None:
        raise ValueError("thread")

    with pytest.raises(KeyError, match="body"), Supervisor("x") as supervisor:
        supervisor.start("fail", fail)
        raise KeyError("body")
