"""Helper commands as processes that are told to stop in the midst of their work."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = [sys.executable, "-m", "pyrunner"]


def start(directory: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=directory, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def size_of(directory: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in directory.glob(pattern))


def test_an_archive_that_was_begun_is_removed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "cache.zip").write_bytes(b"earlier")
    os.utime(cache / "cache.zip", (1, 1))
    block = random.Random(1).randbytes(1 << 16).hex().encode()  # noqa: S311
    (tmp_path / "large").write_bytes(block * 1500)
    words = ["--file", str(cache / "cache.zip"), "--path", "large", "--compression-level", "slowest"]
    process = start(tmp_path, "cache-archiver", *words)
    wait_for(lambda: size_of(cache, "archive_*"))
    process.terminate()
    assert process.wait(20) == -signal.SIGTERM
    assert [(path.name, path.read_bytes()) for path in cache.iterdir()] == [("cache.zip", b"earlier")]


def test_a_download_that_was_begun_is_removed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/o"
        process = start(tmp_path, "cache-extractor", "--file", "c/cache.zip", "--url", url)
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(300_000))
            wait_for(lambda: size_of(tmp_path, "c/cache*"))
            process.terminate()
            assert process.wait(20) == -signal.SIGTERM
    assert list((tmp_path / "c").iterdir()) == []


def test_artifacts_leave_nothing_even_when_killed(tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        words = ["--url", url, "--token", "t", "--id", "1", "--archiver-staging-dir", str(staging)]
        process = start(tmp_path, "artifacts-downloader", *words)
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(300_000))
            process.kill()
            process.wait(20)
    assert list(staging.iterdir()) == []
