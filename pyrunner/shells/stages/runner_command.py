"""Guarded use of the helper commands (facts/cache-artifacts.md, head; facts/job-lifecycle.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.writer import ScriptWriter


@contextmanager
def guarded(writer: ScriptWriter, context: ScriptContext, action: str) -> Iterator[bool]:
    """Write the block only where the runner command exists; `action` begins the warning when it does not.

    Yields False when the executor has no runner command: then nothing may be written.
    """
    if not context.runner_command:
        writer.warning(f"{action} is not supported by this executor.")
        yield False
        return
    writer.if_program(context.runner_command)
    yield True
    writer.else_()
    writer.warning(f"Missing {context.runner_command}. {action} is disabled.")
    writer.end()


def file_arguments(paths: list[str], exclude: list[str], untracked: bool) -> list[str]:
    """``--path``, ``--exclude`` and ``--untracked``; empty when nothing would be selected."""
    if not paths and not untracked:
        return []
    arguments = [word for path in paths for word in ("--path", path)]
    arguments += [word for path in exclude for word in ("--exclude", path)]
    return [*arguments, "--untracked"] if untracked else arguments


def outcome_applies(when: str, *, success: bool) -> bool:
    """Whether an entry with this ``when`` is for jobs that ended so."""
    if when == "always":
        return True
    return when in ("", "on_success") if success else when == "on_failure"
