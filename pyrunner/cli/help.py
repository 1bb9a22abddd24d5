"""The help screens: of the program and of each command."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyrunner.cli.spec import Command, Flag


def width() -> int:
    """Columns to fill: of the terminal, at most 120, at least 60; 100 when piped."""
    try:
        return min(120, max(60, os.get_terminal_size(1).columns))
    except OSError:
        return 100


def program_help(program: str, flags: Iterable[Flag]) -> str:
    """The screen of ``pyrunner --help``."""
    from pyrunner.cli.registry import COMMANDS

    column = max(map(len, COMMANDS)) + 5
    commands = "\n".join(_entry(name, summary, column) for name, (_, summary) in COMMANDS.items())
    return (
        f"{program}: a CI job runner, compatible with GitLab Runner\n\n"
        f"Usage:\n   {program} [global options] command [command options] [arguments]\n\n"
        f"Commands:\n{commands}\n\nGlobal options:\n{flag_list(flags)}\n\n"
        f"Examples:\n   {program} exec               run the pipeline of this repository here\n"
        f"   {program} register           add a runner to config.toml\n"
        f"   {program} run                take jobs until told to stop\n\n"
        f"`{program} COMMAND --help` explains a command.\n"
    )


def command_help(program: str, command: Command, path: str) -> str:
    """The screen of ``pyrunner COMMAND --help``; `path` is the command with its parents."""
    usage = f"{program} {path}"
    if command.subcommands:
        usage += " command"
    if command.flags:
        usage += " [options]"
    parts = [f"{program} {path}: {command.summary}", f"Usage:\n   {usage} {command.arguments}".rstrip()]
    if command.description:
        parts += ["\n".join(wrapped(part, width())) for part in command.description.split("\n\n")]
    if command.subcommands:
        column = max(map(len, command.subcommands)) + 5
        shown = [item for item in command.subcommands.values() if not item.hidden]
        parts.append("Commands:\n" + "\n".join(_entry(item.name, item.summary, column) for item in shown))
    sections: dict[str, list[Flag]] = {}
    for flag in command.flags:
        if not flag.hidden:
            sections.setdefault(flag.section, []).append(flag)
    parts += [f"{name or 'Options'}:\n{flag_list(flags)}" for name, flags in sections.items()]
    if command.examples:
        parts.append("Examples:\n" + "\n".join(_example(program, *example) for example in command.examples))
    return "\n\n".join(parts) + "\n"


def _example(program: str, line: str, meaning: str) -> str:
    return f"   # {meaning}\n   {program} {line}"


def flag_list(flags: Iterable[Flag]) -> str:
    """The flags, one entry each."""
    shown = [flag for flag in flags if not flag.hidden]
    names = {flag.name: flag_names(flag) for flag in shown}
    column = min(38, max((len(text) for text in names.values()), default=0) + 5)
    return "\n".join(_entry(names[flag.name], flag_text(flag), column) for flag in shown)


def flag_names(flag: Flag) -> str:
    """``-c, --config FILE``."""
    names = sorted((flag.name, *flag.aliases), key=lambda name: (len(name) > 1, name != flag.name))
    text = ", ".join(f"-{name}" if len(name) == 1 else f"--{name}" for name in names)
    return f"{text} {flag.metavar}".rstrip()


def flag_text(flag: Flag) -> str:
    """The help of a flag with choices, default and environment."""
    text = flag.help
    if flag.choices:
        text += f" ({', '.join(flag.choices)})"
    if flag.default not in ("", False, 0, None, [], {}):
        text += f" (default: {flag.default})"
    if flag.env:
        text += f" [${', $'.join(flag.env)}]"
    return text.strip()


def wrapped(text: str, columns: int) -> list[str]:
    """The words of `text` in lines of at most `columns`; textwrap does more and takes 7 ms to import."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= columns:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _entry(left: str, right: str, column: int) -> str:
    lines = wrapped(right, width() - column) or [""]
    if len(left) + 4 > column:
        lines.insert(0, "")
    head = f"   {left}"
    first = f"{head:<{column}}{lines[0]}".rstrip()
    return "\n".join([first, *(" " * column + line for line in lines[1:])])
