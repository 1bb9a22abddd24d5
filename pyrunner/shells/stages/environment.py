"""The job's variables in a script (facts/job-lifecycle.md sections 4.1, 4.3 and 4.4)."""

from __future__ import annotations

import re

from pyrunner.api.variables import read_bool
from pyrunner.api.wire import JobVariable
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.writer import Located, ScriptWriter

ENV_FILE = "gitlab_runner_env"
MASKING_FILE = "masking.db"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def in_temp_dir(context: ScriptContext, name: str) -> Located:
    """A path in the project's temporary directory."""
    return Located(f"{context.temp_dir}/{name}")


def exports(writer: ScriptWriter, context: ScriptContext) -> None:
    """Export every variable that a shell can hold, write the file variables, read ``GITLAB_ENV``.

    Of several definitions only the winning one is written: scripts stay short.
    """
    writer.mkdir(Located(context.temp_dir))
    for variable in exportable(context):
        if variable.file:
            writer.file_variable(variable.key, in_temp_dir(context, variable.key), variable.value)
        else:
            writer.export(variable.key, variable.value)
    writer.export("GITLAB_ENV", in_temp_dir(context, ENV_FILE))
    writer.source_env()


def plain_exports(writer: ScriptWriter, context: ScriptContext) -> None:
    """Export what needs no file."""
    for variable in exportable(context):
        if not variable.file:
            writer.export(variable.key, variable.value)


def exportable(context: ScriptContext) -> list[JobVariable]:
    """The winning definitions whose names shells can hold."""
    return [variable for variable in context.variables.last() if _IDENTIFIER.fullmatch(variable.key)]


def unexportable(context: ScriptContext) -> list[str]:
    """Names that no shell can hold, for example because they start with a digit."""
    return [item.key for item in context.variables.last() if not _IDENTIFIER.fullmatch(item.key)]


def boolean(context: ScriptContext, key: str, default: bool = False) -> bool:
    """Boolean variable (section 4.2); `default` when it is unset or none."""
    value = read_bool(context.variables.get(key))
    return default if value is None else value


def integer(context: ScriptContext, key: str, default: int) -> int:
    """Integer variable; `default` when it is unset or none."""
    try:
        return int(context.variables.get(key))
    except ValueError:
        return default


def words(context: ScriptContext, key: str, default: str) -> list[str]:
    """Flags in a variable, split at white space; ``none`` means no flags, unset means `default`."""
    text = context.variables.get(key) or default
    return [] if text.strip() == "none" else text.split()
