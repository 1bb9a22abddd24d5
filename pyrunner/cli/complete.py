"""What the shells ask at every TAB: the words that may stand at the end of a command line."""

from __future__ import annotations

import os

from pyrunner.base.errors import PyrunnerError
from pyrunner.cli import registry
from pyrunner.cli.main import GLOBAL_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyrunner.cli.spec import Command, Flag

#: Answer that asks the shell to complete file or directory names itself.
FILES, DIRECTORIES = "\x00files", "\x00directories"


def candidates(words: Sequence[str]) -> list[str]:
    """Possible last words; `words` is the command line after the program, its last element what is typed so far."""
    *before, current = list(words) or [""]
    flags: Iterable[Flag] = GLOBAL_FLAGS
    command, rest = None, _after_globals(before)
    if rest:
        if rest[0] in ("help", "h"):
            return _matching(registry.COMMANDS, current)
        if rest[0] not in registry.COMMANDS:
            return []
        command = registry.load(rest.pop(0))
        while rest and rest[0] in command.subcommands:
            command = command.subcommands[rest.pop(0)]
        flags = command.flags
    pending = _flag_named(before[-1] if before else "", flags)
    if pending is not None and pending.takes_value and "=" not in before[-1]:
        return _values(pending.complete, pending.choices, current, rest)
    if current.startswith("-"):
        return _matching([f"--{flag.name}" for flag in flags if not flag.hidden], current)
    return _words(command, current, rest)


def _words(command: Command | None, current: str, rest: Sequence[str]) -> list[str]:
    if command is None:
        return _matching(registry.COMMANDS, current)
    if command.subcommands:
        return _matching([name for name, child in command.subcommands.items() if not child.hidden], current)
    return _values(command.complete, (), current, rest)


def _after_globals(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        flag = _flag_named(rest.pop(0), GLOBAL_FLAGS)
        if flag is not None and flag.takes_value and rest:
            rest.pop(0)
    return rest


def _flag_named(word: str, flags: Iterable[Flag]) -> Flag | None:
    name = word.lstrip("-")
    if not word.startswith("-") or not name:
        return None
    return next((flag for flag in flags if name in (flag.name, *flag.aliases)), None)


def _values(kind: str, choices: Sequence[str], current: str, rest: Sequence[str]) -> list[str]:
    if choices:
        return _matching(choices, current)
    if kind == "file":
        return [FILES]
    if kind == "dir":
        return [DIRECTORIES]
    if kind == "runner":
        return _matching(_runner_names(rest), current)
    if kind == "job":
        return _matching(_job_names(rest), current)
    if kind == "command":
        return _matching(registry.COMMANDS, current)
    return []


def _runner_names(rest: Sequence[str]) -> list[str]:
    from pyrunner.config.load import default_config_path, load_config

    path = _option(rest, ("config", "c")) or os.environ.get("CONFIG_FILE") or default_config_path()
    try:
        return [runner.name for runner in load_config(path).runners]
    except (PyrunnerError, OSError):
        return []


def _job_names(rest: Sequence[str]) -> list[str]:
    from pyrunner.pipeline import job_names

    try:
        return job_names(_option(rest, ("file", "f")) or ".gitlab-ci.yml")
    except (PyrunnerError, OSError):
        return []


def _option(words: Sequence[str], names: Sequence[str]) -> str:
    for position, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in names:
            return value if equals else " ".join(words[position + 1 : position + 2])
    return ""


def _matching(names: Iterable[str], current: str) -> list[str]:
    return [name for name in names if name.startswith(current)]
