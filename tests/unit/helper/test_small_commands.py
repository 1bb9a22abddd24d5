from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from helper_commands import Run
from storage_server import Answer, StorageServer

from pyrunner.base.errors import PyrunnerError
from pyrunner.helper.attempts import RetriableError, Schedule, attempt
from pyrunner.helper.health_check import wait_for, what_to_watch
from pyrunner.helper.meter import Meter, size_text
from pyrunner.helper.read_logs import LogReader

# -- cache-init --------------------------------------------------------------------------------------------------------


def test_cache_init_opens_permissions(work: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    (work / "dir").mkdir(mode=0o700)
    assert run("cache-init", str(work / "missing"), str(work / "dir")) == 0
    assert (work / "dir").stat().st_mode & 0o777 == 0o777
    assert caplog.messages[1:] == ["failed to chmod path"]
    assert run("cache-init") == 1
    assert caplog.messages[-1] == "No arguments passed, at least 1 path is required."


# -- health-check ------------------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> object:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_first_port_of_a_link_is_enough(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"A_TCP_ADDR": "127.0.0.1", "A_1_TCP_PORT": "1", "B_TCP_PORT": str(port), "C_TCP_PORT": "a=b"}
    assert wait_for(what_to_watch([], environment)) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"waiting for TCP connection to 127.0.0.1 on [1 {port}]...",
        "dialing 127.0.0.1:1...",
        f"dialing 127.0.0.1:{port}...",
        f"dial succeeded on 127.0.0.1:{port}. Exiting...",
    ]


def test_all_given_ports_must_answer(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    late = socket.socket()
    late.bind(("127.0.0.1", 0))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        late.listen()

    watch = what_to_watch([str(port), str(late.getsockname()[1])], {"X_TCP_ADDR": "ignored"})
    watch.address = "127.0.0.1"
    assert wait_for(watch, sleep=pause) == 0
    late.close()
    assert pauses == [1.0]


@pytest.mark.parametrize("environment", [{}, {"X_TCP_ADDR": "host"}, {"X_TCP_PORT": "1"}])
def test_nothing_to_watch(environment: dict[str, str]) -> None:
    with pytest.raises(PyrunnerError, match="No HOST or PORT found"):
        what_to_watch([], environment)


# -- read-logs ---------------------------------------------------------------------------------------------------------


def test_lines_have_the_offset_behind_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"skipped\none\n\n" + b"x" * 40_000 + b"\nunfinished")
    out = io.BytesIO()
    steps = [lambda: log.write_bytes(log.read_bytes() + b" now\n"), log.unlink]
    reader = LogReader(str(log), 8, 1.0, out=out, sleep=lambda _: steps.pop(0)() and None)
    assert reader.run() == 100
    lines = out.getvalue().split(b"\n")
    assert lines[:2] == [b"12 one", b"13 "]
    assert [line[: line.index(b" ")] for line in lines[2:5]] == [b"16397", b"32781", b"40014"]
    assert lines[5:] == [b"40029 unfinished now", b""]


def test_a_file_that_does_not_appear(tmp_path: Path) -> None:
    out = io.BytesIO()
    pauses: list[float] = []
    assert LogReader(str(tmp_path / "log"), 0, 3.0, out=out, sleep=pauses.append).run() == 1
    assert (
        out.getvalue().decode() == f"error reading logs from {tmp_path}/log: timeout waiting for file to be created\n"
    )
    assert pauses == [1.0, 1.0]


def test_no_time_to_wait(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert LogReader("log", 0, 0.5, out=out).run() == 1
    assert out.getvalue() == b"error reading logs from log: no attempts to open log file configured\n"


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert LogReader(str(tmp_path), 0, 1.0, out=out).run() == 1
    assert b"Is a directory" in out.getvalue()


# -- meter and tries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1230, "1.23 KB"), (1_000_000, "1.00 MB"), (5e12, "5.00 TB")]
)
def test_sizes(count: float, text: str) -> None:
    assert size_text(count) == text


def test_the_meter_shows_at_most_once_per_period() -> None:
    now = [0.0]
    out = io.StringIO()
    meter = Meter("Downloading cache", 0.1, total=4_560_000, clock=lambda: now[0], out=out)
    for _ in range(10):
        now[0] += 0.25
        meter.add(123_000)
    meter.finish()
    lines = out.getvalue().split("\r")[1:]
    assert lines == [
        f"Downloading cache 492.00 KB/4.56 MB (492.0 KB/s){' ' * 16}",
        f"Downloading cache 984.00 KB/4.56 MB (492.0 KB/s){' ' * 16}",
        f"Downloading cache 1.23 MB/4.56 MB (492.0 KB/s){' ' * 16}\n",
    ]


def test_no_frequency_is_silent() -> None:
    out = io.StringIO()
    meter = Meter("x", 0, out=out)
    meter.add(10)
    meter.finish()
    assert out.getvalue() == ""


def test_pauses_double_up_to_the_longest() -> None:
    schedule = Schedule(9, 1.0, factor=2.0, longest=5.0)
    assert [schedule.delay(number) for number in (1, 2, 3, 4, 400)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_other_errors_are_not_tried_again() -> None:
    calls: list[int] = []

    def work(number: int) -> None:
        calls.append(number)
        raise PyrunnerError("no") if number else RetriableError("again")

    with pytest.raises(PyrunnerError, match="no"):
        attempt(work, Schedule(5, 1.0), sleep=lambda _: None)
    assert calls == [0, 1]


# -- the program -------------------------------------------------------------------------------------------------------

COMMANDS = [
    "artifacts-uploader", "artifacts-downloader", "cache-archiver", "cache-extractor", "cache-init", "health-check",
    "read-logs",
]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_imports_nothing_heavy(name: str) -> None:
    code = (
        "import sys; from pyrunner.cli.main import main; main([sys.argv[1], '--help']);"
        "print(*(set(sys.modules) & set('msgspec typing dataclasses zipfile tarfile http.client ssl tempfile shutil "
        "subprocess isal zstandard asyncio rich logging re threading json'.split())))"
    )
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_local_extraction_imports_no_http(tmp_path: Path) -> None:
    code = (
        "import sys; from pyrunner.cli.main import main; main(['cache-extractor', '--file', 'nope']);"
        "print(*(set(sys.modules) & set('msgspec typing dataclasses zipfile http.client ssl tempfile shutil logging re "
        "threading'.split())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == ""


def test_a_transfer_without_tls_imports_no_ssl(tmp_path: Path, server: StorageServer) -> None:
    server.answer("GET", Answer(404))
    code = (
        "import sys; from pyrunner.cli.main import main;"
        "main(['cache-extractor', '--file', 'x', '--url', sys.argv[1]]);"
        "print(*(set(sys.modules) & set('msgspec typing dataclasses http.client ssl tempfile logging'.split())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server.url], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (done.stdout.strip(), len(server.seen("GET"))) == ("", 1)
    assert "file does not exist" in done.stderr


def test_errors_are_fatal_lines_in_the_runner_format(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyrunner", "--log-format", "json", "cache-archiver"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    first, last = done.stderr.splitlines()
    assert first.startswith("Runtime platform" + " " * 34 + "\x1b[0;m  arch\x1b[0;m=")
    assert last.startswith("\x1b[31;1mFATAL: Missing --file")
