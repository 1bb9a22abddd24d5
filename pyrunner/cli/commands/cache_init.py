"""``cache-init``: open the permissions of cache directories."""

from __future__ import annotations

from pyrunner.cli.spec import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper
    from pyrunner.helper.cache_init import open_permissions

    return run_helper(lambda: open_permissions(call.arguments))


COMMAND = Command(
    "cache-init",
    "Change permissions of cache paths (internal)",
    _run,
    arguments="PATH…",
    description="Gives each path mode 0777. A path that cannot be changed is reported, the exit code stays 0.",
    examples=[("cache-init /cache", "let every user write to a fresh cache volume")],
    complete="dir",
)
