"""Shells by name."""

from __future__ import annotations

from pyrunner.base.errors import SystemFailure
from pyrunner.shells.protocol import Shell

SHELL_NAMES = ("bash", "sh", "pwsh", "powershell")


def shell(name: str) -> Shell:
    """The shell called `name`.

    Raises:
        SystemFailure: not one of `SHELL_NAMES`; the runner's configuration is wrong.
    """
    if name in ("bash", "sh"):
        from pyrunner.shells.bash import PosixShell

        return PosixShell(name)
    if name in ("pwsh", "powershell"):
        from pyrunner.shells.powershell import PowerShell

        return PowerShell(name)
    raise SystemFailure(
        f'shell "{name}" is not known, expected one of: {", ".join(SHELL_NAMES)}',
        reason="runner_configuration_error",
    )
