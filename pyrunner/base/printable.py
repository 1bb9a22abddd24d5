"""Text of others, such as names in a pipeline, on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` on one line without control characters: they would move the cursor, or hide what is there."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)
