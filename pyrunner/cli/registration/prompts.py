"""Questions on the terminal (facts/commands.md 5, "Prompts")."""

from __future__ import annotations

import sys

from pyrunner.base.errors import PyrunnerError


class Prompter:
    """Asks for values; without interaction it only checks that they are there.

    Questions go to stderr and answers come from stdin, so that stdout stays free and answers can be piped in.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive

    def ask(self, key: str, question: str, current: str, *, optional: bool = False, secret: bool = False) -> str:
        """The value of `key`: the answer, or `current` when the answer is empty.

        Args:
            optional: an empty value is fine.
            secret: the current value is not shown.

        Raises:
            PyrunnerError: a mandatory value is missing and nobody can be asked, or the input ended.
        """
        current = current.strip()
        if not self.interactive:
            if not current and not optional:
                raise PyrunnerError(f"The {key} needs to be entered", hint=f"give it with --{key}")
            return current
        while True:
            answer = self._answer(question, "*" * 8 if secret and current else current) or current
            if answer or optional:
                return answer

    def _answer(self, question: str, shown: str) -> str:
        sys.stderr.write(f"{question}\n{f'[{shown}]: ' if shown else ''}")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise PyrunnerError("Unexpected EOF. Did you mean to use --non-interactive?")
        return line.strip()
