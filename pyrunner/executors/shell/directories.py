"""Checks that a shell job can live where it should, before it starts: one clear line instead of a script's."""

from __future__ import annotations

import os
import pwd
import shutil
import sys

from pyrunner.base.errors import SystemFailure

_REASON = "runner_system_failure"
#: Names under which this program may be installed.
_PROGRAMS = ("pyrunner", "gitlab-runner")


def usable_directory(key: str, path: str, user: str = "") -> str:
    """`path` made absolute from the working directory, created if need be, and writable.

    A directory made for a system user belongs to that user.

    Raises:
        SystemFailure: it cannot be made or not be written.
    """
    path = os.path.abspath(path)
    try:
        _make(path, user)
    except OSError as error:
        raise SystemFailure(f'{key} "{path}" cannot be created: {error.strerror}', reason=_REASON) from error
    if not os.path.isdir(path):
        raise SystemFailure(f'{key} "{path}" is not a directory', reason=_REASON)
    if not user and not os.access(path, os.W_OK | os.X_OK):
        raise SystemFailure(f'{key} "{path}" is not writable for user {os.geteuid()}', reason=_REASON)
    return path


def _make(path: str, user: str) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(path, exist_ok=True)
    if user and os.geteuid() == 0:
        account = pwd.getpwnam(user)
        os.chown(path, account.pw_uid, account.pw_gid)


def check_user(user: str) -> None:
    """Whether jobs can run as the system user `user`.

    Raises:
        SystemFailure: there is no such user, or this process may not become another.
    """
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise SystemFailure(f'system user "{user}" does not exist', reason="runner_configuration_error") from None
    if os.geteuid() not in (0, account.pw_uid):
        raise SystemFailure(
            f'jobs can run as user "{user}" only when the runner runs as root', reason="runner_configuration_error"
        )


def check_program(name: str) -> None:
    """Whether the program `name` can be started.

    Raises:
        SystemFailure: it is nowhere on the PATH.
    """
    if shutil.which(name) is None:
        raise SystemFailure(f'shell "{name}" is not installed: no such program on the PATH', reason=_REASON)


def runner_command() -> str:
    """Path of this program for the scripts of a job; empty when it is not installed as a program."""
    beside_python = os.path.join(os.path.dirname(sys.executable), _PROGRAMS[0])
    for candidate in (sys.argv[0], beside_python, _PROGRAMS[0]):
        if os.path.basename(candidate) in _PROGRAMS and (path := shutil.which(candidate)):
            return os.path.abspath(path)
    return ""
