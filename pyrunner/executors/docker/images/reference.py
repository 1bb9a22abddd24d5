"""Image names (facts/executors.md 6.8). Pure."""

from __future__ import annotations

import re

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


def with_tag(reference: str) -> str:
    """`reference`, with ``:latest`` when it has neither tag nor digest."""
    if is_id(reference) or "@" in reference or ":" in reference.rpartition("/")[2]:
        return reference
    return f"{reference}:latest"


def is_id(reference: str) -> bool:
    """Whether it is the id of a present image, which nobody can pull."""
    return _ID.fullmatch(reference) is not None
