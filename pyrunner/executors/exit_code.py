"""How a script's end is told (facts/job-lifecycle.md 3.4)."""

from __future__ import annotations

import signal

from pyrunner.base.errors import JobFailure, SystemFailure

#: What Go calls signals, where that is not the name in lower case.
_SIGNAL_TEXTS = {
    signal.SIGABRT: "aborted",
    signal.SIGALRM: "alarm clock",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "floating point exception",
    signal.SIGHUP: "hangup",
    signal.SIGILL: "illegal instruction",
    signal.SIGINT: "interrupt",
    signal.SIGKILL: "killed",
    signal.SIGPIPE: "broken pipe",
    signal.SIGQUIT: "quit",
    signal.SIGSEGV: "segmentation fault",
    signal.SIGTERM: "terminated",
    signal.SIGTRAP: "trace/breakpoint trap",
    signal.SIGUSR1: "user defined signal 1",
    signal.SIGUSR2: "user defined signal 2",
    signal.SIGXCPU: "CPU time limit exceeded",
    signal.SIGXFSZ: "file size limit exceeded",
}


def check_exit_code(code: int | None) -> None:
    """Tell a script's end.

    Raises:
        JobFailure: `code` is another than 0.
        SystemFailure: it is unknown.
    """
    if code is None:
        raise SystemFailure("the script's processes are gone without an exit code", reason="runner_system_failure")
    if code:
        raise failure(code)


def failure(code: int) -> JobFailure:
    """How a script's end is told (facts/job-lifecycle.md 3.4): `code` is negative for a signal."""
    if code >= 0:
        return JobFailure(f"exit status {code}", job_exit_code=code)
    number = -code
    try:
        name = _SIGNAL_TEXTS.get(signal.Signals(number)) or signal.Signals(number).name[3:].lower()
    except ValueError:
        name = f"signal {number}"
    return JobFailure(f"signal: {name}", job_exit_code=-1)
