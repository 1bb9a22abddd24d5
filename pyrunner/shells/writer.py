"""The seam between what a stage does (`stages/`) and how a shell says it (`bash`, `powershell`).

A stage is written once against `ScriptWriter`; a writer only knows its language's grammar and quoting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

BOLD_GREEN = "\x1b[32;1m"
YELLOW = "\x1b[0;33m"
RESET = "\x1b[0;m"
CLEAR = "\x1b[0K"


@dataclass(frozen=True)
class Reference:
    """The value that an environment variable has when the script runs."""

    name: str


@dataclass(frozen=True)
class Located:
    """A path that stays right after ``cd``: a relative one starts where the script started."""

    path: str


@dataclass(frozen=True)
class Joined:
    """Several arguments glued into one."""

    parts: tuple[Argument, ...]


#: One word of a command: literal text (quoted by the writer, any bytes but NUL) or something known at run time only.
Argument = str | Reference | Located | Joined


def joined(*parts: Argument) -> Joined:
    """Glue `parts` into one argument."""
    return Joined(parts)


class ScriptWriter(Protocol):
    """Collects one stage's script. A failing command ends the script with its exit code, unless it is a condition."""

    # user text

    def line(self, text: str) -> None:
        """Text of the user in the shell's own language, as it is."""
        ...

    def check_errors(self) -> None:
        """End the script here if the command before failed and the shell would go on by itself."""
        ...

    # variables

    def export(self, key: str, value: Argument) -> None:
        """Set an environment variable."""
        ...

    def file_variable(self, key: str, path: Located, content: str) -> None:
        """Write `content` to `path`, without a newline at its end, and export the path as `key`."""
        ...

    def source_env(self) -> None:
        """Make the file named by ``GITLAB_ENV`` if missing; export each ``KEY=value`` line in it."""
        ...

    # commands

    def command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Run a program; `env` is set for it, so that it is not on its command line."""
        ...

    def feed(self, text: str, *arguments: Argument) -> None:
        """Give lines to a program; neither its output nor its failure matters."""
        ...

    def if_command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Open a block that runs when the program succeeds; its output is shown."""
        ...

    def if_silent(self, *arguments: Argument) -> None:
        """Like `if_command`, output thrown away."""
        ...

    def if_output_has(self, needle: str, *arguments: Argument) -> None:
        """Open a block that runs when the program's output contains `needle`."""
        ...

    def if_program(self, name: str) -> None:
        """Open a block that runs when program `name` (a name or a path) can be started."""
        ...

    def if_git_extension(self, name: str) -> None:
        """Open a block that runs when ``git <name>`` is installed."""
        ...

    def if_directory(self, path: Argument) -> None:
        """Open a block that runs when `path` is a directory."""
        ...

    def if_file(self, path: Argument) -> None:
        """Open a block that runs when `path` is a file."""
        ...

    def else_(self) -> None:
        """The other branch of the open block."""
        ...

    def end(self) -> None:
        """Close the open block."""
        ...

    # files

    def cd(self, path: Argument) -> None:
        """Change the working directory."""
        ...

    def mkdir(self, path: Argument) -> None:
        """Make a directory and its parents unless it is there."""
        ...

    def rm(self, *paths: Argument) -> None:
        """Delete files or trees that exist."""
        ...

    def rm_filled(self, path: Argument) -> None:
        """Delete a file unless it is empty: an empty one tells nothing and is not worth a process."""
        ...

    def rm_files_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete files below `directory`, at any depth, whose name matches one of the globs."""
        ...

    def rm_directories_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete directories below `directory`, at any depth, whose name matches one of the globs."""
        ...

    def write_file(self, path: Argument, *content: Argument, private: bool = False) -> None:
        """Write a file anew; `private`: nobody but the user may read it."""
        ...

    # output

    def echo(self, text: str) -> None:
        """Print `text` and a newline."""
        ...

    def notice(self, text: str) -> None:
        """Print in bold green."""
        ...

    def warning(self, text: str) -> None:
        """Print in yellow."""
        ...

    def print(self, text: str) -> None:
        """Print in the default colour."""
        ...

    def empty(self) -> None:
        """Print an empty line."""
        ...

    def running_on(self, via: str) -> None:
        """Print which host the script runs on."""
        ...

    def section_start(self, name: str, options: str = "") -> None:
        """Print a section marker, no newline; `options` such as ``hide_duration=true,collapsed=true``."""
        ...

    def section_end(self, name: str) -> None:
        """Print the marker that ends a section."""
        ...


class Messages(ABC):
    """The line kinds of facts/job-lifecycle.md 5.2 for writers that have `echo`."""

    @abstractmethod
    def echo(self, text: str) -> None:
        """Print `text` and a newline."""

    def notice(self, text: str) -> None:
        """Print in bold green."""
        self.echo(f"{BOLD_GREEN}{text}{RESET}")

    def warning(self, text: str) -> None:
        """Print in yellow."""
        self.echo(f"{YELLOW}{text}{RESET}")

    def print(self, text: str) -> None:
        """Print in the default colour."""
        self.echo(f"{RESET}{text}")

    def empty(self) -> None:
        """Print an empty line."""
        self.echo("")
