"""The flags that `register` and `run-single` share: one for every key of ``[[runners]]`` that has one."""

from __future__ import annotations

import socket

from pyrunner.cli.parse import Invocation
from pyrunner.cli.spec import Flag
from pyrunner.config.flags import FlagKey, build_runner, flag_keys
from pyrunner.config.model import RunnerConfig


def runner_flags() -> list[Flag]:
    """All of them, in the order of the file; ``--name`` defaults to the host name."""
    return [_flag(key) for key in flag_keys()]


def apply_flags(invocation: Invocation) -> RunnerConfig:
    """The entry that the flags and variables of a call describe (see `build_runner`).

    Raises:
        UsageError: a value does not fit its key.
    """
    return build_runner(invocation.values, invocation.given)


def _flag(key: FlagKey) -> Flag:
    return Flag(
        key.name,
        key.kind,
        key.help,
        env=[key.env] if key.env else [],
        default=socket.gethostname() if key.path == ("name",) else None,
        aliases=key.aliases,
        choices=key.choices,
        complete=_completion(key.name),
        section="" if key.section == "runner" else key.section,
    )


def _completion(name: str) -> str:
    if name.endswith(("-file", "-exec")):
        return "file"
    return "dir" if name.endswith(("-dir", "cert-path")) else ""
