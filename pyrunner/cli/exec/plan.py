"""What `exec` was asked for: the file, the jobs, the variables, all checked before anything starts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from pyrunner.base.errors import PipelineError, UsageError
from pyrunner.cli.exec.git import Repository, find_repository
from pyrunner.cli.parse import Invocation
from pyrunner.pipeline.graph import Graph, choose
from pyrunner.pipeline.job import Pipeline
from pyrunner.pipeline.load import load_pipeline
from pyrunner.pipeline.variables import DEFAULT_TIMEOUT

DEFAULT_FILE = ".gitlab-ci.yml"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Plan(Struct, frozen=True, kw_only=True):
    """A checked request."""

    repository: Repository
    pipeline: Pipeline
    graph: Graph
    #: Path of the file, relative to the top of the repository where it is inside.
    config_path: str
    variables: dict[str, str]
    executor: str
    #: Of jobs that name none, and of the helper container; empty = there is no such image, and the official one.
    image: str
    helper_image: str
    concurrent: int
    #: Seconds for jobs without ``timeout``.
    timeout: int


def make_plan(call: Invocation) -> Plan:
    """Read and check everything.

    Raises:
        PyrunnerError: no repository, no file, a wrong file, unknown jobs, unusable flags.
    """
    variables = read_variables(call.items("variable"))
    timeout = int(call.seconds("timeout")) if "timeout" in call.given else DEFAULT_TIMEOUT
    if timeout < 1:
        raise UsageError("--timeout must be longer than a second")
    concurrent = call.number("concurrent") if "concurrent" in call.given else max(2, os.cpu_count() or 1)
    if concurrent < 1:
        raise UsageError("--concurrent must be at least 1")
    repository = find_repository(Path.cwd())
    path = Path(call.text("file")) if call.text("file") else repository.top / DEFAULT_FILE
    shown = os.path.relpath(path) if path.is_absolute() else str(path)
    pipeline = load_pipeline(read_file(path, shown), shown)
    return Plan(
        repository=repository,
        pipeline=pipeline,
        graph=choose(pipeline, call.arguments, call.text("stage"), alone=call.flag("no-needs")),
        config_path=_inside(path, repository.top),
        variables=variables,
        executor=call.text("executor"),
        image=call.text("image"),
        helper_image=call.text("helper-image"),
        concurrent=concurrent,
        timeout=timeout,
    )


def read_file(path: Path, shown: str) -> bytes:
    """The bytes of a pipeline file; `shown` is its name for messages.

    Raises:
        PipelineError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "" if path.name != DEFAULT_FILE else "exec runs this file; --file names another one"
        raise PipelineError("there is no such file", path=shown, hint=hint) from None
    except OSError as error:
        raise PipelineError(f"cannot be read: {error.strerror}", path=shown) from None


def read_variables(items: list[str]) -> dict[str, str]:
    """``K=V`` words as a mapping; later ones win.

    Raises:
        UsageError: not of this form.
    """
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not _NAME.fullmatch(key):
            # the value may be a secret: only the name is repeated
            raise UsageError(f"--variable {key}: expected NAME=VALUE")
        found[key] = value
    return found


def _inside(path: Path, top: Path) -> str:
    try:
        return str(path.resolve().relative_to(top.resolve()))
    except ValueError:
        return str(path)
