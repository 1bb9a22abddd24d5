"""Jobs whose log is known byte by byte: what they print holds secrets, and what must arrive has them masked."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.job_payload import job_payload

SECRETS = ("hunter2-hunter2", "correct.horse.battery")
_WORDS = ("alpha", "beta", "gamma", "hunter", "correct", "\u00fcber", "\u2713", *SECRETS)


@dataclass(frozen=True, kw_only=True)
class LogJob:
    """A job that prints `printed`, in one go or with pauses in between."""

    number: int
    script: tuple[str, ...]
    printed: bytes
    fails: bool

    @property
    def payload(self) -> dict[str, Any]:
        """What the server sends."""
        payload = job_payload(self.script, variables={"FF_TIMESTAMPS": "false"})
        payload["variables"] += [
            {"key": f"SECRET_{i}", "value": value, "public": False, "masked": True, "file": False, "raw": True}
            for i, value in enumerate(SECRETS)
        ]
        return payload

    def check(self, job: FakeJob) -> None:
        """The verdict arrived exactly once and is right, and so is every byte of the log."""
        assert job.verdicts == 1, job.states
        assert job.state == ("failed" if self.fails else "success"), job.trace[-2000:].decode("utf-8", "replace")
        assert job.verdict is not None
        assert job.verdict.exit_code == (3 if self.fails else 0)
        assert job.verdict.failure_reason == ("script_failure" if self.fails else "")
        assert job.trace_matches, "the server's checksum is another than the runner's"
        expected = self.printed
        for secret in SECRETS:
            assert secret.encode() not in job.trace
            expected = expected.replace(secret.encode(), b"[MASKED]")
        _, mark, rest = job.trace.partition(b"--- the log begins ---\n")
        assert mark, job.trace[-2000:]
        assert rest[: len(expected)] == expected
        assert rest[len(expected) :].startswith(b"--- the log ends ---\n")


def log_job(directory: Path, number: int, *, size: int = 2000, parts: int = 1, gate: Path | None = None) -> LogJob:
    """Job number `number`: prints about `size` bytes in `parts` with pauses of 0.7 s, every third one fails.

    With `gate` it prints the last part when that file exists.
    """
    choose = random.Random(number)  # noqa: S311
    words = [" ".join(choose.choices(_WORDS, k=12)) for _ in range(20)]
    printed = "".join(f"{choose.choice(words)} {line}\n" for line in range(size // 80 + 1)).encode()
    cuts = [0, *sorted(choose.randrange(len(printed)) for _ in range(parts - 1)), len(printed)]
    lines = ["printf -- '--- the log begins %s\\n' ---"]
    for part, (start, end) in enumerate(zip(cuts, cuts[1:], strict=False)):
        path = directory / f"log-{number}-{part}"
        path.write_bytes(printed[start:end])
        if part == parts - 1 and gate is not None:
            lines.append(f"while [ ! -e {gate} ]; do sleep 0.02; done")
        elif part:
            lines.append("sleep 0.7")
        lines.append(f"cat {path}")
    lines.append("printf -- '--- the log ends %s\\n' ---")
    fails = number % 3 == 2
    if fails:
        lines.append("exit 3")
    return LogJob(number=number, script=("\n".join(lines),), printed=printed, fails=fails)


def check_all(gitlab: FakeGitLab, jobs: dict[int, LogJob], timeout: float = 60) -> None:
    """Wait until all jobs (by the server's id) are over, and check them."""
    for job_id, job in jobs.items():
        gitlab.wait_for(job_id, ("success", "failed", "canceled"), timeout)
        job.check(gitlab.job(job_id))


def outbox_entries(home: Path) -> list[Path]:
    """What waits in the outbox below `home`."""
    found = []
    for folder, names, _ in os.walk(home / ".pyrunner" / "outbox"):
        # a runner at work removes folders while they are looked through, which `os.walk` passes over
        if len(Path(folder).relative_to(home).parts) == 4:
            found += [Path(folder, name) for name in names]
            names.clear()
    return found


def wait_until_empty(home: Path, timeout: float = 60) -> None:
    """Wait until everything is delivered and removed."""
    deadline = time.monotonic() + timeout
    while left := outbox_entries(home):
        assert time.monotonic() < deadline, f"not delivered, or not removed: {left}"
        time.sleep(0.02)
