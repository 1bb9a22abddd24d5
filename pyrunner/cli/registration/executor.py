"""Choosing the executor and what it cannot do without (facts/commands.md 5, prompts 6 to 10)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pyrunner.base.errors import ConfigError, PyrunnerError
from pyrunner.cli.registration.prompts import Prompter
from pyrunner.config.model import RunnerConfig
from pyrunner.config.sections import fit_to_executor
from pyrunner.executors.loader import executor_names, executor_provider

log = logging.getLogger(__name__)

_INVALID = "Invalid executor specified"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One value of an executor's table."""

    table: str
    attribute: str
    text: str
    optional: bool = False
    secret: bool = False

    @property
    def key(self) -> str:
        """Name of the flag."""
        return f"{self.table}-{self.attribute.replace('_', '-')}"


_IMAGE = Question(table="docker", attribute="image", text="Enter the default Docker image (for example, ruby:3.3):")
_WINDOWS_IMAGE = Question(
    table="docker",
    attribute="image",
    text="Enter the default Docker image (for example, mcr.microsoft.com/windows/servercore:1809):",
)
_SERVER = (
    Question(table="ssh", attribute="host", text="Enter the SSH server address (for example, my.server.com):"),
    Question(table="ssh", attribute="port", text="Enter the SSH server port (for example, 22):", optional=True),
)
_LOGIN = (
    Question(table="ssh", attribute="user", text="Enter the SSH user (for example, root):"),
    Question(
        table="ssh",
        attribute="password",
        text="Enter the SSH password (for example, docker.io):",
        optional=True,
        secret=True,
    ),
    Question(
        table="ssh",
        attribute="identity_file",
        text="Enter the path to the SSH identity file (for example, /home/user/.ssh/id_rsa):",
        optional=True,
    ),
)
_PARALLELS = Question(table="parallels", attribute="base_name", text="Enter the Parallels VM (for example, my-vm):")
_VIRTUALBOX = Question(table="virtualbox", attribute="base_name", text="Enter the VirtualBox VM (for example, my-vm):")
QUESTIONS: dict[str, tuple[Question, ...]] = {
    "docker": (_IMAGE,),
    "docker+machine": (_IMAGE,),
    "docker-autoscaler": (_IMAGE,),
    "docker-windows": (_WINDOWS_IMAGE,),
    "ssh": (*_SERVER, *_LOGIN),
    "parallels": (_PARALLELS, *_SERVER),
    "virtualbox": (_VIRTUALBOX, *_LOGIN),
}


def check_executor(name: str) -> None:
    """Refuse an executor that cannot be used.

    Raises:
        PyrunnerError: with the reason and the names that can.
    """
    try:
        executor_provider(name)
    except ConfigError as error:
        raise PyrunnerError(f"{_INVALID}: {error}") from None


def choose_executor(runner: RunnerConfig, prompter: Prompter) -> None:
    """Ask for the executor until it is one that can be used, then for what it needs."""
    question = f"Enter an executor: {', '.join(executor_names())}:"
    while True:
        runner.executor = prompter.ask("executor", question, runner.executor, optional=True)
        try:
            check_executor(runner.executor)
            break
        except PyrunnerError as error:
            if not prompter.interactive:
                raise
            log.error(_INVALID, extra={"error": str(error).removeprefix(f"{_INVALID}: ")})  # noqa: TRY400
            # the wrong value must not stand as the answer to an empty line
            runner.executor = ""
    fit_to_executor(runner)
    for question_ in QUESTIONS.get(runner.executor, ()):
        _ask(runner, question_, prompter)


def _ask(runner: RunnerConfig, question: Question, prompter: Prompter) -> None:
    table: Any = getattr(runner, question.table)
    value = prompter.ask(
        question.key,
        question.text,
        str(getattr(table, question.attribute)),
        optional=question.optional,
        secret=question.secret,
    )
    setattr(table, question.attribute, value)
