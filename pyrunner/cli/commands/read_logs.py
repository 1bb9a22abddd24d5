"""``read-logs``: follow the log file of a job."""

from __future__ import annotations

from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation

_FLAGS = (
    Flag("path", help="the log file", metavar="FILE", complete="file"),
    Flag("offset", "int", help="where to begin, in bytes"),
    Flag("wait-file-timeout", "duration", help="how long to wait for the file to appear", default=1.0),
)


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper
    from pyrunner.helper.read_logs import LogReader

    reader = LogReader(call.text("path"), call.number("offset"), call.seconds("wait-file-timeout"))
    return run_helper(reader.run)


COMMAND = Command(
    "read-logs",
    "Read job logs from a file (internal)",
    _run,
    flags=_FLAGS,
    description="""
        Prints each line behind the offset that follows it in the file, and goes on for ever. Ends with exit code 100
        when the file is removed and 1 when it cannot be read.
    """,
    examples=[("read-logs --path /logs/output.log --wait-file-timeout 1m", "follow a log from its beginning")],
)
