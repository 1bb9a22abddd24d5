"""Checks that hold for every test: a clean environment, no leaked thread, no leaked process, no silent skip in CI."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Variables of the developer's shell or CI that would change what the tested programs do.
_FOREIGN = ("GITLAB_", "RUNNER_", "CI_", "CACHE_", "DOCKER_", "GIT_", "LOG_", "REGISTER_", "PYRUNNER_", "FF_")
_FOREIGN_NAMES = (
    "CI",
    "CONFIG_FILE",
    "NO_COLOR",
    "LISTEN_ADDRESS",
    "TEMPLATE_CONFIG_FILE",
    "FEATURE_FLAGS",
    "CPU_PROFILE",
)
IN_CI = os.environ.get("CI") == "true"
IS_ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No variable that a flag reads, a home of its own, and the test leaves the environment as it was."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN) or name in _FOREIGN_NAMES or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "tester")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "tester@localhost")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "tester")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "tester@localhost")
    directory = Path.cwd()
    yield
    assert Path.cwd() == directory, "the test changed the working directory"


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """A thread that outlives its test fails it; daemons that end by themselves get a moment."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while leaked := [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]:
        leaked = [thread for thread in leaked if thread.name != "deadlines"]
        if not leaked:
            return
        assert time.monotonic() < deadline, f"leaked threads: {leaked}"
        leaked[0].join(0.05)


@pytest.fixture(autouse=True)
def no_leaked_children() -> Iterator[None]:
    """A child process that outlives its test fails it."""
    before = _children()
    yield
    deadline = time.monotonic() + 5
    while leaked := {pid: name for pid, name in _children().items() if pid not in before}:
        assert time.monotonic() < deadline, f"leaked processes: {leaked}"
        time.sleep(0.02)


@pytest.fixture
def as_plain_user(tmp_path: Path) -> Iterator[Path]:
    """A folder, and the rights of someone to whom a mode of 0 means something: root reads everything."""
    if not IS_ROOT:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="plain-user-", dir="/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


def _children() -> dict[int, str]:
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            pids = (task / "children").read_text().split()
        except OSError:
            continue
        for pid in pids:
            try:
                found[int(pid)] = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need root are skipped without it, and say so."""
    if not IS_ROOT:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a skip is a failure: a real part that is missing there must be installed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
