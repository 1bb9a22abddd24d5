"""Submodules (facts/job-lifecycle.md 7.5)."""

from __future__ import annotations

from pyrunner.base.errors import JobFailure
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages import git_config
from pyrunner.shells.stages.environment import boolean, integer, words
from pyrunner.shells.writer import Argument, Reference, ScriptWriter, joined

_FETCH_HEADS = "git fetch origin +refs/heads/*:refs/remotes/origin/*"
_INCLUDE = f'git config --replace-all include.path "${git_config.EXTERNAL_VARIABLE}"'


def strategy(context: ScriptContext) -> str:
    """``none``, ``normal`` or ``recursive``.

    Raises:
        JobFailure: anything else was asked for.
    """
    if context.git_strategy in ("none", "empty"):
        return "none"
    asked = context.variables.get("GIT_SUBMODULE_STRATEGY") or "none"
    if asked not in ("none", "normal", "recursive"):
        raise JobFailure("unknown GIT_SUBMODULE_STRATEGY", job_exit_code=0)
    return asked


def update(writer: ScriptWriter, context: ScriptContext) -> None:
    """Bring the submodules to what the commit says; the working directory is the project."""
    if strategy(context) == "none":
        writer.notice("Skipping Git submodules setup")
        return
    plan = _Plan(context)
    writer.notice(f"Updating/initializing submodules{plan.notice}...")
    writer.command("git", "submodule", "init")
    writer.command(*plan.sync)
    _reset(writer, plan, clean=True)
    writer.if_command(*plan.update)
    writer.notice("Updated submodules")
    writer.command(*plan.sync)
    writer.else_()
    writer.warning("Updating submodules failed. Retrying...")
    if "--remote" in plan.update_flags:
        writer.command(*plan.foreach, _FETCH_HEADS)
    writer.command(*plan.sync)
    writer.command(*plan.update)
    _reset(writer, plan, clean=False)
    writer.end()
    if plan.clean:
        writer.command(*plan.foreach, plan.clean)
    writer.notice("Configuring submodules to use parent git credentials...")
    # nested ones too, whatever the strategy: a job may initialise them itself
    writer.command("git", "submodule", "foreach", "--quiet", "--recursive", _INCLUDE)
    if not boolean(context, "GIT_LFS_SKIP_SMUDGE"):
        writer.if_git_extension("lfs")
        writer.notice("Pulling LFS files...")
        writer.command(*plan.foreach, "git lfs pull")
        writer.end()


def _reset(writer: ScriptWriter, plan: _Plan, *, clean: bool) -> None:
    if clean and plan.clean:
        writer.command(*plan.foreach, plan.clean)
    writer.command(*plan.foreach, "git reset --hard")


class _Plan:
    """The commands, as the job's variables want them."""

    def __init__(self, context: ScriptContext) -> None:
        recursive = strategy(context) == "recursive"
        depth = integer(context, "GIT_SUBMODULE_DEPTH", context.job.git_info.depth)
        clean = words(context, "GIT_CLEAN_FLAGS", "-ffdx")
        recurse = ["--recursive"] if recursive else []
        paths = _paths(context)
        self.update_flags = words(context, "GIT_SUBMODULE_UPDATE_FLAGS", "none")
        self.notice = " recursively" if recursive else ""
        self.notice += f" with git depth set to {depth}" if depth > 0 else ""
        self.clean = " ".join(["git", "clean", *clean]) if clean else ""
        self.foreach: list[Argument] = ["git", "submodule", "foreach", *recurse]
        self.sync: list[Argument] = ["git", "submodule", "sync", *recurse, *paths]
        include = joined("include.path=", Reference(git_config.EXTERNAL_VARIABLE))
        self.update: list[Argument] = ["git", "-c", include, "submodule", "update", "--init", *recurse]
        self.update += ["--depth", str(depth)] if depth > 0 else []
        self.update += [*self.update_flags, *paths]


def _paths(context: ScriptContext) -> list[str]:
    """``-- <pathspecs>`` of GIT_SUBMODULE_PATHS.

    Raises:
        JobFailure: an exclusion stands alone; git would take it as a path of that name.
    """
    paths = context.variables.get("GIT_SUBMODULE_PATHS").split()
    if any(path in (":(exclude)", ":!", ":^") for path in paths):
        raise JobFailure(f'GIT_SUBMODULE_PATHS: invalid submodule pathspec "{" ".join(paths)}"', job_exit_code=0)
    return ["--", *paths] if paths else []
