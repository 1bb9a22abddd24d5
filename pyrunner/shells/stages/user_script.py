"""``step_*`` and ``after_script``: the commands of the user."""

from __future__ import annotations

from collections.abc import Sequence

from pyrunner.api.wire import Step
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages.environment import exports
from pyrunner.shells.writer import BOLD_GREEN, RESET, Located, ScriptWriter


def find_step(context: ScriptContext, name: str) -> Step | None:
    """The job's step called `name`; stage names are in lower case, those of steps need not be."""
    return next((step for step in context.job.steps if step.name.lower() == name), None)


def step(writer: ScriptWriter, context: ScriptContext, name: str) -> bool:
    """A step of the job between the runner's ``pre_build_script`` and ``post_build_script``, in one shell."""
    found = find_step(context, name)
    if found is None or not found.script:
        return False
    script = found.script
    if name == "release":
        script = [context.variables.expand(command) for command in script]
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    _one(writer, context, "pre_build_script", context.config.pre_build_script)
    user_commands(writer, context, "script_step", script)
    _one(writer, context, "post_build_script", context.config.post_build_script)
    return True


def after_script(writer: ScriptWriter, context: ScriptContext) -> bool:
    """The commands of ``after_script``, without the runner's own scripts around them."""
    found = find_step(context, "after_script")
    if found is None or not found.script:
        return False
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    writer.notice("Running after script...")
    user_commands(writer, context, "after_script_step", found.script)
    return True


def hook(writer: ScriptWriter, context: ScriptContext, prefix: str, *scripts: Sequence[str]) -> None:
    """Scripts that run around fetching; echoed like the user's commands."""
    user_commands(writer, context, prefix, [command for script in scripts for command in script])


def _one(writer: ScriptWriter, context: ScriptContext, prefix: str, script: str) -> None:
    if script:
        user_commands(writer, context, prefix, [script])


def user_commands(writer: ScriptWriter, context: ScriptContext, prefix: str, commands: Sequence[str]) -> None:
    """Echo each command, then put it as it is (facts/job-lifecycle.md section 6)."""
    with_sections = context.flags.get("FF_SCRIPT_SECTIONS", False) and context.job.features.trace_sections
    for index, command in enumerate(map(str.strip, commands)):
        if not command:
            writer.empty()
            continue
        first, newline, _ = command.partition("\n")
        if not newline:
            writer.notice(f"$ {command}")
        elif with_sections:
            section = f"section_{prefix}_{index}"
            writer.section_start(section, "hide_duration=true,collapsed=true")
            writer.echo(f"{BOLD_GREEN}$ {command}{RESET}")
            writer.section_end(section)
        else:
            writer.notice(f"$ {first} # collapsed multi-line command")
        writer.line(command)
        writer.check_errors()
