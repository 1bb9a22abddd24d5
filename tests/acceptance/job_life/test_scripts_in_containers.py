"""The scripts of `test_scripts` in containers, whose image has busybox's sh and nothing else."""

from __future__ import annotations

from job_life.test_scripts import SCRIPTS, Script, printed_in
from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import Expect, Row, job

ON = ("docker",)
#: The script's shell is the container's first process, which no signal ends that it has no trap for.
_OF_FIRST_PROCESS = ("6-self-kill", "6-term-is-trapped")


def row_of(script: Script) -> Row:
    failed = Expect(
        state="failed", reason="script_failure", exit_code=script.code, last=f"ERROR: Job failed: @EXIT@ {script.code}"
    )
    return Row(
        id=script.id,
        job=job(*script.script, variables={"FF_TIMESTAMPS": "false", **script.variables}),
        expect=failed if script.code else Expect(),
    )


CHOSEN = {script.id: script for script in SCRIPTS if "sh" in script.ways and script.id not in _OF_FIRST_PROCESS}
ROWS = [row_of(script) for script in CHOSEN.values()]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
    assert printed_in(result.job.trace.decode()) == CHOSEN[row.id].prints
