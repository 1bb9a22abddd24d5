"""One line of the ``runner`` log format, and the levels by name (facts/commands.md, "Log line formats")."""

from __future__ import annotations

RESET = "\x1b[0;m"
#: The standard library's numbers, with marks for levels below debug and above error that it lacks.
TRACE, DEBUG, INFO, WARNING, ERROR, FATAL, PANIC = 5, 10, 20, 30, 40, 50, 60

LEVELS = {
    "trace": TRACE,
    "debug": DEBUG,
    "info": INFO,
    "warn": WARNING,
    "warning": WARNING,
    "error": ERROR,
    "fatal": FATAL,
    "panic": PANIC,
}
FORMATS = ("runner", "text", "json")

_STYLES = {
    DEBUG: ("\x1b[37;1m", ""),
    WARNING: ("\x1b[0;33m", "WARNING: "),
    ERROR: ("\x1b[31;1m", "ERROR: "),
    FATAL: ("\x1b[31;1m", "FATAL: "),
    PANIC: ("\x1b[31;1m", "PANIC: "),
}


def runner_line(level: int, message: str, fields: dict[str, object], *, color: bool = True) -> str:
    """One line, without newline: the form that job logs and terminals show.

    The message is padded to 50 columns including its prefix, one space follows the reset and each field adds another.
    Without `color` the escape sequences and trailing space are left out.
    """
    start, prefix = _STYLES.get(level, ("", ""))
    text = f"{prefix}{message:<{50 - len(prefix)}}"
    if not color:
        pairs = "".join(f" {key}={value}" for key, value in sorted(fields.items()))
        return f"{text} {pairs}".rstrip()
    line = f"{start}{text}{RESET} "
    for key, value in sorted(fields.items()):
        line += f" {start}{key}{RESET}={value}"
    return line
