"""The frame of every helper command: its first line, and how it says that it failed."""

from __future__ import annotations

import logging
import os

from pyrunner.base.errors import PyrunnerError
from pyrunner.base.logs import FATAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


def run_helper(work: Callable[[], int]) -> int:
    """Say where we are, do `work`, and turn its errors into one fatal line in the job log; returns the exit code.

    Helper commands log in the ``runner`` format only, so that their lines fit into the job log: that is why errors are
    logged here and not left to the program's own frame.
    """
    say_platform()
    try:
        return work()
    except PyrunnerError as error:
        log.log(FATAL, "%s", error)
        if error.hint:
            log.info("%s", error.hint)
        return error.exit_code
    except OSError as error:
        name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        log.log(FATAL, "%s%s", name, error.strerror or error)
        return 1


def say_platform() -> None:
    """The first line of every helper command (facts/job-lifecycle.md 5.2)."""
    from pyrunner.base.host import goarch, goos
    from pyrunner.base.version import GITLAB_RUNNER_VERSION, REVISION

    log.info(
        "Runtime platform",
        extra={
            "arch": goarch(),
            "os": goos(),
            "pid": os.getpid(),
            "revision": REVISION,
            "version": GITLAB_RUNNER_VERSION,
        },
    )
