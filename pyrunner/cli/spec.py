"""What a command declares: flags, arguments, examples. Parser, help, man pages and completions all read this.

Nothing heavy is imported here: helper commands start with this module, and must start in the time of a bare Python.
That is why these are plain classes instead of dataclasses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyrunner.cli.parse import Invocation

#: Flag kinds. ``bool`` takes no separate value (``--x``, ``--x=false``); ``list`` and ``map`` repeat; ``comma`` is a
#: comma-separated list that a later use replaces; ``bool?`` and ``int?`` always take a value and tell unset from zero;
#: ``duration`` is Go's notation and is handed over in seconds (facts/config-toml.md, "Value syntax").
KINDS = (
    "text",
    "bool",
    "int",
    "float",
    "duration",
    "list",
    "map",
    "map-bool",
    "comma",
    "bool?",
    "int?",
    "json",
)


class Flag:
    """One flag.

    Args:
        name: long name without dashes; also the key under which commands read it.
        kind: one of `KINDS`.
        help: one line.
        env: environment variables that give the value when the flag is absent, first set one wins.
        default: value without flag and variable; by kind (``""``, False, 0, [], {}, None for ``bool?``/``int?``).
        aliases: other names, one letter or long.
        metavar: what the value is, in help.
        choices: allowed values, for help and completion; checked by the parser when `strict_choices`.
        complete: what completes the value: ``file``, ``dir``, ``runner``, ``job``, ``flag`` … (see `cli.complete`).
        hidden: left out of help and completion.
        section: heading in help; flags of one section stand together.
    """

    __slots__ = (
        "aliases", "choices", "complete", "default", "env", "help", "hidden", "kind", "metavar", "name", "section",
        "strict_choices",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str = "text",
        help: str = "",  # noqa: A002 - reads best at the declarations
        *,
        env: Sequence[str] = (),
        default: object = None,
        aliases: Sequence[str] = (),
        metavar: str = "",
        choices: Sequence[str] = (),
        strict_choices: bool = False,
        complete: str = "",
        hidden: bool = False,
        section: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self.env = tuple(env)
        self.default = zero(kind) if default is None else default
        self.aliases = tuple(aliases)
        self.metavar = metavar or ("" if kind == "bool" else _METAVARS[kind])
        self.choices = tuple(choices)
        self.strict_choices = strict_choices
        self.complete = complete
        self.hidden = hidden
        self.section = section

    @property
    def takes_value(self) -> bool:
        """Whether the flag is followed by a value."""
        return self.kind != "bool"


_METAVARS = {
    "text": "VALUE",
    "int": "N",
    "float": "X",
    "duration": "DURATION",
    "list": "VALUE",
    "map": "KEY:VALUE",
    "map-bool": "KEY:BOOL",
    "comma": "A,B",
    "bool?": "BOOL",
    "int?": "N",
    "json": "JSON",
}


def zero(kind: str) -> object:
    """The value of an unset flag of this kind; lists and maps are fresh."""
    if kind in ("list", "comma"):
        return []
    if kind in ("map", "map-bool"):
        return {}
    return {"text": "", "bool": False, "int": 0, "float": 0.0, "duration": 0.0}.get(kind)


class Command:
    """One command.

    Args:
        name: word on the command line.
        summary: one line for the list of commands.
        run: does the work and returns the exit code; errors are raised as `PyrunnerError`.
        flags: the flags, or a function that makes them (when making them needs an import).
        arguments: how arguments are shown in usage, e.g. ``[JOB…]``; empty = arguments are ignored like GitLab does.
        description: paragraphs for help and man page.
        examples: pairs of command line and explanation.
        interspersed: flags may follow arguments (our own commands; GitLab's stop at the first argument).
        subcommands: name → Command; then `run` is only called without one.
        complete: what completes the arguments.
        hidden: left out of help and completion.
    """

    __slots__ = (
        "_flags", "arguments", "complete", "description", "examples", "hidden", "interspersed", "name", "run",
        "subcommands", "summary",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        summary: str,
        run: Callable[[Invocation], int],
        *,
        flags: Sequence[Flag] | Callable[[], Sequence[Flag]] = (),
        arguments: str = "",
        description: str = "",
        examples: Sequence[tuple[str, str]] = (),
        interspersed: bool = False,
        subcommands: Mapping[str, Command] | None = None,
        complete: str = "",
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.run = run
        self._flags = flags
        self.arguments = arguments
        self.description = description
        self.examples = tuple(examples)
        self.interspersed = interspersed
        self.subcommands = dict(subcommands or {})
        self.complete = complete
        self.hidden = hidden

    @property
    def flags(self) -> tuple[Flag, ...]:
        """The declared flags."""
        return tuple(self._flags() if callable(self._flags) else self._flags)
