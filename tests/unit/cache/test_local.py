from __future__ import annotations

import os
from pathlib import Path

from pyrunner.cache.local import LocalArchive


def test_the_alternate_archive_is_taken_over_once(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    archive = LocalArchive(str(tmp_path / "new/cache.zip"))
    assert archive.adopt(str(tmp_path / "old"))
    assert (tmp_path / "new/cache.zip").read_text() == "old"
    (tmp_path / "old").write_text("other")
    assert not archive.adopt(str(tmp_path / "old"))
    assert not archive.adopt("")


def test_metadata_has_lower_case_keys(tmp_path: Path) -> None:
    archive = LocalArchive(str(tmp_path / "cache.zip"))
    archive.write_metadata({"CacheKey": "main"})
    assert (tmp_path / "metadata.json").read_text() == '{"cachekey": "main"}'
    assert (tmp_path / "metadata.json").stat().st_mode & 0o137 == 0


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    abandoned = ["archive_0123456789abcdef", "cache0123456789abcdef"]
    others = ["cache.zip", "metadata.json", "archive_notes", "cache0123456789abcdeg", "archive_0123456789ABCDEF"]
    for name in [*abandoned, *others, "archive_ffffffffffffffff"]:
        (tmp_path / name).write_text("x")
        if not name.endswith("f" * 16):
            os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    LocalArchive(str(tmp_path / "cache.zip")).sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "archive_ffffffffffffffff"])


def test_there_may_be_nothing_to_sweep(tmp_path: Path) -> None:
    LocalArchive(str(tmp_path / "not/there/cache.zip")).sweep()
