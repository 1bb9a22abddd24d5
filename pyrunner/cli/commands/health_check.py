"""``health-check``: wait until a service accepts connections."""

from __future__ import annotations

import os

from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper
    from pyrunner.helper.health_check import wait_for, what_to_watch

    return run_helper(lambda: wait_for(what_to_watch(call.items("port"), os.environ)))


COMMAND = Command(
    "health-check",
    "Check health for a specific address (internal)",
    _run,
    flags=[Flag("port", "list", help="port of this host to wait for; repeatable", aliases=["p"], metavar="PORT")],
    description="""
        Waits for all ports that are given. Without any, variables in the style of container links say where to look
        (SERVICE_TCP_ADDR, SERVICE_80_TCP_PORT), and the first port that answers is enough. There is no time limit.
    """,
    examples=[("health-check --port 5432", "wait for a database on this host")],
)
