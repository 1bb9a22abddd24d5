"""Logging for code that the helper commands run: the calls of `logging.Logger`, without its import.

``import logging`` takes as long as a bare Python takes to start, and a helper command runs for every cache and artifact
of every job. Its log is lines in the ``runner`` format on stderr and nothing else, so it writes them itself once
`write_lines` was called. In any other process the same calls go on to the standard library.
"""

from __future__ import annotations

import sys

from pyrunner.base.log_line import ERROR, FATAL, INFO, WARNING, runner_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Fields = Mapping[str, object]


class _Lines:
    """How this process writes lines itself; `level` is None while it does not."""

    level: int | None = None
    color = True


def write_lines(level: int, *, color: bool = True) -> None:
    """From now on write lines from `level` up to stderr, in the ``runner`` format."""
    _Lines.level, _Lines.color = level, color


class Log:
    """The log of one module: a constant message with ``%`` arguments, and fields in `extra`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, message: str, *arguments: object, extra: Fields | None = None) -> None:
        """Something that people want to know."""
        self.log(INFO, message, *arguments, extra=extra)

    def warning(self, message: str, *arguments: object, extra: Fields | None = None) -> None:
        """Something is not as it should be."""
        self.log(WARNING, message, *arguments, extra=extra)

    def error(self, message: str, *arguments: object, extra: Fields | None = None) -> None:
        """Something did not work."""
        self.log(ERROR, message, *arguments, extra=extra)

    def fatal(self, message: str, *arguments: object, extra: Fields | None = None) -> None:
        """The process ends because of this."""
        self.log(FATAL, message, *arguments, extra=extra)

    def log(self, level: int, message: str, *arguments: object, extra: Fields | None = None) -> None:
        """A line of any level."""
        if _Lines.level is None:
            import logging

            logging.getLogger(self._name).log(level, message, *arguments, extra=extra, stacklevel=2)
            return
        if level >= _Lines.level:
            text = message % arguments if arguments else message
            fields = {key: value for key, value in (extra or {}).items() if key != "action"}
            sys.stderr.write(runner_line(level, text, fields, color=_Lines.color) + "\n")
