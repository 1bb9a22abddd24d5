"""facts/job-lifecycle.md section 11: what signals and a changed config do to the process and to its jobs.

Each row is a real ``pyrunner run`` (or ``run-single``): what happens to it in order, and what must come of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.job_checks import plain_log
from pyrunner.testing.job_life import job
from pyrunner.testing.runner_service import RunnerProcess, shell_runner, write_config

#: Says that it runs, and runs until the file ``gate`` is there.
UNTIL_GATE = 'touch {room}/begun; while [ ! -e {room}/gate ]; do sleep 0.02; done; echo "ended with <$OF_CONFIG>"'


@dataclass(frozen=True)
class Send:
    """A signal."""

    number: signal.Signals


@dataclass(frozen=True)
class Logged:
    """Wait until the process has logged this."""

    text: str
    count: int = 1


@dataclass(frozen=True)
class Submit:
    """Give it a job, and wait until its script has begun."""

    script: str = UNTIL_GATE


@dataclass(frozen=True)
class Gate:
    """Let the scripts end."""


@dataclass(frozen=True)
class Configure:
    """Write the config anew: these keys instead of the first ones; or a text as it is."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


Act = Send | Logged | Submit | Gate | Configure


@dataclass(frozen=True, kw_only=True)
class Life:
    """One row."""

    id: str
    acts: Sequence[Act]
    #: What is logged, in this order.
    log: Sequence[str]
    code: int = 0
    #: State, failure reason and last line of each job.
    jobs: Sequence[tuple[str, str, str]] = ()
    #: Texts in the log of the first job.
    has: Sequence[str] = ()
    command: str = "run"


QUIT, TERM, INT, HUP = Send(signal.SIGQUIT), Send(signal.SIGTERM), Send(signal.SIGINT), Send(signal.SIGHUP)
READY = Logged("Initializing executor providers")
GRACEFUL = "Starting graceful shutdown, waiting for builds to finish"
FORCEFUL = "Starting forceful shutdown"
END = ("All workers stopped.", "All executor providers shut down.", "Can exit now!")
SUCCESS = ("success", "", "Job succeeded")


def aborted(signal_text: str) -> tuple[str, str, str]:
    return "failed", "runner_interrupted", f"ERROR: Job failed: aborted: {signal_text}"


LIVES = [
    Life(id="11-quit-when-idle", acts=[READY, QUIT], log=["received stop signal", GRACEFUL, *END]),
    Life(
        id="11-quit-waits-for-the-job",
        acts=[READY, Submit(), QUIT, Logged(GRACEFUL), Gate()],
        log=["Added job to processing list", GRACEFUL, "Removed job from processing list", *END],
        jobs=[SUCCESS],
    ),
    Life(
        id="11-second-quit-changes-nothing",
        acts=[READY, Submit(), QUIT, Logged(GRACEFUL), QUIT, Logged("received stop signal", 2), Gate()],
        log=[GRACEFUL, *END],
        jobs=[SUCCESS],
    ),
    Life(
        id="11-term-aborts-the-job",
        acts=[READY, Submit(), TERM],
        log=[FORCEFUL, "shutdown-timeout=30s", "Job failed: aborted: terminated", *END],
        jobs=[aborted("terminated")],
    ),
    Life(id="11-int-aborts-the-job", acts=[READY, Submit(), INT], log=[FORCEFUL, *END], jobs=[aborted("interrupt")]),
    Life(
        id="11-term-after-quit-aborts-the-job",
        acts=[READY, Submit(), QUIT, Logged(GRACEFUL), TERM],
        log=[GRACEFUL, FORCEFUL, *END],
        jobs=[aborted("terminated")],
    ),
    Life(
        id="11-shutdown-timeout-then-it-leaves",
        acts=[
            Configure({"shutdown_timeout": 1}),
            READY,
            HUP,
            Logged("Configuration loaded", 2),
            Submit("trap '' TERM; " + UNTIL_GATE),
            TERM,
        ],
        log=[FORCEFUL, "shutdown-timeout=1s", "Forceful shutdown not finished properly"],
        code=1,
    ),
    Life(
        id="11-another-signal-leaves-at-once",
        acts=[READY, Submit("trap '' TERM; " + UNTIL_GATE), TERM, Logged(FORCEFUL), TERM],
        log=[FORCEFUL, "Forceful shutdown not finished properly"],
        code=1,
    ),
    Life(
        id="11-hup-loads-the-config-and-jobs-keep-theirs",
        acts=[
            READY,
            Submit(),
            Configure({"environment": ["OF_CONFIG=new"]}),
            HUP,
            Logged("Configuration loaded", 2),
            Gate(),
            Logged("Removed job from processing list"),
            Submit(),
            Logged("Removed job from processing list", 2),
            QUIT,
        ],
        log=["Configuration loaded", "Configuration loaded", *END],
        jobs=[SUCCESS, SUCCESS],
        has=["ended with <old>"],
    ),
    Life(
        id="11-changed-file-is-seen",
        acts=[READY, Configure({"concurrent": 7}), Logged("max_builds=7"), QUIT],
        log=["Configuration loaded", "Configuration loaded", *END],
    ),
    Life(
        id="11-broken-file-is-told-and-the-old-one-stays",
        acts=[
            READY,
            Configure(text="concurrent = nonsense"),
            HUP,
            Logged("Failed to load config"),
            Gate(),
            Submit(),
            QUIT,
        ],
        log=["Failed to load config", *END],
        jobs=[SUCCESS],
        has=["ended with <old>"],
    ),
    Life(
        id="11-single-quit-waits",
        command="run-single",
        acts=[Submit(), QUIT, Logged("Requested exit: quit"), Gate()],
        log=["Starting runner for", "Requested exit: "],
        jobs=[SUCCESS],
    ),
    Life(
        id="11-single-term-aborts",
        command="run-single",
        acts=[Submit(), TERM],
        log=["Starting runner for", "Requested exit: "],
        jobs=[aborted("terminated")],
    ),
]


class World:
    """One process, its server, and what was done to them."""

    def __init__(self, life: Life, room: Path, gitlab: FakeGitLab) -> None:
        self.room = room
        self.gitlab = gitlab
        self.config = room / "config.toml"
        self.entry = shell_runner(gitlab, room, environment=["OF_CONFIG=old"])
        self.ids: list[int] = []
        self.write({})
        arguments = [life.command, "--config", str(self.config)]
        if life.command == "run-single":
            arguments += ["--runner", "tester"]
        self.process = RunnerProcess(arguments, room / "log")

    def write(self, settings: Mapping[str, Any]) -> None:
        runner = {key: value for key, value in settings.items() if key == "environment"}
        others = {key: value for key, value in settings.items() if key not in runner}
        write_config(self.config, [{**self.entry, **runner}], **{"concurrent": 2, "check_interval": 1, **others})

    def do(self, act: Act) -> None:
        match act:
            case Send(number):
                self.process.signal(number)
            case Logged(text, count):
                self.process.wait_for_log(text, count=count)
            case Submit(script):
                self.ids.append(self.gitlab.submit(job(script.format(room=self.room))))
                self._await(self.room / "begun")
                (self.room / "begun").unlink()
            case Gate():
                (self.room / "gate").touch()
            case Configure(settings, text):
                if text:
                    self.config.write_text(text)
                else:
                    self.write(settings)

    @staticmethod
    def _await(path: Path) -> None:
        deadline = time.monotonic() + 20
        while not path.exists():
            assert time.monotonic() < deadline, f"{path} does not appear"
            time.sleep(0.01)


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(update_interval=1, long_poll=1) as server:
        yield server


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.id)
def test_life(life: Life, gitlab: FakeGitLab, tmp_path: Path) -> None:
    world = World(life, tmp_path, gitlab)
    with world.process as process:
        try:
            for act in life.acts:
                world.do(act)
            code = process.wait()
        finally:
            (tmp_path / "gate").touch()
    assert code == life.code, process.log
    position = 0
    for text in life.log:
        position = process.log.find(text, position)
        assert position >= 0, f"missing or not in order: {text!r}\n{process.log}"
        position += len(text)
    assert "Traceback" not in process.log
    jobs = [gitlab.job(job_id) for job_id in world.ids]
    for found, (state, reason, line) in zip(jobs, life.jobs, strict=False):
        final = found.updates[-1]
        assert (final["state"], final.get("failure_reason", "")) == (state, reason or final.get("failure_reason", ""))
        assert plain_log(found.trace).endswith(f"{line}\n")
        assert (found.verdicts, found.final_updates) == (1, 1)
    assert all(text in plain_log(jobs[0].trace) for text in life.has)
