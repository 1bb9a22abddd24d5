"""What is said about archives that hold parts of a repository's own data."""

from __future__ import annotations

from pyrunner.base.light_log import Log

log = Log(__name__)


def warn_about_git(action: str) -> None:
    """Say once that a part of ``.git`` is about to be archived or extracted (`action`)."""
    log.warning("Part of .git directory is on the list of files to %s", action)
    log.warning("This may introduce unexpected problems")
