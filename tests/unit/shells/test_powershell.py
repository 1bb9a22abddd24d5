"""PowerShell scripts are compared with golden files: no PowerShell is needed to see what changes.

``UPDATE_GOLDEN=1`` writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.api.wire import (
    Artifact,
    ArtifactsFile,
    Cache,
    Dependency,
    GitInfo,
    Hook,
    JobResponse,
    JobVariable,
    Step,
)
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.loader import shell
from pyrunner.shells.powershell import PowerShellWriter, escaped
from pyrunner.shells.protocol import ScriptContext, ShellType, Stage
from pyrunner.shells.writer import Located, Reference, joined
from pyrunner.testing.shell_contract import script_context

GOLDEN = Path(__file__).with_name("golden")
STAGES = [*(stage.value for stage in Stage), "step_script"]


def everything() -> ScriptContext:
    info = GitInfo(
        repo_url="https://gitlab-ci-token:glcbt-job@gitlab.example.com/group/proj.git",
        ref="main",
        sha="91e03667ad1b5e9b8f5b1a5a3f1f9c4a0a6d7c11",
        refspecs=["+refs/heads/main:refs/remotes/origin/main"],
        depth=20,
    )
    job = JobResponse(
        id=7,
        token="glcbt-job",
        git_info=info,
        steps=[
            Step(name="script", script=["echo hello", "if($true) {\n echo multi\n}", ""]),
            Step(name="after_script", script=["echo bye"]),
        ],
        cache=[Cache(key="k", paths=["dir/"], when="always", fallback_keys=["other"])],
        artifacts=[Artifact(paths=["out/"], when="always")],
        dependencies=[Dependency(id=1, token="t", name="build", artifacts_file=ArtifactsFile(filename="a.zip"))],
        hooks=[Hook(name="pre_get_sources_script", script=["echo hook"])],
    )
    variables = [
        JobVariable(key="PLAIN", value='a "b" $c `d `u{1F600} \u201cquoted\u201d\n'),
        JobVariable(key="KUBECONFIG", value="secret\n", file=True),
        JobVariable(key="HOME", value="/root"),
        JobVariable(key="GIT_SUBMODULE_STRATEGY", value="recursive"),
    ]
    return script_context(
        Path("/srv"),
        variables=variables,
        job=job,
        config=RunnerConfig(url="https://gitlab.example.com", pre_build_script="echo pre"),
        git_strategy="fetch",
        clean_git_config=True,
        correlation_id="01ABC",
    )


@pytest.mark.parametrize("stage", STAGES)
def test_scripts_are_as_recorded(stage: str) -> None:
    script = shell("pwsh").script(stage, everything())
    assert script is not None
    path = GOLDEN / f"{stage}.ps1"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(script)
    assert script == path.read_text()
    code = re.sub(r'"(?:`.|[^"`])*"', "", script)
    assert code.count("{") == code.count("}")


def test_windows_powershell_gets_its_line_ends_and_goes_on_after_warnings() -> None:
    script = shell("powershell").script("step_script", everything())
    assert script is not None
    assert script.startswith("& {\r\n")
    assert script.endswith("}\r\n\r\n")
    assert "\n" not in script.replace("\r\n", "")


@given(st.text(max_size=30))
def test_no_text_ends_a_string_or_expands(text: str) -> None:
    index, inner = 0, escaped(text)
    while index < len(inner):
        if inner[index] == "`":
            index += 2
            continue
        assert inner[index] not in '"$\u201c\u201d\u201e\n\r'
        index += 1


def test_words_that_are_known_at_run_time_only() -> None:
    writer = PowerShellWriter()
    writer.command("git", joined("include.path=", Reference("X")), Located("builds/x"), Located("C:\\a"))
    script = writer.finish("pwsh")
    assert '& "git" "include.path=$($env:X)" "$($glr_root)/builds/x" "C:\\a"\n' in script
    assert '$glr_root = (Get-Location).Path.Replace("\\", "/")' in script


@pytest.mark.parametrize("name", ["pwsh", "powershell"])
def test_scripts_go_by_file_when_stdin_is_off(name: str) -> None:
    line = shell(name).command_line(ShellType.NORMAL, by_file=True)
    assert list(line.arguments) == [name, "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"]
    assert (line.pass_file, line.extension) == (True, "ps1")
    assert not shell(name).command_line(ShellType.NORMAL, "someone", by_file=True).pass_file
    script = shell(name).script("step_script", replace(everything(), flags={"FF_DISABLE_POWERSHELL_STDIN": True}))
    assert script is not None
    assert script.startswith("\ufeff") == (name == "powershell")
    of_custom = shell(name).script("step_script", replace(everything(), executor="custom"))
    assert of_custom is not None
    assert of_custom.startswith("\ufeff") == (name == "powershell")


def test_paths_of_caches_are_left_to_a_shell_that_resolves_them() -> None:
    context = replace(everything(), flags={"FF_USE_POWERSHELL_PATH_RESOLVER": True})
    assert '"--file" "/srv/cache/group/proj/k/cache.zip"' in (shell("pwsh").script("restore_cache", context) or "")
    relative = replace(context, cache_dir="cache", project_cache_dir="cache/group/proj")
    assert '"--file" "$($glr_root)/cache/group/proj/k/cache.zip"' in (
        shell("pwsh").script("archive_cache", relative) or ""
    )


def test_command_lines() -> None:
    line = shell("powershell").command_line(ShellType.NORMAL)
    assert list(line.arguments)[-2:] == ["-Command", "-"]
    bootstrap = list(shell("pwsh").command_line(ShellType.LOGIN).arguments)[-1]
    assert "UTF8Encoding" in base64.b64decode(bootstrap).decode("utf-16-le")
