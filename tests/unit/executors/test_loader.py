"""Executors by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyrunner.base.errors import ConfigError
from pyrunner.executors import loader
from pyrunner.executors.loader import executor_names, executor_provider


def test_one_provider_per_process() -> None:
    assert executor_provider("shell") is executor_provider("shell")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match='^unknown executor "shel", expected one of: .*shell'):
        executor_provider("shel")


def test_missing_name_says_so() -> None:
    with pytest.raises(ConfigError, match="^no executor is configured"):
        executor_provider("")


@pytest.mark.parametrize("name", ["docker+machine", "kubernetes", "ssh"])
def test_executor_of_a_later_version_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        executor_provider(name)
    assert "is not available in this version" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_removed_executor_names_its_successor() -> None:
    with pytest.raises(ConfigError, match='removed in GitLab Runner 17.0, use "docker"'):
        executor_provider("docker-ssh")


def test_third_party_that_does_not_import_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_third_party", lambda: {"mine": "no.such.module:provider"})
    assert "mine" in executor_names()
    with pytest.raises(ConfigError, match='^executor "mine" cannot be loaded from no.such.module:provider'):
        executor_provider("mine")


def test_known_executor_needs_no_package_metadata() -> None:
    code = (
        "import sys; from pyrunner.executors.loader import executor_provider; executor_provider('shell');"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
