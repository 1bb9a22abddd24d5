"""Man pages and the command reference are current, and every command explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrunner.cli import registry
from pyrunner.cli.help import command_help
from pyrunner.cli.manual import all_commands, man_pages, reference

DOCS = Path(__file__).resolve().parents[3] / "docs"
COMMANDS = dict(all_commands())


def test_the_man_pages_are_those_that_the_declarations_give() -> None:
    pages = man_pages()
    assert {path.name for path in (DOCS / "man").glob("*.1")} == set(pages), "run: make docs"
    for name, text in pages.items():
        assert (DOCS / "man" / name).read_text() == text, f"{name} is out of date; run: make docs"


def test_the_command_reference_is_current() -> None:
    assert (DOCS / "commands.md").read_text() == reference(), "run: make docs"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_and_every_flag_a_meaning(path: str) -> None:
    command = COMMANDS[path]
    text = command_help("pyrunner", command, path)
    assert text.startswith(f"pyrunner {path}: {command.summary}\n")
    assert all(flag.help for flag in command.flags if not flag.hidden), "a flag without help"
    names = [name for flag in command.flags for name in (flag.name, *flag.aliases)]
    assert len(names) == len(set(names)), "two flags of one name"


@pytest.mark.parametrize("name", registry.COMMANDS)
def test_every_command_shows_an_example(name: str) -> None:
    command = registry.load(name)
    children = command.subcommands.values()
    assert command.examples or any(child.examples for child in children)


def test_summaries_in_the_list_are_those_of_the_commands() -> None:
    for name, (_, summary) in registry.COMMANDS.items():
        assert registry.load(name).summary == summary
