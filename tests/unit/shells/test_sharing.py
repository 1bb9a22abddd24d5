"""Which stages may share a shell: never one with a word of the user in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyrunner.api.wire import Hook, JobResponse
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.protocol import ScriptContext, Sharing, Stage
from pyrunner.shells.sharing import stage_sharing
from pyrunner.testing.shell_contract import script_context


@pytest.fixture
def context(tmp_path: Path) -> ScriptContext:
    return replace(script_context(tmp_path), git_strategy="fetch", debug_trace=False)


@pytest.mark.parametrize("stage", ["step_script", "step_release", "step_prepare_script", Stage.AFTER_SCRIPT])
def test_users_scripts_never(context: ScriptContext, stage: str) -> None:
    assert stage_sharing(stage, context) is Sharing.NONE


@pytest.mark.parametrize("strategy", ["fetch", "clone", "empty"])
def test_sources_bring_files(context: ScriptContext, strategy: str) -> None:
    assert stage_sharing(Stage.GET_SOURCES, replace(context, git_strategy=strategy)) is Sharing.FILES


def test_without_sources_nothing_changes(context: ScriptContext) -> None:
    assert stage_sharing(Stage.PREPARE_SCRIPT, context) is Sharing.INERT
    assert stage_sharing(Stage.GET_SOURCES, replace(context, git_strategy="none")) is Sharing.INERT


@pytest.mark.parametrize("name", ["pre_get_sources_script", "post_get_sources_script"])
def test_hooks_are_the_users(context: ScriptContext, name: str) -> None:
    of_job = JobResponse(id=1, hooks=[Hook(name=name, script=["true"])])
    of_runner = RunnerConfig()
    setattr(of_runner, name, "true")
    assert stage_sharing(Stage.GET_SOURCES, replace(context, job=of_job)) is Sharing.NONE
    assert stage_sharing(Stage.GET_SOURCES, replace(context, config=of_runner)) is Sharing.NONE


@pytest.mark.parametrize("stage", list(Stage))
def test_debug_trace_shows_how_deep_a_command_is(context: ScriptContext, stage: Stage) -> None:
    assert stage_sharing(stage, replace(context, debug_trace=True)) is Sharing.NONE
