"""The frame of every helper command: its first line, and how it says that it failed."""

from __future__ import annotations

import os
import signal

from pyrunner.base.errors import EXIT_FATAL, PyrunnerError
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
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return work()
    except _TerminatedError:
        # what was begun has been cleaned up; end as the signal would have ended us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        return EXIT_FATAL
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
        return EXIT_FATAL
    finally:
        signal.signal(signal.SIGTERM, before)


class _TerminatedError(BaseException):
    """SIGTERM: files that are only half there are removed on the way up."""


def _terminate(number: int, frame: object) -> None:
    # a second one must not stop the cleaning up; SIGKILL still does
    signal.signal(number, signal.SIG_IGN)
    raise _TerminatedError
