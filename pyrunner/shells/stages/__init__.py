"""What each stage of a job does, written once for all shells (facts/job-lifecycle.md section 3)."""

from __future__ import annotations

from collections.abc import Callable

from pyrunner.shells.protocol import STEP_PREFIX, ScriptContext, Stage
from pyrunner.shells.stages import artifacts, cache, cleanup, prepare, sources, user_script
from pyrunner.shells.writer import ScriptWriter

#: Writes a stage; False when there is nothing to do, whatever was written then is thrown away.
StageWriter = Callable[[ScriptWriter, ScriptContext], bool]

_STAGES: dict[str, StageWriter] = {
    Stage.PREPARE_SCRIPT: prepare.prepare_script,
    Stage.GET_SOURCES: sources.get_sources,
    Stage.CLEAR_WORKTREE: sources.clear_worktree,
    Stage.RESTORE_CACHE: cache.restore_cache,
    Stage.DOWNLOAD_ARTIFACTS: artifacts.download_artifacts,
    Stage.AFTER_SCRIPT: user_script.after_script,
    Stage.ARCHIVE_CACHE: cache.archive_cache_on_success,
    Stage.ARCHIVE_CACHE_ON_FAILURE: cache.archive_cache_on_failure,
    Stage.UPLOAD_ARTIFACTS_ON_SUCCESS: artifacts.upload_on_success,
    Stage.UPLOAD_ARTIFACTS_ON_FAILURE: artifacts.upload_on_failure,
    Stage.CLEANUP_FILE_VARIABLES: cleanup.cleanup_file_variables,
}


def write_stage(writer: ScriptWriter, stage: str, context: ScriptContext) -> bool:
    """Write `stage`; False when it has nothing to do.

    Raises:
        ValueError: no stage has this name.
        JobError: the job asks for something invalid.
    """
    if stage.startswith(STEP_PREFIX):
        return user_script.step(writer, context, stage.removeprefix(STEP_PREFIX))
    if stage not in _STAGES:
        raise ValueError(f'unknown stage "{stage}"')
    return _STAGES[stage](writer, context)
