from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pyrunner.manager.slots import AdaptiveLimit, Numbers, Slots


def test_numbers_are_the_smallest_free_ones_by_token_and_project() -> None:
    slots = Slots()
    first = slots.start_job("t", 1)
    second = slots.start_job("t", 2)
    third = slots.start_job("t", 1)
    assert (first.concurrent_id, second.concurrent_id, third.concurrent_id) == (0, 1, 2)
    assert (first.concurrent_project_id, second.concurrent_project_id, third.concurrent_project_id) == (0, 0, 1)
    assert slots.start_job("other", 1) == Numbers(concurrent_id=0, concurrent_project_id=0)
    slots.end_job("t", 1, first)
    assert slots.start_job("t", 1) == Numbers(concurrent_id=0, concurrent_project_id=0)


def test_limit() -> None:
    slots = Slots()
    assert slots.acquire_build("t", 1)
    assert not slots.acquire_build("t", 1)
    assert slots.acquire_build("other", 1)
    slots.release_build("t")
    assert slots.acquire_build("t", 1)


def test_no_limit() -> None:
    slots = Slots()
    assert all(slots.acquire_build("t", 0) for _ in range(100))


def test_request_concurrency() -> None:
    slots = Slots()
    assert slots.acquire_request("t", 2, adaptive=False)
    assert slots.acquire_request("t", 2, adaptive=False)
    assert not slots.acquire_request("t", 2, adaptive=False)


def test_adaptive_limit_starts_at_one_and_grows_with_jobs() -> None:
    slots = Slots()
    assert slots.acquire_request("t", 10, adaptive=True)
    assert not slots.acquire_request("t", 10, adaptive=True)
    slots.release_request("t", 10, received=True, retried=False)
    assert slots.adaptive("t").value == 1.1
    assert slots.acquire_request("t", 10, adaptive=True)
    assert slots.acquire_request("t", 10, adaptive=True)
    assert not slots.acquire_request("t", 10, adaptive=True)


def test_a_retriable_status_halves_the_limit_even_with_a_job() -> None:
    assert AdaptiveLimit(value=8.0).after(received=True, retried=True, configured=10).value == 4.0
    assert AdaptiveLimit(value=8.0).after(received=False, retried=False, configured=10).value == 8.0 * 0.95


@given(st.lists(st.tuples(st.booleans(), st.booleans())), st.integers(1, 50))
def test_adaptive_limit_stays_in_its_bounds(answers: list[tuple[bool, bool]], configured: int) -> None:
    limit = AdaptiveLimit()
    for received, retried in answers:
        limit = limit.after(received=received, retried=retried, configured=configured)
        assert 1 <= limit.used(configured) <= configured


class NumbersMachine(RuleBasedStateMachine):
    """No two running jobs share a number, and numbers do not run away."""

    running = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots()
        self.open: list[tuple[str, int, Numbers]] = []

    @rule(target=running, token=st.sampled_from("ab"), project=st.integers(1, 3))
    def start(self, token: str, project: int) -> tuple[str, int, Numbers]:
        job = (token, project, self.slots.start_job(token, project))
        self.open.append(job)
        return job

    @rule(job=consumes(running))
    def end(self, job: tuple[str, int, Numbers]) -> None:
        self.open.remove(job)
        self.slots.end_job(*job)

    @invariant()
    def numbers_are_unique_and_small(self) -> None:
        for token in "ab":
            used = [numbers.concurrent_id for name, _, numbers in self.open if name == token]
            assert len(set(used)) == len(used)
        keys = [(token, project, numbers.concurrent_project_id) for token, project, numbers in self.open]
        assert len(set(keys)) == len(keys)

    def teardown(self) -> None:
        for job in self.open:
            self.slots.end_job(*job)
        assert self.slots.start_job("a", 1) == Numbers(concurrent_id=0, concurrent_project_id=0)


TestNumbers = NumbersMachine.TestCase
