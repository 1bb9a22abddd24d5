from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrunner.base.errors import PyrunnerError
from pyrunner.config.load import load_config
from pyrunner.config.model import Config
from pyrunner.manager.reload import ConfigWatch


def write(path: Path, text: str, mtime: int) -> None:
    path.write_text(text)
    os.utime(path, (mtime, mtime))


def test_a_change_is_seen_once(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write(path, "concurrent = 1", 100)
    watch = ConfigWatch(lambda: load_config(str(path)))
    assert watch.first().concurrent == 1
    assert not watch.changed()
    write(path, "concurrent = 2", 200)
    assert watch.changed()
    config = watch.reload()
    assert config is not None
    assert config.concurrent == 2
    assert not watch.changed()


@pytest.mark.parametrize("text", ["concurrent = ", 'concurrent = "x"', "concurrent = 0"])
def test_a_broken_file_is_told_once_and_the_old_config_stays(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.toml"
    write(path, "concurrent = 1", 100)
    watch = ConfigWatch(lambda: load_config(str(path)))
    watch.first()
    write(path, text, 200)
    assert watch.changed()
    assert watch.reload() is None
    assert not watch.changed()
    assert [record.message for record in caplog.records] == ["Failed to load config"]
    write(path, "concurrent = 3", 300)
    assert watch.changed()
    assert watch.reload() is not None


def test_an_older_file_put_in_place_counts_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write(path, "concurrent = 1", 100)
    watch = ConfigWatch(lambda: load_config(str(path)))
    watch.first()
    write(path, "concurrent = 2", 50)
    assert watch.changed()


def test_file_that_appears_later_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    watch = ConfigWatch(lambda: load_config(str(path)))
    watch.first()
    assert not watch.changed()
    write(path, "concurrent = 2", 100)
    assert watch.changed()


def test_concurrent_zero_is_fatal_at_the_start() -> None:
    watch = ConfigWatch(lambda: Config(concurrent=0, path="c.toml"))
    with pytest.raises(PyrunnerError, match="c.toml: concurrent is 0, it must be at least 1"):
        watch.first()


def test_config_in_memory_never_changes() -> None:
    watch = ConfigWatch(Config)
    watch.first()
    assert not watch.changed()
