"""Go's duration strings (``1h30m``, ``300ms``), which config files and flags use."""

from __future__ import annotations

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}


def parse_duration(text: str) -> float:
    """Seconds of a Go duration string.

    Raises:
        ValueError: ``invalid duration: "<text>"`` when it is not one; a bare number other than 0 is none.
    """
    bad = ValueError(f'invalid duration: "{text}"')
    rest = text.strip()
    sign = -1 if rest.startswith("-") else 1
    rest = rest[1:] if rest[:1] in ("+", "-") else rest
    if rest == "0":
        return 0.0
    if not rest:
        raise bad
    total = 0.0
    while rest:
        number = _leading(rest, "0123456789.")
        rest = rest[len(number) :]
        unit = _leading(rest, "nuµμmsh")
        # "1h30m": the letters of one unit end where the next number begins
        if unit not in _UNITS or number in ("", "."):
            raise bad
        try:
            total += float(number) * _UNITS[unit]
        except ValueError:
            raise bad from None
        rest = rest[len(unit) :]
    return sign * total / 1_000_000_000


def _leading(text: str, characters: str) -> str:
    end = 0
    while end < len(text) and text[end] in characters:
        end += 1
    return text[:end]


def format_duration(seconds: float) -> str:
    """Go's own way to print a duration: ``1h0m0s``, ``1m30s``, ``1.5s``, ``300ms``, ``0s``."""
    nanoseconds = round(abs(seconds) * 1_000_000_000)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < 1_000_000_000:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if nanoseconds >= size:
                return f"{sign}{_decimal(nanoseconds, size)}{unit}"
    hours, rest = divmod(nanoseconds, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    text = f"{_decimal(rest, _UNITS['s'])}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    if not rest:
        return str(whole)
    digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}"
