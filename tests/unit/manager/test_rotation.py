from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pyrunner.manager.rotation import rotation_time

ZERO = datetime(1, 1, 1, tzinfo=UTC)


def at(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def test_at_three_quarters_of_the_tokens_life() -> None:
    assert rotation_time(at(1), at(5)) == at(4).timestamp()


@pytest.mark.parametrize(("obtained", "expires"), [(None, None), (at(1), None), (at(1), ZERO), (None, at(2))])
def test_tokens_that_do_not_expire(obtained: datetime | None, expires: datetime | None) -> None:
    assert rotation_time(obtained, expires) is None


def test_times_without_zone_are_utc() -> None:
    assert rotation_time(datetime(2026, 1, 1), datetime(2026, 1, 5)) == at(4).timestamp()  # noqa: DTZ001


def test_expired_token_without_start_is_due() -> None:
    moment = rotation_time(ZERO, at(2))
    assert moment is not None
    assert moment < at(2).timestamp()
