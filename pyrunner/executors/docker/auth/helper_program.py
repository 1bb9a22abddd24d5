"""Credential helpers: programs named ``docker-credential-<name>`` that keep passwords (facts/executors.md 6.9)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Any

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.docker.auth.book import CredentialError

PREFIX = "docker-credential-"
#: Seconds; some ask a cloud's server.
LIMIT = 60.0
#: In place of a user: the secret is an identity token.
TOKEN_USER = "<token>"  # noqa: S105 - the protocol's word, no secret
#: What a helper says, with an exit code that is not 0, when it has nothing.
_NOT_FOUND = "credentials not found in native keychain"
_LONGEST_MESSAGE = 200


@dataclass(frozen=True, kw_only=True)
class Secret:
    """Answer of a helper."""

    username: str
    secret: str = field(repr=False)

    @property
    def is_token(self) -> bool:
        """Whether the secret is an identity token."""
        return self.username == TOKEN_USER


class HelperProgram:
    """One ``docker-credential-*`` of this machine; started anew for every question.

    Raises:
        SystemFailure: ``runner_configuration_error``: `name` could leave the search path.
    """

    def __init__(self, name: str, token: CancelToken) -> None:
        if not name or any(character in name for character in ("/", "\\", "\0")):
            raise SystemFailure(
                f'credential helper "{name}": the name must not contain a path separator',
                reason="runner_configuration_error",
            )
        self.program = f"{PREFIX}{name}"
        self._token = token

    def get(self, server: str) -> Secret | None:
        """What it has for `server`, a key just as it stands in the config.

        Raises:
            CredentialError: it is not installed, fails, or answers nonsense.
            BaseException: the token's cause, when cancelled.
        """
        answer = self._ask("get", server)
        if answer is None:
            return None
        username, secret = answer.get("Username"), answer.get("Secret")
        if not isinstance(username, str) or not isinstance(secret, str):
            raise CredentialError(f"{self.program} get: the answer has no Username and Secret")
        return Secret(username=username, secret=secret)

    def servers(self) -> list[str]:
        """All that it has something for.

        Raises:
            CredentialError: as `get`.
            BaseException: the token's cause, when cancelled.
        """
        return list(self._ask("list", "") or {})

    def _ask(self, command: str, question: str) -> dict[str, Any] | None:
        code, output, errors = self._run(command, question)
        if code:
            if _NOT_FOUND in output:
                return None
            raise CredentialError(f"{self.program} {command}: exit code {code}: {_last_line(errors or output)}")
        try:
            answer = json.loads(output)
        except (ValueError, RecursionError) as error:
            raise CredentialError(f"{self.program} {command}: the answer is no JSON") from error
        if not isinstance(answer, dict):
            raise CredentialError(f"{self.program} {command}: the answer is no JSON object")
        return answer

    def _run(self, command: str, question: str) -> tuple[int, str, str]:
        self._token.raise_if_cancelled()
        try:
            process = subprocess.Popen(
                [self.program, command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A group of its own: whatever it starts ends with it and cannot hold its output open.
                start_new_session=True,
            )
        except OSError as error:
            raise CredentialError(f"{self.program}: {error.strerror}") from error
        limit = self._token.child(LIMIT, CredentialError(f"{self.program} {command}: no answer in {LIMIT:g} seconds"))
        forget = limit.on_cancel(lambda: _kill(process))
        try:
            output, errors = process.communicate(question.encode())
            limit.raise_if_cancelled()
        finally:
            forget()
            limit.close()
        return process.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_MESSAGE] if lines else "it says nothing"
