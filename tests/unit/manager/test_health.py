from __future__ import annotations

from pyrunner.manager.health import Health, HealthBook


def test_three_failures_in_a_row_disable_a_runner() -> None:
    book = HealthBook()
    assert not book.record("r", 3, 1, healthy=False)
    assert not book.record("r", 3, 2, healthy=False)
    assert book.check("r", 3, 60, 3) is Health.HEALTHY
    assert book.record("r", 3, 3, healthy=False)
    assert book.check("r", 3, 60, 4) is Health.UNHEALTHY
    assert book.check("other", 3, 60, 4) is Health.HEALTHY


def test_a_healthy_answer_starts_the_count_again() -> None:
    book = HealthBook()
    for _ in range(10):
        assert not book.record("r", 2, 1, healthy=False)
        assert not book.record("r", 2, 1, healthy=True)


def test_pause_is_counted_from_the_last_healthy_answer_and_ends_once() -> None:
    book = HealthBook()
    book.record("r", 1, 100, healthy=True)
    book.record("r", 1, 150, healthy=False)
    assert book.check("r", 1, 60, 160) is Health.UNHEALTHY
    assert book.check("r", 1, 60, 161) is Health.FORCED
    assert book.check("r", 1, 60, 161) is Health.HEALTHY
    book.record("r", 1, 162, healthy=False)
    assert book.check("r", 1, 60, 163) is Health.UNHEALTHY


def test_reload_forgets() -> None:
    book = HealthBook()
    book.record("r", 1, 1, healthy=False)
    book.clear()
    assert book.check("r", 1, 60, 2) is Health.HEALTHY
