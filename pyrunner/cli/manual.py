"""Man pages and the command reference, made from the declarations of the commands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pyrunner.base.version import VERSION
from pyrunner.cli import registry
from pyrunner.cli.help import flag_names, flag_text
from pyrunner.cli.main import GLOBAL_FLAGS
from pyrunner.cli.spec import Command, Flag

_EXIT_STATUS = "0 on success, 1 on an error that is said in one line, 2 on an error that nobody foresaw."


def all_commands() -> Iterator[tuple[str, Command]]:
    """Every visible command and sub-command with its path, e.g. ``config schema``, in the order of help."""
    for name in registry.COMMANDS:
        yield from _with_children(name, registry.load(name))


def _with_children(path: str, command: Command) -> Iterator[tuple[str, Command]]:
    if command.hidden:
        return
    yield path, command
    for name, child in command.subcommands.items():
        yield from _with_children(f"{path} {name}", child)


def man_pages() -> dict[str, str]:
    """File name → text of all man pages, section 1."""
    pages = {"pyrunner.1": program_page()}
    for path, command in all_commands():
        name = f"pyrunner-{path.replace(' ', '-')}"
        pages[f"{name}.1"] = command_page(name, path, command)
    return pages


def program_page() -> str:
    """``pyrunner(1)``."""
    lines = _head("pyrunner", "a CI job runner, compatible with GitLab Runner")
    lines += [".B pyrunner", "[\\fIglobal options\\fR] \\fIcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]"]
    lines += [".SH COMMANDS"]
    for name, (_, summary) in registry.COMMANDS.items():
        lines += [".TP", f".BR {_roff(f'pyrunner-{name}')} (1)", _roff(summary)]
    lines += [".SH GLOBAL OPTIONS", *_flags(GLOBAL_FLAGS)]
    lines += [
        ".SH FILES",
        ".TP",
        ".I /etc/gitlab\\-runner/config.toml",
        "configuration of a runner that root started",
    ]
    lines += [".TP", ".I ~/.gitlab\\-runner/config.toml", "configuration of everyone else's"]
    lines += [".SH EXIT STATUS", _roff(_EXIT_STATUS)]
    return "\n".join(lines) + "\n"


def command_page(name: str, path: str, command: Command) -> str:
    """The page of one command."""
    lines = _head(name, command.summary)
    usage = " ".join(filter(None, [path, "[options]" if command.flags else "", command.arguments]))
    lines += [f".B pyrunner {_roff(usage)}"]
    lines += [".SH DESCRIPTION", _roff(command.summary + ".")]
    for paragraph in _paragraphs(command):
        lines += [".PP", _roff(paragraph)]
    if command.subcommands:
        lines += [".SH COMMANDS"]
        for child in command.subcommands.values():
            lines += [".TP", f".B {_roff(child.name)}", _roff(child.summary)]
    sections: dict[str, list[Flag]] = {}
    for flag in command.flags:
        if not flag.hidden:
            sections.setdefault(flag.section, []).append(flag)
    for section, flags in sections.items():
        lines += [f'.SH "{_roff((section or "Options").upper())}"', *_flags(flags)]
    if command.examples:
        lines += [".SH EXAMPLES"]
        for line, meaning in command.examples:
            lines += [".TP", f".B pyrunner {_roff(line)}", _roff(meaning)]
    lines += [".SH EXIT STATUS", _roff(_EXIT_STATUS), ".SH SEE ALSO", ".BR pyrunner (1)"]
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str) -> list[str]:
    title = f'.TH "{_roff(name.upper())}" 1 "" "pyrunner {VERSION}" "pyrunner manual"'
    return [title, ".SH NAME", f"{_roff(name)} \\- {_roff(summary)}", ".SH SYNOPSIS"]


def _flags(flags: list[Flag] | tuple[Flag, ...]) -> Iterator[str]:
    for flag in flags:
        yield ".TP"
        yield f".B {_roff(flag_names(flag))}"
        yield _roff(flag_text(flag)) or "\\&"


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _paragraphs(command: Command) -> list[str]:
    text = textwrap.dedent(command.description).strip()
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")] if text else []


def reference() -> str:
    """``docs/commands.md``."""
    parts = [
        "# Commands",
        "Made from the declarations of the commands by `make docs`; a test keeps it current.",
        "## Global options",
        _table(GLOBAL_FLAGS),
    ]
    for path, command in all_commands():
        usage = " ".join(filter(None, ["pyrunner", path, "[options]" if command.flags else "", command.arguments]))
        parts += [f"## {path}", f"{command.summary}.", f"```\n{usage}\n```", *_paragraphs(command)]
        shown = [flag for flag in command.flags if not flag.hidden]
        if shown:
            parts.append(_table(shown))
        if command.examples:
            examples = "\n".join(f"# {meaning}\npyrunner {line}" for line, meaning in command.examples)
            parts.append(f"```sh\n{examples}\n```")
    return "\n\n".join(parts) + "\n"


def _table(flags: list[Flag] | tuple[Flag, ...]) -> str:
    rows = ["| option | meaning |", "| --- | --- |"]
    for flag in flags:
        meaning = flag_text(flag).replace("|", "\\|").replace("<", "&lt;")
        rows.append(f"| `{flag_names(flag)}` | {meaning} |")
    return "\n".join(rows)
