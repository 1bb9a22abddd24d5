"""``cleanup_file_variables``: leave no secret and no lock behind (facts/job-lifecycle.md section 6)."""

from __future__ import annotations

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages import git_config, sources, submodules
from pyrunner.shells.stages.environment import ENV_FILE, MASKING_FILE, exportable, in_temp_dir, plain_exports
from pyrunner.shells.writer import Located, ScriptWriter

_FILES = (MASKING_FILE, git_config.EXTERNAL_FILE, git_config.GLOBAL_FILE)


def cleanup_file_variables(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Delete what the stages wrote; without git there is no process to start for it."""
    uses_git = context.git_strategy in ("fetch", "clone")
    if uses_git:
        plain_exports(writer, context)
        sources.reject_credentials(writer, context)
    writer.rm_filled(in_temp_dir(context, ENV_FILE))
    files = [in_temp_dir(context, name) for name in _FILES]
    files += [in_temp_dir(context, variable.key) for variable in exportable(context) if variable.file]
    writer.rm(*files, Located(f"{context.builds_dir}/.gitlab-build-uid-gid"))
    if context.flags.get("FF_ENABLE_JOB_CLEANUP", False):
        _clean_project(writer, context)
    if uses_git:
        sources.remove_leftovers(writer, context)
    return True


def _clean_project(writer: ScriptWriter, context: ScriptContext) -> None:
    project = Located(context.project_dir)
    if context.git_strategy in ("clone", "empty"):
        writer.rm(project)
    elif context.git_strategy == "fetch":
        writer.if_directory(Located(f"{context.project_dir}/.git"))
        writer.cd(project)
        flags = sources.clean_flags(context)
        if flags:
            writer.command("git", "clean", *flags)
        writer.command("git", "reset", "--hard")
        if submodules.strategy(context) != "none":
            foreach = ["git", "submodule", "foreach"]
            foreach += ["--recursive"] if submodules.strategy(context) == "recursive" else []
            if flags:
                writer.command(*foreach, " ".join(["git", "clean", *flags]))
            writer.command(*foreach, "git reset --hard")
        writer.end()
