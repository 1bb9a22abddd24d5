"""Go durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("1h30m", 5400.0, "1h30m0s"),
        ("15m0s", 900.0, "15m0s"),
        ("300ms", 0.3, "300ms"),
        ("1.5s", 1.5, "1.5s"),
        ("0", 0.0, "0s"),
        ("-1m", -60.0, "-1m0s"),
        ("+2s", 2.0, "2s"),
        ("1us", 1e-6, "1µs"),
        ("2h45m30.5s", 9930.5, "2h45m30.5s"),
    ],
)
def test_parse_and_print_as_go_does(text: str, seconds: float, printed: str) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert format_duration(parse_duration(text)) == printed


@pytest.mark.parametrize("text", ["", "1", "1x", "h", "10", "1m2", "--1s", ".s", "1.2.3s", "1 h", "ten minutes"])
def test_what_go_refuses_is_refused_with_its_words(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_what_is_printed_reads_back(nanoseconds: int) -> None:
    seconds = nanoseconds / 1e9
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-9)


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(parse_duration(text), float)
    except ValueError as error:
        assert "invalid duration" in str(error)
