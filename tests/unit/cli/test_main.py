"""The program as users start it: real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyrunner", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_version_names_the_interface_and_ourselves() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line[:14] for line in lines[:6]] == [
        "Version:      ", "Git revision: ", "Git branch:   ", "GO version:   ", "Built:        ", "OS/Arch:      ",
    ]  # fmt: skip
    assert lines[0] == "Version:      19.4.0"
    assert lines[6].startswith("pyrunner:")


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["h"]])
def test_no_command_is_a_call_for_help(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 0
    assert "register" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lsit"], "FATAL: Command lsit not found.\n  did you mean list?\n"),
        (["wrapper"], "FATAL: pyrunner wrapper: the wrapper command is not available in this version.\n"),
        (["list", "--nope"], "FATAL: Incorrect Usage: flag provided but not defined: -nope\n"),
        (["--log-level", "loud", "list"], 'failed to parse log level: "loud"'),
        (["--log-format", "xml", "list"], "expected one of: [runner text json]"),
        (["config", "shema"], "FATAL: Command config shema not found.\n"),
        (["help", "config", "shema"], "FATAL: Command config shema not found.\n"),
    ],
)
def test_wrong_words_get_one_line_and_exit_code_one(words: list[str], said: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_start_imports_nothing_heavy() -> None:
    code = "import sys; from pyrunner.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"msgspec", "rich", "starlette", "uvicorn", "asyncio", "http.client", "tomlkit", "dataclasses", "logging"}
    assert not heavy & set(done.stderr.split())


def test_a_closed_pipe_is_no_traceback() -> None:
    line = f"{sys.executable} -m pyrunner --help | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("words", ["--version", "--help", "config schema"])
def test_output_that_cannot_be_written_is_one_line_and_exit_code_one(words: str) -> None:
    line = f"{sys.executable} -m pyrunner {words} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    assert done.stderr.splitlines()[-1] == "FATAL: No space left on device"
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_messages_that_nobody_can_read_do_not_change_the_exit_code(streams: str) -> None:
    for words, code in (("--version", 0), ("lsit", 1)):
        line = f"{sys.executable} -m pyrunner {words} {streams}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")


def test_a_file_that_is_opened_does_not_take_the_place_of_a_closed_stream() -> None:
    code = "import os; from pyrunner.cli.main import main; main(['--version']); os._exit(os.open('/', os.O_RDONLY) < 3)"
    line = f'{sys.executable} -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["bash", "-c", line], check=False).returncode == 0
