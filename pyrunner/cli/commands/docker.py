"""``pyrunner docker``: what the docker executor has made in its engines."""

from __future__ import annotations

from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyrunner.cli.parse import Invocation


def _later(function: str) -> Callable[[Invocation], int]:
    def run(call: Invocation) -> int:
        from importlib import import_module

        result: int = getattr(import_module("pyrunner.cli.docker.objects"), function)(call)
        return result

    return run


def run(call: Invocation) -> int:
    """Without a subcommand there is nothing to do.

    Raises:
        UsageError: always.
    """
    from pyrunner.base.errors import UsageError

    raise UsageError("pyrunner docker: expected a subcommand: ls, prune")


_ENGINE = [
    Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
    Flag("host", help="look at this engine only", metavar="ADDRESS"),
    Flag("output", help="text or json", choices=["text", "json"], strict_choices=True, default="text"),
]

COMMAND = Command(
    "docker",
    "Show and remove what docker jobs have made",
    run,
    subcommands={
        "ls": Command(
            "ls",
            "List containers, volumes and networks that pyrunner has made",
            _later("list_objects"),
            flags=[
                *_ENGINE,
                Flag("leftovers", "bool", "only what nobody will come back for"),
                Flag("size", "bool", "sizes of cache volumes, too; the engine takes a while for them"),
            ],
            description=(
                "STANDING is `in use` while the process lives that made the object, `leftover` when it is gone, "
                "`unknown` when it cannot be seen from here (another machine or container), `cache` for volumes that "
                "later jobs use. Objects of GitLab Runner and of everybody else are not shown."
            ),
            examples=[("docker ls", "everything"), ("docker ls --leftovers --output json", "for programs")],
        ),
        "prune": Command(
            "prune",
            "Remove leftovers, and cache volumes that are not worth their space",
            _later("prune"),
            flags=[
                *_ENGINE,
                Flag("dry-run", "bool", "only show what would be removed"),
                Flag("budget", help="remove the least recently used cache volumes beyond this size", metavar="SIZE"),
                Flag("unused-for", "duration", "remove cache volumes that have not been used for so long"),
                Flag("caches", "bool", "remove all cache volumes that are not in use"),
                Flag("unknown", "bool", "also remove what belongs to processes that cannot be seen from here"),
            ],
            description=(
                "Without further flags only leftovers go: what belongs to processes that are gone. A cache volume "
                "that a container has, or that a job has used within the last ten minutes, is never removed. SIZE is "
                "a number with a unit: 10GB, 512MiB."
            ),
            examples=[
                ("docker prune --dry-run", "what has been left behind?"),
                ("docker prune --budget 20GB", "keep the 20 GB of caches that were used last"),
                ("docker prune --unused-for 168h", "forget caches that no job has used for a week"),
            ],
        ),
    },
    examples=[("docker ls", "what is there"), ("docker prune --dry-run", "what would go")],
)
