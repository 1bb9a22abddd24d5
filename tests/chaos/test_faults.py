"""Every fault that a server can have, while many jobs run: each verdict arrives once, each log byte by byte."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from log_jobs import LogJob, check_all, log_job, wait_until_empty

from pyrunner.api.dial import Timeouts
from pyrunner.store.outbox import Outbox
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import Fault, cut, cut_request, drop, slow, status
from pyrunner.testing.runner_service import SYSTEM_ID, RunnerService, service_options, shell_runner

JOBS = 12
PUT, PATCH = ("PUT", r"/jobs/\d+$"), ("PATCH", "/trace$")
#: What a server says beside its answers; without it, runners wait three seconds.
SOON = {"X-GitLab-Trace-Update-Interval": "1"}


def submit(gitlab: FakeGitLab, directory: Path) -> dict[int, LogJob]:
    """Short and long jobs, with logs from one line to more than one patch."""
    directory.mkdir(exist_ok=True)
    jobs = {}
    for number in range(JOBS):
        size = {0: 1_500_000, 1: 1, 2: 200_000}.get(number, 3000)
        job = log_job(directory, number, size=size, parts=3 if number % 4 == 0 else 1)
        jobs[gitlab.submit(job.payload)] = job
    return jobs


def run_all(
    tmp_path: Path,
    harm: Callable[[FakeGitLab], object],
    *,
    retry_limits: tuple[int, ...] = (1, 10),
    long_poll: float = 50,
    timeout: float = 60,
) -> None:
    """Run all jobs against a server that `harm` harms, and check them.

    Two runners share them: one leaves a verdict to the outbox after the first try, the other is patient.
    """
    with FakeGitLab(update_interval=1, long_poll=long_poll) as gitlab:
        jobs = submit(gitlab, tmp_path / "logs")
        harm(gitlab)
        runners = [
            shell_runner(
                gitlab,
                tmp_path,
                request_concurrency=3,
                job_status_final_update_retry_limit=limit,
                output_limit=8192,
            )
            for limit in retry_limits
        ]
        options = replace(service_options(), outbox=Outbox(str(tmp_path), SYSTEM_ID))
        try:
            with RunnerService(gitlab, tmp_path, runners=runners, concurrent=10, options=options):
                check_all(gitlab, jobs, timeout)
                # a verdict whose answer was lost is told once more
                wait_until_empty(tmp_path, timeout)
                check_all(gitlab, jobs)
        finally:
            if isinstance(harm, Outage):
                harm.end()
        assert isinstance(harm, Outage) or any(seen.fault for seen in gitlab.requests), "no fault struck"


def faults(*pairs: tuple[tuple[str, str], Fault], times: int = 10) -> Callable[[FakeGitLab], None]:
    def harm(gitlab: FakeGitLab) -> None:
        for (method, path), fault in pairs:
            gitlab.inject(method, path, fault, times=times)

    return harm


def both(fault: Fault, times: int = 10) -> Callable[[FakeGitLab], None]:
    return faults((PUT, fault), (PATCH, fault), times=times)


FAULTS = {
    "500": both(status(500, SOON)),
    "502": both(status(502, SOON)),
    "503 after the request took effect": both(status(503, SOON, handled=True)),
    "501, which nobody retries in the same breath": both(status(501, SOON), 6),
    "429 with Retry-After": both(status(429, {"Retry-After": "1", **SOON}), 8),
    "202 storm": faults((PUT, status(202, SOON)), times=8),
    "409": faults((PUT, status(409, SOON)), times=10),
    "412": faults((PUT, status(412, SOON)), times=10),
    "416 from the start": faults((PATCH, status(416, {"Range": "0-0", **SOON})), times=8),
    "416 in the middle": faults((PATCH, status(416, {"Range": "0-100", **SOON})), times=8),
    "416 beyond the end": faults((PATCH, status(416, {"Range": "0-99999999", **SOON})), times=8),
    "416 without a range": faults((PATCH, status(416, SOON)), times=8),
    "answers cut off": both(cut(), 6),
    "requests cut off": both(cut_request(), 6),
    "no answer": both(drop(), 6),
    "answer lost": both(drop(handled=True), 6),
    "400": both(status(400, SOON), 6),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(tmp_path: Path, name: str) -> None:
    run_all(tmp_path, FAULTS[name])


def test_answer_after_the_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Timeouts.__init__.__kwdefaults__, "header", 0.7)
    late = slow(1.5, handled=True)
    run_all(tmp_path, both(late, times=8), long_poll=0.3)


def test_all_faults_at_once(tmp_path: Path) -> None:
    def harm(gitlab: FakeGitLab) -> None:
        for inject in FAULTS.values():
            inject(_Few(gitlab))  # type: ignore[arg-type]

    run_all(tmp_path, harm)


class _Few:
    """Lets each fault strike three times, spread over the run."""

    def __init__(self, gitlab: FakeGitLab) -> None:
        self._gitlab = gitlab
        self._skip = 0

    def inject(self, method: str, path: str, fault: Fault, *, times: int) -> None:
        self._gitlab.inject(method, path, fault, times=3, skip=self._skip)
        self._skip += 2


class Outage:
    """Down from the third trace patch on, which comes in the middle of jobs."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    def __call__(self, gitlab: FakeGitLab) -> None:
        self._thread = threading.Thread(target=lambda: self._run(gitlab), name="outage")
        self._thread.start()

    def _run(self, gitlab: FakeGitLab) -> None:
        gitlab.wait_for_requests(*PATCH, 3)
        gitlab.go_down()
        threading.Event().wait(self._seconds)
        gitlab.come_back()

    def end(self) -> None:
        """Wait for the end: nobody may bring a server back that is not wanted any more."""
        if self._thread is not None:
            self._thread.join()


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_server_is_down_in_mid_job(tmp_path: Path, seconds: int) -> None:
    run_all(tmp_path, Outage(seconds), retry_limits=(1, 4), timeout=60 + 3 * seconds)
