from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrunner.manager.shutdown import Process, Shutdown, StopAction


def test_graceful_then_patient() -> None:
    shutdown = Shutdown()
    assert shutdown.graceful() is StopAction.STOP_GRACEFULLY
    assert shutdown.graceful() is StopAction.NOTHING
    assert shutdown.state is Process.GRACEFUL


def test_graceful_then_forceful_then_gone() -> None:
    shutdown = Shutdown()
    shutdown.graceful()
    assert shutdown.forceful() is StopAction.STOP_FORCEFULLY
    assert shutdown.forceful() is StopAction.LEAVE
    assert shutdown.state is Process.IMPATIENT


def test_any_signal_in_a_forceful_stop_leaves() -> None:
    shutdown = Shutdown()
    shutdown.forceful()
    assert shutdown.graceful() is StopAction.LEAVE


@given(st.lists(st.booleans()))
def test_state_never_goes_back(signals: list[bool]) -> None:
    shutdown = Shutdown()
    order = list(Process)
    reached = 0
    for graceful in signals:
        shutdown.graceful() if graceful else shutdown.forceful()
        now = order.index(shutdown.state)
        assert now >= reached
        reached = now
