"""A whole runner against a fake GitLab: inside this process, or as the real program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pyrunner.config.load import load_config
from pyrunner.config.model import Config
from pyrunner.manager.assignment import JobOptions
from pyrunner.manager.service import Service, ServiceOptions
from pyrunner.testing.fake_gitlab import FakeGitLab

SYSTEM_ID = "s_0123456789ab"
_ANSI = re.compile(r"\x1b\[[0-9;]*[mK]")


def write_config(path: Path, runners: list[Mapping[str, Any]], **settings: Any) -> None:
    """Write a config file with these entries and global settings."""
    lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
    for runner in runners:
        lines.append("[[runners]]")
        plain = {key: value for key, value in runner.items() if not isinstance(value, Mapping)}
        lines += [f"  {key} = {_toml(value)}" for key, value in plain.items()]
        for key, table in runner.items():
            if isinstance(table, Mapping):
                lines.append(f"  [runners.{key}]")
                lines += [f"    {name} = {_toml(value)}" for name, value in table.items()]
    temporary = path.with_suffix(".new")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, (int, float)):
        return str(value)
    # a JSON string is a TOML string, too
    return json.dumps(str(value), ensure_ascii=False)


def shell_runner(gitlab: FakeGitLab, directory: Path, **settings: Any) -> dict[str, Any]:
    """A ``[[runners]]`` entry with the shell executor that lives below `directory`."""
    entry = {
        "name": "tester",
        "url": gitlab.url,
        "token": settings.pop("token", None) or gitlab.add_runner("tester"),
        "executor": "shell",
        "builds_dir": str(directory / "builds"),
        "cache_dir": str(directory / "cache"),
    }
    return {**entry, **settings}


def service_options(**jobs: Any) -> ServiceOptions:
    """How a service under test runs; `jobs` are fields of `JobOptions`."""
    return ServiceOptions(jobs=JobOptions(**{"system_id": SYSTEM_ID, "prepare_pause": 0.01, **jobs}))


class RunnerService:
    """A manager with one shell runner, in a thread of this process. Use as a context manager.

    `settings` are global settings of the config, `runner` further keys of its ``[[runners]]`` entry; or `runners` are
    all entries. Leaving stops it forcefully and fails when it does not end.
    """

    def __init__(
        self,
        gitlab: FakeGitLab,
        directory: Path,
        runner: Mapping[str, Any] | None = None,
        *,
        runners: Sequence[Mapping[str, Any]] = (),
        options: ServiceOptions | None = None,
        **settings: Any,
    ) -> None:
        self.path = directory / "config.toml"
        self.runners = list(runners) or [shell_runner(gitlab, directory, **(runner or {}))]
        self.runner = self.runners[0]
        self.write(**{"concurrent": 4, "check_interval": 1, **settings})
        self.service = Service(self._load, options or service_options())
        self.code: int | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="runner-service")

    def write(self, **settings: Any) -> None:
        """Write the config anew, with other global settings."""
        write_config(self.path, self.runners, **settings)

    def _load(self) -> Config:
        return load_config(str(self.path))

    def _run(self) -> None:
        try:
            self.code = self.service.run()
        except BaseException as error:  # noqa: BLE001 - shown to the test
            self.error = error

    def __enter__(self) -> RunnerService:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self.service.stop_forcefully()
        self.join()
        if error is None and self.error is not None:
            raise self.error

    def join(self, timeout: float = 20) -> int | None:
        """Wait for the end; its exit code.

        Raises:
            TimeoutError: it does not end.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the service does not end")
        return self.code


class RunnerProcess:
    """``pyrunner run`` (or another command) as a process of its own, with its log. Use as a context manager."""

    def __init__(self, arguments: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pyrunner", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    @property
    def log(self) -> str:
        """What it has logged so far, without colours."""
        return _ANSI.sub("", self._log.read_text(errors="replace"))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait_for_log(self, text: str, timeout: float = 20, count: int = 1) -> None:
        """Wait until `text` has been logged `count` times.

        Raises:
            TimeoutError: it has not; the message shows the log.
        """
        deadline = time.monotonic() + timeout
        while self.log.count(text) < count:
            ended = self.process.poll() is not None and self.log.count(text) < count
            if ended or time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} was not logged {count} times:\n{self.log[-4000:]}")
            time.sleep(0.01)

    def wait(self, timeout: float = 20) -> int:
        """Wait for its end; the exit code.

        Raises:
            TimeoutError: it does not end; the message shows the log.
        """
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the process does not end:\n{self.log[-4000:]}") from None

    def __enter__(self) -> RunnerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
