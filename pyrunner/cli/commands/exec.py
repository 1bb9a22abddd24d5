"""``exec``: run the pipeline of the repository that we are in, with the very code of ``run``."""

from __future__ import annotations

import os
import sys

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyrunner.cli.exec.board import Row
    from pyrunner.cli.exec.display import Display
    from pyrunner.cli.exec.plan import Plan
    from pyrunner.cli.exec.rooms import Room
    from pyrunner.cli.parse import Invocation

FLAGS = (
    Flag("file", help="the pipeline file", aliases=["f"], metavar="FILE", complete="file"),
    Flag("stage", help="run the jobs of this stage", aliases=["s"], metavar="STAGE"),
    Flag("variable", "list", "a variable for all jobs, over those of the file; repeat", metavar="KEY=VALUE"),
    Flag("no-needs", "bool", "run the chosen jobs without those they need"),
    Flag("executor", help="what runs the jobs", default="shell", complete="executor"),
    Flag("image", help="with --executor docker: image of jobs that name none", metavar="IMAGE"),
    Flag("helper-image", help="with --executor docker: helper image; default: the official one", metavar="IMAGE"),
    Flag("concurrent", "int", "jobs at the same time; default: number of processors, at least 2"),
    Flag("timeout", "duration", "limit of jobs without a timeout of their own; default: 1h"),
    Flag("list", "bool", "list the jobs and run nothing"),
    Flag("dry-run", "bool", "show what would run, in order, and run nothing"),
    Flag(
        "logs",
        help="whose logs are shown",
        choices=["failed", "all", "none"],
        strict_choices=True,
        default="failed",
    ),
    Flag(
        "output",
        help="how results are written",
        aliases=["o"],
        choices=["text", "json"],
        strict_choices=True,
        default="text",
    ),
)

DESCRIPTION = """
Runs the jobs of .gitlab-ci.yml on this machine: it turns the work tree as it is, uncommitted and new files included,
into a commit that jobs clone, without touching index, branches or work tree; serves the runner API on loopback; and
starts a runner against it.

With JOBs or --stage, only these run, with what they need: their needs, or without needs the jobs whose artifacts they
download. Manual jobs run when they are named. Builds and caches are kept below ~/.cache/pyrunner/exec.

With --executor docker, jobs run in containers of the engine of this machine, with their image and services. The API is
then served on the address of the engine's bridge, to which other machines have no route by themselves; builds are
kept in volumes.

The exit code is 0 when the pipeline passes and 1 when it fails or is canceled.
"""


def run(call: Invocation) -> int:
    """Check everything, then list, show or run."""
    from pyrunner.cli.exec.plan import make_plan

    plan = make_plan(call)
    for notice in plan.pipeline.notices:
        sys.stderr.write(f"WARNING: {notice}\n")
    if call.flag("list") or call.flag("dry-run"):
        sys.stdout.write(_listing(plan, call))
        return 0
    return _run(plan, call)


def _listing(plan: Plan, call: Invocation) -> str:
    from pyrunner.cli.exec import listing

    if call.text("output") == "json":
        return listing.as_json(plan.graph, scripts=call.flag("dry-run"))
    return listing.dry_run_text(plan.graph) if call.flag("dry-run") else listing.list_text(plan.graph)


def _run(plan: Plan, call: Invocation) -> int:
    from pyrunner.cli.exec import rooms
    from pyrunner.cli.exec.containers import check_images
    from pyrunner.cli.exec.session import Session, traces
    from pyrunner.executors.loader import executor_provider
    from pyrunner.pipeline.schedule import State

    executor_provider(plan.executor)
    if not plan.graph.jobs:
        raise UsageError("there is no job to run")
    check_images(plan)
    with rooms.enter(plan.repository.top) as room:
        _set_up_logging(call, room)
        session = Session(plan, room, _display(call, room, traces(room)))
        return 0 if session.run() is State.SUCCESS else 1


def _display(call: Invocation, room: Room, trace: Callable[[Row], bytes]) -> Display:
    from pyrunner.cli.exec import display

    if call.text("output") == "json":
        return display.JsonDisplay(sys.stdout, room)
    terminal = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    color = terminal and "NO_COLOR" not in os.environ
    if terminal:
        from pyrunner.cli.exec.live import LiveDisplay

        return LiveDisplay(trace, call.text("logs"), color=color)
    return display.PlainDisplay(sys.stdout, trace, call.text("logs"), color=color)


def _set_up_logging(call: Invocation, room: Room) -> None:
    """The manager's own log lines go to a file unless somebody asked to see them."""
    if call.root.flag("debug") or "log-level" in call.root.given:
        return
    from pyrunner.base import logs

    descriptor = os.open(room.data / "manager.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    logs.setup("info", "text", os.fdopen(descriptor, "w", buffering=1))


COMMAND = Command(
    "exec",
    "Run the pipeline of this repository here",
    run,
    flags=FLAGS,
    arguments="[JOB…]",
    description=DESCRIPTION,
    examples=[
        ("exec", "run everything"),
        ("exec unit lint", "run two jobs and what they need"),
        ("exec --stage test --variable DEBUG=1", "run one stage with a variable"),
        ("exec --executor docker --image alpine:3", "run in containers"),
        ("exec --list", "see what is there"),
        ("exec --output json", "for programs"),
    ],
    interspersed=True,
    complete="job",
)
