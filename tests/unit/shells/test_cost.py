"""Scripts start no process without need: with no program to be found they still work."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrunner.api.wire import JobVariable
from pyrunner.shells.loader import shell
from pyrunner.testing.shell_contract import job_with, run_script, script_context

TRIVIAL = ("prepare_script", "get_sources", "step_script", "after_script", "cleanup_file_variables")


@pytest.mark.parametrize("stage", TRIVIAL)
def test_a_trivial_job_starts_nothing_but_the_shell(stage: str, tmp_path: Path) -> None:
    variables = [JobVariable(key=f"VARIABLE_{number}", value="some 'value'") for number in range(60)]
    job = job_with("echo hello", "X=1; export X", after=["echo bye"])
    context = script_context(tmp_path, job=job, variables=variables)
    Path(context.project_dir).mkdir(parents=True)
    Path(context.temp_dir).mkdir()
    script = shell("bash").script(stage, context)
    assert script is not None
    result = run_script(["/bin/bash"], script, tmp_path, {"PATH": "/nonexistent"})
    assert result.returncode == 0
    assert b"not found" not in result.stdout


def test_scripts_stay_short(tmp_path: Path) -> None:
    context = script_context(tmp_path)
    base = len(str(tmp_path))
    for stage in TRIVIAL:
        script = shell("bash").script(stage, context)
        assert script is None or len(script) < 1000 + 8 * base
