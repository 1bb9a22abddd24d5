"""Is a text a cron expression? (facts/config-toml.md 6: seven fields, second … year; five and six also parse.)"""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SPECIAL = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@hourly")
_PART = re.compile(r"(\*|\?|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d{1,4}))?")
_DAY_OF_MONTH = re.compile(r"l|lw|wl|\d{1,2}w")
_DAY_OF_WEEK = re.compile(r"([0-7]|[a-z]{3})(l|#[1-5])")

#: name, least, most, names, first of the names' numbers
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...], int], ...] = (
    ("second", 0, 59, (), 0),
    ("minute", 0, 59, (), 0),
    ("hour", 0, 23, (), 0),
    ("day-of-month", 1, 31, (), 0),
    ("month", 1, 12, _MONTHS, 1),
    ("day-of-week", 0, 7, _DAYS, 0),
    ("year", 1970, 2099, (), 0),
)


def wrong_with(expression: str) -> str:
    """What is wrong with an expression of five (minute … day of week), six (… year) or seven fields; empty = fine."""
    text = expression.strip().lower()
    if text in _SPECIAL:
        return ""
    parts = text.split()
    if len(parts) < 5:
        return f"missing field(s): {len(parts)} of at least 5"
    if len(parts) > 7:
        return f"too many fields: {len(parts)} of at most 7"
    fields = _FIELDS if len(parts) == 7 else _FIELDS[1 : 1 + len(parts)]
    for part, (name, least, most, names, first) in zip(parts, fields, strict=True):
        for item in part.split(","):
            if not _fits(item, name, (least, most), {word: number for number, word in enumerate(names, first)}):
                return f"syntax error in {name} field: '{part}'"
    return ""


def _fits(item: str, name: str, limits: tuple[int, int], names: dict[str, int]) -> bool:
    if name == "day-of-month" and _DAY_OF_MONTH.fullmatch(item):
        return item[0] in "lw" or 1 <= int(item.rstrip("w")) <= limits[1]
    if name == "day-of-week" and (match := _DAY_OF_WEEK.fullmatch(item)):
        return match[1] in names or match[1].isdecimal()
    match = _PART.fullmatch(item)
    if match is None or match[2] is not None and int(match[2]) == 0:
        return False
    if match[1] in "*?":
        return True
    ends = [_number(end, names) for end in match[1].split("-")]
    return all(limits[0] <= end <= limits[1] for end in ends)


def _number(text: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    return int(text) if text.isdecimal() and len(text) <= 4 else -1
