"""Completion: what is offered, and that a real bash shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrunner.cli.commands.completion import script
from pyrunner.cli.complete import DIRECTORIES, FILES, candidates

CONFIG = """
concurrent = 1
[[runners]]
  name = "fast"
  url = "http://localhost"
  token = "t"
  executor = "shell"
[[runners]]
  name = "far"
  url = "http://localhost"
  token = "u"
  executor = "shell"
"""


def test_commands_and_sub_commands() -> None:
    assert candidates(["reg"]) == ["register"]
    assert candidates(["--debug", "--log-level", "info", "reset"]) == ["reset-token"]
    assert "schema" in candidates(["config", ""])
    assert candidates(["help", "ver"]) == ["verify"]
    assert candidates(["nonsense", ""]) == []


def test_flags_and_their_values() -> None:
    assert "--config" in candidates(["list", "--"])
    assert candidates(["list", "--config", ""]) == [FILES]
    assert candidates(["run", "--working-directory", ""]) == [DIRECTORIES]
    assert candidates(["--log-format", "j"]) == ["json"]
    assert "docker" in candidates(["register", "--executor", ""])


def test_runner_names_come_from_the_config_that_is_named(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    assert candidates(["verify", "--config", str(config), "--name", "fa"]) == ["fast", "far"]
    assert candidates(["unregister", f"--config={config}", "-n", "far"]) == ["far"]
    config.write_text("broken = [")
    assert candidates(["verify", "--config", str(config), "--name", ""]) == []


def test_job_names_come_from_the_pipeline_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitlab-ci.yml").write_text(
        "stages: [test]\nunit: {script: x}\nunify: {script: x}\n.hidden: {script: x}\n"
    )
    try:
        assert candidates(["exec", "uni"]) == ["unit", "unify"]
        (tmp_path / ".gitlab-ci.yml").write_text("unit: [")
        assert candidates(["exec", ""]) == []
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize(("typed", "shown"), [("pyrunner reg", "register"), ("pyrunner verify --na", "--name")])
def test_a_real_bash_completes(tmp_path: Path, typed: str, shown: str) -> None:
    program = tmp_path / "pyrunner"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyrunner "$@"\n')
    program.chmod(0o755)
    source = tmp_path / "completion"
    source.write_text(script("bash", "pyrunner"))
    words = " ".join(f"'{word}'" for word in typed.split())
    code = (
        f"source {source}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        'compopt() { :; }; _pyrunner_complete; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [shown]
