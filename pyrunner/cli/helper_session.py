"""The frame of every helper command: its first line, and how it says that it failed."""

from __future__ import annotations

import os

from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log
from pyrunner.cli.notice import runtime_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

log = Log(__name__)


def run_helper(work: Callable[[], int]) -> int:
    """Say where we are, do `work`, and turn its errors into one fatal line in the job log; returns the exit code.

    Helper commands log in the ``runner`` format only, so that their lines fit into the job log: that is why errors are
    logged here and not left to the program's own frame.
    """
    runtime_platform()
    try:
        return work()
    except PyrunnerError as error:
        log.fatal("%s", error)
        if error.hint:
            log.info("%s", error.hint)
        return error.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:
        name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        log.fatal("%s%s", name, error.strerror or error)
        return 1
