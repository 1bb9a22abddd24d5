"""The page about the language names every keyword that works."""

from __future__ import annotations

from pathlib import Path

from pyrunner.pipeline.keywords import KEYWORDS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pipelines.md"


def test_every_supported_keyword_is_in_the_table_and_no_other() -> None:
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {word.strip("` ") for row in rows for word in row.split(",")}
    assert named == {item.name for item in KEYWORDS.values() if item.read}
