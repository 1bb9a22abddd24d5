"""The measurements, one function each; each gives rows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, environment, median, program, run
from benchmarks.runner import Load, drive


def startup() -> list[Row]:
    """``--version``, ``--help``, ``list`` and a helper command."""
    rows = []
    with tempfile.TemporaryDirectory() as home:
        config = Path(home, "config.toml")
        config.write_text("concurrent = 1\n" + '[[runners]]\n  name = "a"\n  url = "http://x"\n  token = "t"\n' * 3)
        for words in (["--version"], ["--help"], ["list", "--config", str(config)]):
            usage = median([program(), *words], environment=environment(home), quiet=True)
            rows.append(Row(what=f"`{words[0]}`", value=usage.wall, unit="s", reference=0.070, goal=1.0))
            rows.append(Row(what=f"`{words[0]}`, memory", value=usage.memory, unit="MB", reference=70, goal=0.6))
        usage = median([program(), "cache-extractor", "--help"], environment=environment(home))
        rows.append(Row(what="`cache-extractor --help`", value=usage.wall, unit="s"))
    return rows


def jobs() -> list[Row]:
    """Trivial jobs: one after the other, then twenty at once."""
    script = ["echo hello"]
    single = drive(Load(jobs=30, script=script, variables=[]), lambda report: report["done"] >= 30)
    many = drive(Load(jobs=300, script=script, variables=[], concurrent=20), lambda report: report["done"] >= 300)
    _must_succeed(single.report, many.report)
    return [
        Row(
            what="trivial job, request to final PUT", value=single.report["median"], unit="s", reference=0.029, goal=0.8
        ),
        Row(
            what="trivial jobs, concurrent = 20",
            value=many.report["done"] / many.report["span"],
            unit="/s",
            reference=20,
            goal=1.5,
            larger=True,
        ),
        Row(what="CPU per job, whole process tree", value=many.cpu / 300, unit="s", reference=0.032, goal=0.8),
        *_processes(script),
    ]


def _processes(script: list[str]) -> list[Row]:
    """Processes started per trivial job, the shell's profile and its subshells included; counted by strace."""
    if not shutil.which("strace"):
        return []
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for number in (5, 25):
            report = Path(folder, str(number))
            tracer = ("strace", "-D", "-f", "-qq", "-e", "trace=clone,clone3,fork,vfork", "-o", str(report))
            load = Load(jobs=number, script=script, variables=[], prefix=tracer)
            drive(load, lambda found, number=number: found["done"] >= number)  # type: ignore[misc]
            calls = re.findall(r"^\d+ +(?:clone3?|v?fork)\(.*", report.read_text(), re.MULTILINE)
            counts.append(sum("CLONE_THREAD" not in call for call in calls))
    return [Row(what="processes per trivial job", value=(counts[1] - counts[0]) / 20, unit="")]


def logs() -> list[Row]:
    """One job that prints 400 MB with 20 masked values."""
    size = 400
    masked = [{"key": f"SECRET_{n}", "value": f"s3cr3t-value-{n:04d}", "masked": True} for n in range(20)]
    line = "2026-01-01 12:00:00 INFO  worker: handled request number 1234567 in 12 ms, status ok, user 42"
    script = [f"head -c {size}000000 < <(yes '{line}')"]
    result = drive(Load(jobs=1, script=script, variables=masked), lambda report: report["done"] >= 1, 300)
    _must_succeed(result.report)
    rate = result.report["bytes"] / 1e6 / result.report["median"]
    return [
        Row(what="log with 20 masked values", value=rate, unit="MB/s", reference=70, goal=1.5, larger=True),
        Row(
            what="CPU per MB of log, with the job's own",
            value=result.cpu / (result.report["bytes"] / 1e6),
            unit="s",
            reference=0.0085,
            goal=0.7,
        ),
    ]


def polls() -> list[Row]:
    """Asking for jobs that are not there, twenty runners in turn."""
    load = Load(jobs=0, script=["true"], variables=[], runners=20)
    few = drive(load, lambda report: report["polls"] >= 20)
    many = drive(load, lambda report: report["polls"] >= 220)
    per_poll = (many.cpu - few.cpu) / (many.report["polls"] - few.report["polls"])
    return [Row(what="CPU per 1,000 polls", value=per_poll * 1000, unit="s", reference=0.78, goal=1.2)]


def memory() -> list[Row]:
    """A hundred sleeping jobs."""
    load = Load(jobs=100, script=["sleep 600"], variables=[], concurrent=100)
    result = drive(load, lambda report: report["running"] >= 100)
    return [Row(what="memory with 100 sleeping jobs", value=result.memory, unit="MB", reference=96, goal=0.8)]


PIPELINE = """\
stages: [build, test, package]
build: {stage: build, script: ["mkdir -p out", "echo hello > out/a.txt"], artifacts: {paths: [out/]}}
test-a: {stage: test, script: ["cat out/a.txt"]}
test-b: {stage: test, script: ["grep hello out/a.txt"]}
package: {stage: package, script: ["tar cf pkg.tar out"], artifacts: {paths: [pkg.tar]}}
"""


def pipeline() -> list[Row]:
    """``exec`` of four shell jobs with artifacts."""
    with tempfile.TemporaryDirectory() as home:
        repository = Path(home, "four")
        repository.mkdir()
        (repository / ".gitlab-ci.yml").write_text(PIPELINE)
        settings = environment(home)
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *words], cwd=repository, env=settings, check=True)
        usage = median([program(), "exec"], 5, environment=settings, cwd=repository, quiet=True)
        rows = [
            Row(what="`exec`, four jobs with artifacts", value=usage.wall, unit="s", reference=0.80, goal=1.0),
            Row(what="`exec`, memory", value=usage.memory, unit="MB", reference=132, goal=1.0),
        ]
        other = os.environ.get("GITLAB_CI_LOCAL", "")
        if other:
            theirs = median([other], 5, environment=settings, cwd=repository, quiet=True)
            rows.append(Row(what="the same by gitlab-ci-local, here", value=theirs.wall, unit="s", reference=0.80))
        return rows


def archives() -> list[Row]:
    """Five thousand small files and one of 200 MB, in and out of a local cache."""
    rows: list[Row] = []
    for name, make, slow, quick, amount, unit in (
        ("5,000 small files", _small, 0.20, 0.25, 5000, "files/s"),
        ("200 MB file", _large, 0.20, 0.15, 200, "MB/s"),
    ):
        with tempfile.TemporaryDirectory() as home:
            make(Path(home, "data"))
            archive = os.path.join(home, "cache.zip")
            settings = environment(home)
            create = [program(), "cache-archiver", "--file", archive, "--path", "data"]
            extract = [program(), "cache-extractor", "--file", archive]
            made = []
            for _ in range(4):
                Path(archive).unlink(missing_ok=True)
                made.append(run(create, environment=settings, cwd=home, quiet=True))
            best = sorted(made, key=lambda usage: usage.wall)[1]
            rate = f"{amount / best.wall:,.0f} {unit}"
            rows.append(Row(what=f"archive {name}", value=best.wall, unit="s", reference=slow, goal=1.5, note=rate))
            rows.append(Row(what=f"archive {name}, memory", value=best.memory, unit="MB", reference=68, goal=1.2))
            # into a new directory each time, as in a fresh job; and nothing is removed in between, because some file
            # systems are slow to make files where many have just been removed
            found = []
            for number in range(4):
                fresh = Path(home, f"out{number}")
                fresh.mkdir()
                found.append(run(extract, environment=settings, cwd=fresh, quiet=True))
            best = sorted(found, key=lambda usage: usage.wall)[1]
            rate = f"{amount / best.wall:,.0f} {unit}"
            rows.append(Row(what=f"extract {name}", value=best.wall, unit="s", reference=quick, goal=1.5, note=rate))
            rows.append(Row(what=f"extract {name}, memory", value=best.memory, unit="MB", reference=68, goal=1.2))
    return rows


def _small(folder: Path) -> None:
    for number in range(5000):
        path = folder / f"{number % 50:02d}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * (20 + number % 200))


def _large(folder: Path) -> None:
    folder.mkdir()
    block = b"".join(f"{number:08d} some text that compresses a bit\n".encode() for number in range(25_000))
    with (folder / "big").open("wb") as file:
        for number in range(190):
            file.write(os.urandom(100_000) + block[: 950_000 + number])


def _must_succeed(*reports: dict[str, float]) -> None:
    if any(report["failed"] for report in reports):
        sys.exit(f"benchmark: jobs failed: {reports}")


SUITES: dict[str, Callable[[], list[Row]]] = {
    "startup": startup,
    "jobs": jobs,
    "logs": logs,
    "polls": polls,
    "memory": memory,
    "pipeline": pipeline,
    "archives": archives,
}
