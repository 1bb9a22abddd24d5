from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper_commands import Run
from storage_server import StorageServer

from pyrunner.cli import registry
from pyrunner.cli.helper_session import run_helper as run_helper
from pyrunner.cli.parse import parse


@pytest.fixture
def server() -> Iterator[StorageServer]:
    with StorageServer() as running:
        yield running


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between tries are noted instead of waited for."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("pyrunner.helper.attempts.attempt.__kwdefaults__", {"context": "", "sleep": pauses.append})
    return pauses


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory."""
    before = Path.cwd()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "work"
    monkeypatch.chdir(before)


@pytest.fixture
def run(caplog: pytest.LogCaptureFixture) -> Run:
    """Runs a command as the program does, in this process."""
    caplog.set_level(logging.INFO)

    def call(name: str, *words: str, environment: dict[str, str] | None = None) -> int:
        caplog.clear()
        command = registry.load(name)
        return command.run(parse(command.flags, words, environment or {}))

    return call
