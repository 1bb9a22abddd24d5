"""A runner process under load: a config.toml, a server, and the runner between start and SIGQUIT."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import environment, program

GLOBAL = """\
concurrent = {concurrent}
check_interval = 1
"""
RUNNER = """
[[runners]]
  name = "bench-{number}"
  url = "http://127.0.0.1:{port}"
  id = 1
  token = "glrt-bench{number:016d}"
  executor = "shell"
  output_limit = 4194304
  request_concurrency = {concurrent}
  builds_dir = "{home}/builds"
  cache_dir = "{home}/cache"
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the server gives out and how the runner is configured."""

    jobs: int
    script: list[str]
    variables: list[dict[str, object]]
    concurrent: int = 1
    runners: int = 1
    #: What the runner is started with, such as a tracer; it must hand its process on.
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result:
    """The server's report, CPU seconds of the runner with all its children, and its resident MiB at the end."""

    report: dict[str, float]
    cpu: float
    memory: float


def drive(load: Load, until: Callable[[dict[str, float]], bool], timeout: float = 120) -> Result:
    """Run the runner against the server until the report satisfies `until`; then stop it gracefully."""
    with tempfile.TemporaryDirectory() as home:
        words = [str(load.jobs), json.dumps(load.script), json.dumps(load.variables)]
        server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.server", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        port = int(server.stdout.readline())
        config = Path(home, "config.toml")
        settings = {"port": port, "home": home, "concurrent": load.concurrent}
        runners = [RUNNER.format(number=number, **settings) for number in range(load.runners)]
        config.write_text(GLOBAL.format(**settings) + "".join(runners))
        runner = subprocess.Popen(
            [*load.prefix, program(), "--log-level", "error", "run", "--config", str(config)],
            env=environment(home),
            cwd=home,
            stderr=subprocess.DEVNULL,
        )
        try:
            report = _wait(port, until, timeout)
            memory = _resident(runner.pid)
        finally:
            runner.send_signal(signal.SIGTERM if load.script[0].startswith("sleep") else signal.SIGQUIT)
            _, _, usage = os.wait4(runner.pid, 0)
            runner.returncode = 0
            server.communicate()
        return Result(report=report, cpu=usage.ru_utime + usage.ru_stime, memory=memory)


def _wait(port: int, until: Callable[[dict[str, float]], bool], timeout: float) -> dict[str, float]:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/report") as answer:  # noqa: S310 - loopback
            report: dict[str, float] = json.load(answer)
        if until(report):
            return report
        time.sleep(0.1)
    raise SystemExit(f"benchmark: not done after {timeout} s: {report}")


def _resident(pid: int) -> float:
    """Unique plus shared resident MiB of one process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
