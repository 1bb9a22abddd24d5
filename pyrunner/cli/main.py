"""The entry point: global options, the command, and how every error is said."""

from __future__ import annotations

import os
import sys

from pyrunner.base.errors import EXIT_CRASH, EXIT_FATAL, EXIT_INTERRUPTED, PyrunnerError, UsageError
from pyrunner.cli import registry
from pyrunner.cli.parse import HelpRequested, Invocation, parse
from pyrunner.cli.spec import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyrunner.cli.spec import Command

GLOBAL_FLAGS = (
    Flag(
        "cpuprofile",
        help="write a CPU profile to this file",
        env=["CPU_PROFILE"],
        metavar="FILE",
        complete="file",
    ),
    Flag("debug", "bool", "log at level debug and show tracebacks", env=["RUNNER_DEBUG"]),
    Flag(
        "log-format",
        help="format of log lines",
        env=["LOG_FORMAT"],
        choices=["runner", "text", "json"],
        default="runner",
    ),
    Flag(
        "log-level",
        help="lowest level that is logged",
        env=["LOG_LEVEL"],
        aliases=["l"],
        choices=["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"],
        default="info",
    ),
    Flag("version", "bool", "print the version", aliases=["v"]),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    program = os.path.basename(sys.argv[0]) or "pyrunner"
    if program == "__main__.py":
        program = "pyrunner"
    _open_missing_streams()
    try:
        code = _main(program, words)
        # here and not at the interpreter's end, where an error could only be shown as it is
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader of our output went away (`pyrunner … | head`): nothing is left to say
        code = EXIT_FATAL
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except (PyrunnerError, OSError) as error:
        code = _say(_said(error))
    _drop_unwritable()
    return code


def _open_missing_streams() -> None:
    """Put nothing in place of standard streams that the caller has closed.

    The next file or socket opened would get their number, and what is meant for a terminal would go there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _drop_unwritable() -> None:
    """What cannot be written is dropped: at its end the interpreter would try again and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), stream.fileno())


def _main(program: str, words: Sequence[str]) -> int:
    try:
        root = parse(GLOBAL_FLAGS, words, os.environ)
    except HelpRequested:
        return _program_help(program)
    root.program = program
    if root.flag("version"):
        return _version()
    name, *rest = root.arguments or ["help"]
    if name in ("help", "h"):
        return _help(program, rest)
    if name in registry.NOT_YET:
        raise UsageError(f"{program} {name}: {registry.NOT_YET[name]} is not available in this version.")
    if name not in registry.COMMANDS:
        raise UsageError(f"Command {name} not found.", hint=_did_you_mean(name))
    _set_up_logging(root, name)
    return _guarded(root, lambda: _dispatch(root, registry.load(name), name, rest))


def _dispatch(root: Invocation, command: Command, path: str, words: Sequence[str]) -> int:
    if command.subcommands and words and words[0] in command.subcommands:
        return _dispatch(root, command.subcommands[words[0]], f"{path} {words[0]}", words[1:])
    try:
        call = parse(command.flags, words, os.environ, interspersed=command.interspersed)
    except HelpRequested:
        from pyrunner.cli.help import command_help

        sys.stdout.write(command_help(root.program, command, path))
        return 0
    except UsageError as error:
        # GitLab prints the whole help here; two hundred lines would hide the one that matters
        hint = error.hint or f"see: {root.program} {path} --help"
        raise UsageError(f"Incorrect Usage: {error}", hint=hint) from None
    if command.subcommands and call.arguments:
        raise UsageError(
            f"Command {path} {call.arguments[0]} not found.", hint=f"one of: {', '.join(command.subcommands)}"
        )
    call.root = root
    call.program = root.program
    return command.run(call)


def _guarded(root: Invocation, work: Callable[[], int]) -> int:
    """Run `work` so that whatever it raises ends as one line; with ``--debug`` the traceback comes before it."""
    try:
        return _profiled(root.text("cpuprofile"), work) if root.text("cpuprofile") else work()
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        if root.flag("debug"):
            import traceback

            traceback.print_exc()
        raise _said(error) from error


def _said(error: Exception) -> PyrunnerError:
    if isinstance(error, PyrunnerError):
        return error
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        return PyrunnerError(f"{error.filename}: {text}" if error.filename else text)
    hint = "run again with --debug to see where"
    failure = PyrunnerError(f"internal error: {type(error).__name__}: {error}", hint=hint)
    failure.exit_code = EXIT_CRASH
    return failure


def _profiled(path: str, work: Callable[[], int]) -> int:
    import cProfile

    profile = cProfile.Profile()
    try:
        return profile.runcall(work)
    finally:
        profile.dump_stats(path)


def _set_up_logging(root: Invocation, name: str) -> None:
    from pyrunner.base.log_line import FORMATS, LEVELS

    level = "debug" if root.flag("debug") else root.text("log-level")
    style = root.text("log-format")
    if level not in LEVELS:
        raise UsageError(
            f'Error while setting up logging configuration: failed to parse log level: "{level}"',
            hint=f"one of: {', '.join(LEVELS)}",
        )
    if style not in FORMATS:
        raise UsageError(
            f'Error while setting up logging configuration: unknown log format "{style}", '
            f"expected one of: [{' '.join(FORMATS)}]"
        )
    if name in registry.HELPER_COMMANDS:
        import gc

        from pyrunner.base.light_log import write_lines

        # their work is short and makes no cycles; looking for some takes a twentieth of it
        gc.disable()
        write_lines(LEVELS[level], color="NO_COLOR" not in os.environ)
        return
    from pyrunner.base.logs import setup

    setup(level, style)


def _say(error: PyrunnerError) -> int:
    color = "NO_COLOR" not in os.environ and sys.stderr.isatty()
    start, end = ("\x1b[31;1m", "\x1b[0;m") if color else ("", "")
    hint = f"  {error.hint}\n" if error.hint else ""
    try:
        sys.stderr.write(f"{start}FATAL: {error}{end}\n{hint}")
    except OSError:
        return error.exit_code or EXIT_FATAL
    return error.exit_code


def _did_you_mean(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, registry.COMMANDS, 1)
    return f"did you mean {near[0]}?" if near else ""


def _program_help(program: str) -> int:
    from pyrunner.cli.help import program_help

    sys.stdout.write(program_help(program, GLOBAL_FLAGS))
    return 0


def _help(program: str, words: Sequence[str]) -> int:
    if not words:
        return _program_help(program)
    from pyrunner.cli.help import command_help

    if words[0] not in registry.COMMANDS:
        raise UsageError(f"Command {words[0]} not found.", hint=_did_you_mean(words[0]))
    command, path = registry.load(words[0]), words[0]
    for word in words[1:]:
        if word not in command.subcommands:
            raise UsageError(f"Command {path} {word} not found.")
        command, path = command.subcommands[word], f"{path} {word}"
    sys.stdout.write(command_help(program, command, path))
    return 0


def _version() -> int:
    from pyrunner.base.host import goarch, goos
    from pyrunner.base.version import GITLAB_RUNNER_VERSION, REVISION, VERSION

    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    sys.stdout.write(
        f"Version:      {GITLAB_RUNNER_VERSION}\n"
        f"Git revision: {REVISION}\n"
        f"Git branch:   pyrunner-{VERSION}\n"
        f"GO version:   python{python}\n"
        f"Built:        \n"
        f"OS/Arch:      {goos()}/{goarch()}\n"
        f"pyrunner:     {VERSION}\n"
    )
    return 0
