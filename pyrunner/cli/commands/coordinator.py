"""``pyrunner coordinator``: the runner API without GitLab."""

from __future__ import annotations

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyrunner.cli.parse import Invocation

_DATA_DIR = Flag(
    "data-dir",
    help="where the coordinator keeps its state (default: /var/lib/pyrunner/coordinator, or below ~/.local/share)",
    env=["PYRUNNER_COORDINATOR_DATA_DIR"],
    metavar="DIR",
    complete="dir",
)
_OUTPUT = Flag("output", help="text or json", choices=["text", "json"], default="text", strict_choices=True)
_TAGS = Flag("tag-list", "comma", "tags", metavar="A,B")


def _later(module: str, function: str) -> Callable[[Invocation], int]:
    """Import what a subcommand does when it is called."""

    def run(call: Invocation) -> int:
        from importlib import import_module

        work: Callable[[Invocation], int] = getattr(import_module(f"pyrunner.cli.coordinator.{module}"), function)
        return work(call)

    return run


def _incomplete(call: Invocation) -> int:
    raise UsageError("a subcommand is missing", hint=f"see: {call.program} coordinator --help")


_RUNNER = Command(
    "runner",
    "Create, list and delete runners",
    _incomplete,
    subcommands={
        "create": Command(
            "create",
            "Make a runner and print its token",
            _later("runners", "create"),
            flags=[
                _DATA_DIR,
                Flag("description", help="name of the runner"),
                _TAGS,
                Flag("run-untagged", "bool", "also run jobs without tags"),
                Flag("paused", "bool", "give it no jobs"),
                Flag("maximum-timeout", "int", "longest time of a job, in seconds", metavar="SECONDS"),
                Flag("quiet", "bool", "print the token only"),
                _OUTPUT,
            ],
            examples=[("coordinator runner create --tag-list linux,gpu", "a runner for tagged jobs")],
        ),
        "list": Command("list", "List runners", _later("runners", "list_runners"), flags=[_DATA_DIR, _OUTPUT]),
        "delete": Command(
            "delete",
            "Forget runners; their tokens are dead",
            _later("runners", "delete"),
            flags=[_DATA_DIR],
            arguments="RUNNER…",
            interspersed=True,
        ),
    },
)

COMMAND = Command(
    "coordinator",
    "Serve the runner API without GitLab",
    _incomplete,
    description=(
        "A small server that runners can register with and take jobs from: to try a runner, or to use one without "
        "GitLab. Its state is kept in one directory and survives a restart, running jobs included."
    ),
    subcommands={
        "serve": Command(
            "serve",
            "Serve until interrupted",
            _later("serve", "serve"),
            flags=[
                _DATA_DIR,
                Flag("host", help="address to listen on", default="127.0.0.1"),
                Flag("port", "int", "port to listen on; 0 takes a free one", default=8929),
            ],
            examples=[("coordinator serve", "serve on 127.0.0.1:8929")],
        ),
        "runner": _RUNNER,
        "submit": Command(
            "submit",
            "Queue a pipeline or a job",
            _later("submit", "submit"),
            flags=[
                _DATA_DIR,
                Flag("variable", "list", "variable of the pipeline", metavar="K=V"),
                Flag("tag-list", "comma", "tags of a job by itself", metavar="A,B"),
                _OUTPUT,
            ],
            arguments="FILE [JOB…]",
            description=(
                "FILE is a pipeline (.yml) in a git repository, whose work tree as it is now the jobs get, or a job "
                "payload as the runner API has it (JSON); - reads a payload from stdin. In texts of a payload "
                "@JOB_TOKEN@ and @JOB_ID@ are replaced when a runner takes the job."
            ),
            interspersed=True,
            complete="file",
        ),
        "jobs": Command("jobs", "List jobs", _later("jobs", "list_jobs"), flags=[_DATA_DIR, _OUTPUT]),
        "log": Command(
            "log",
            "Print the log of a job",
            _later("jobs", "log"),
            flags=[_DATA_DIR, Flag("follow", "bool", "go on until the job has ended", aliases=["f"])],
            arguments="JOB",
            interspersed=True,
        ),
        "cancel": Command(
            "cancel",
            "Cancel jobs",
            _later("jobs", "cancel"),
            flags=[_DATA_DIR, Flag("force", "bool", "at once, without after_script")],
            arguments="JOB…",
            interspersed=True,
        ),
        "artifacts": Command(
            "artifacts",
            "Save the artifacts of a job",
            _later("jobs", "artifacts"),
            flags=[
                _DATA_DIR,
                Flag("output", help="file to write, - for stdout", metavar="FILE", complete="file"),
                Flag("type", help="artifact type", default="archive"),
            ],
            arguments="JOB",
            interspersed=True,
        ),
    },
    examples=[
        ("coordinator serve", "start it"),
        ("coordinator submit job.json", "queue a job"),
        ("coordinator log 1 --follow", "watch it"),
    ],
)
