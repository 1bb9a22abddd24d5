from __future__ import annotations

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled, JobInterrupted, JobTimeout
from pyrunner.job.cancel import JobCancel


def test_cancel_before_the_steps_ends_the_job() -> None:
    cancel = JobCancel()
    cancel.cancel()
    assert isinstance(cancel.token.cause, JobCanceled)


def test_cancel_during_the_steps_ends_the_script_only() -> None:
    cancel = JobCancel()
    script = cancel.begin_steps(None)
    cancel.cancel()
    assert isinstance(script.cause, JobCanceled)
    assert not cancel.token.cancelled
    cancel.close()


def test_cancel_after_the_steps_changes_nothing() -> None:
    cancel = JobCancel()
    cancel.begin_steps(None)
    cancel.end_steps()
    cancel.cancel()
    assert not cancel.token.cancelled
    cancel.close()


def test_abort_ends_everything_with_one_cause() -> None:
    cancel = JobCancel()
    script = cancel.begin_steps(None)
    cancel.abort()
    cancel.interrupt("terminated")
    assert isinstance(cancel.token.cause, JobCanceled)
    assert script.cause is cancel.token.cause
    cancel.close()


def test_interrupt_says_which_signal() -> None:
    cancel = JobCancel()
    cancel.interrupt("terminated")
    assert isinstance(cancel.token.cause, JobInterrupted)
    assert str(cancel.token.cause) == "aborted: terminated"


def test_job_timeout_says_how_long() -> None:
    cancel = JobCancel()
    cancel.start_clock(0.01)
    assert cancel.token.wait(5)
    assert isinstance(cancel.token.cause, JobTimeout)
    assert str(cancel.token.cause) == "execution took longer than 10ms seconds"
    cancel.close()


def test_script_timeout_leaves_the_job_alive() -> None:
    cancel = JobCancel()
    script = cancel.begin_steps(0.01)
    assert script.wait(5)
    assert str(script.cause) == "script timeout: context deadline exceeded"
    assert not cancel.token.cancelled
    cancel.close()


def test_closed_job_is_forgotten_by_its_parent() -> None:
    parent = CancelToken()
    cancel = JobCancel(parent)
    cancel.close()
    parent.cancel(RuntimeError("stop"))
    assert not cancel.token.cancelled
