from __future__ import annotations

import pytest

from pyrunner.api.outcomes import UpdateAnswer, UpdateState
from pyrunner.manager.acceptance import Acceptance, decide


@pytest.mark.parametrize(
    ("state", "canceling", "decision"),
    [
        (UpdateState.SUCCEEDED, False, Acceptance.RUN),
        (UpdateState.SUCCEEDED, True, Acceptance.CANCELED),
        (UpdateState.FAILED, False, Acceptance.RUN),
        (UpdateState.ACCEPTED, False, Acceptance.RUN),
        (UpdateState.TRACE_VALIDATION_FAILED, False, Acceptance.RUN),
        (UpdateState.ABORT, False, Acceptance.DROP),
        (UpdateState.ABORT, True, Acceptance.DROP),
        (UpdateState.NOT_FOUND, False, Acceptance.DROP),
    ],
)
def test_only_a_lost_job_is_dropped(state: UpdateState, canceling: bool, decision: Acceptance) -> None:
    assert decide(UpdateAnswer(state=state, cancel_requested=canceling)) is decision
