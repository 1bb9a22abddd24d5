from __future__ import annotations

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
