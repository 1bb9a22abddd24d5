"""Which stages may share a shell (docs/architecture.md, "Shells of a job")."""

from __future__ import annotations

from pyrunner.shells.protocol import STEP_PREFIX, ScriptContext, Sharing, Stage

_HOOKS = ("pre_get_sources_script", "post_get_sources_script")


def stage_sharing(stage: str, context: ScriptContext) -> Sharing:
    """How `stage` may share its shell.

    With ``CI_DEBUG_TRACE`` nothing is shared: how deep a command is nested shows in bash's trace of it.
    """
    if context.debug_trace or stage.startswith(STEP_PREFIX) or stage == Stage.AFTER_SCRIPT:
        return Sharing.NONE
    if stage == Stage.PREPARE_SCRIPT:
        return Sharing.INERT
    if stage == Stage.GET_SOURCES:
        if context.git_strategy == "none":
            return Sharing.INERT
        return Sharing.NONE if _has_hooks(context) else Sharing.FILES
    return Sharing.FILES


def _has_hooks(context: ScriptContext) -> bool:
    own = any(getattr(context.config, name) for name in _HOOKS)
    return own or any(hook.script for hook in context.job.hooks if hook.name in _HOOKS)
