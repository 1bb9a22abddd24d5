"""``list``, ``lint`` and ``config`` as they are called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyrunner.cli.main import main

CONFIG = """\
concurrent = 4
[[runners]]
  name = "host1"
  url = "https://gitlab.example.com"
  id = 7
  token = "glrt-abcdefghijklmnop"
  executor = "shell"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    path.chmod(0o600)
    monkeypatch.setenv("CONFIG_FILE", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    return path


def test_list_writes_log_lines_and_nothing_to_stdout(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert f"Listing configured runners                          ConfigFile={config}\n" in err
    assert "Executor=shell Token=glrt-abcdefghijklmnop URL=https://gitlab.example.com\n" in err
    assert err.splitlines()[-1].startswith("host1  ")


def test_list_as_json_has_no_token(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--output", "json"]) == 0
    out, err = capfd.readouterr()
    assert "glrt-abcdefghijklmnop" not in out + err
    document = json.loads(out)
    assert document["config"] == str(config)
    assert document["runners"] == [
        {
            "name": "host1",
            "id": 7,
            "url": "https://gitlab.example.com",
            "executor": "shell",
            "short_token": "abcdefghi",
            "limit": 0,
        }
    ]


def test_list_of_a_broken_file_is_a_warning_for_people_and_an_error_for_programs(
    config: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config.write_text("concurrent = 'x'")
    assert main(["list"]) == 0
    assert f"WARNING: {config}:1:1: decoding configuration file: toml: line 1" in capfd.readouterr().err
    assert main(["list", "--output", "json"]) == 1
    assert capfd.readouterr().out == ""


def test_list_without_a_file_lists_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "-c", str(tmp_path / "none.toml"), "--output=json"]) == 0
    assert json.loads(capfd.readouterr().out)["runners"] == []


def test_lint_of_a_good_file(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lint"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split()[0] for line in err.splitlines()] == ["Runtime", "Configuration"]
    assert err.splitlines()[1].strip() == "Configuration file is valid."
    assert sorted(path.name for path in config.parent.iterdir()) == ["config.toml"]


def test_lint_points_at_file_line_and_column(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config.write_text(f"{CONFIG}  limt = 2\n  [runners.machine]\n    IdleScaleFactor = 1\n")
    assert main(["lint"]) == 1
    out, err = capfd.readouterr()
    assert f"{config}:8:3: error: unknown key: runners[0].limt\n    limt = 2\n    fix: did you mean limit?\n" in out
    assert (
        f"{config}:10:5: error: toml: cannot load TOML value of type int64 into a Go float\n"
        "    IdleScaleFactor = 1\n"
        "    fix: IdleScaleFactor = 1.0\n"
    ) in out
    assert err.splitlines()[1:] == [f"FATAL: 2 error(s) found in {config}"]


def test_lint_names_unknown_keys_as_gitlab_runner_does(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config.write_text(f"foo = 1\n{CONFIG}")
    assert main(["lint"]) == 1
    assert f"FATAL: 1 unknown key(s) found in {config}:\n  unknown key: foo\n" in capfd.readouterr().err


def test_lint_as_json(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config.write_text(CONFIG.replace("shell", "sehll"))
    assert main(["lint", "--output", "json"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert document["valid"] is False
    assert document["findings"] == [
        {
            "severity": "error",
            "key": "runners[0].executor",
            "line": 7,
            "column": 3,
            "message": 'unknown executor "sehll"',
            "fix": "did you mean shell?",
        }
    ]


def test_lint_of_a_missing_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--config", str(tmp_path / "none.toml")]) == 1
    assert f"config file not found: {tmp_path}/none.toml" in capfd.readouterr().err


def test_config_shows_schema_and_flags(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capfd.readouterr().out)["$schema"].startswith("https://json-schema.org/")
    assert main(["config", "flags", "--output", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {"name", "default", "built", "description"} == set(rows[0])
    assert main(["config", "flags"]) == 0
    assert "FF_TIMESTAMPS" in capfd.readouterr().out
    assert main(["config"]) == 1
    assert "one of: schema, flags" in capfd.readouterr().err


def test_list_imports_nothing_heavy(config: Path) -> None:
    script = "import sys\nfrom pyrunner.cli.main import main\nmain(['list'])\nprint(' '.join(sorted(sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"msgspec", "tomlkit", "rich", "http.client", "ssl", "dataclasses", "inspect", "json", "asyncio"}
    loaded = set(done.stdout.split())
    assert loaded & heavy == set()
    assert not {"pyrunner.config.kubernetes", "pyrunner.config.docker", "pyrunner.config.positions"} & loaded
