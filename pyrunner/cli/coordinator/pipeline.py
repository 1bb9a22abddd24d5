"""Hands a pipeline of a git repository to the coordinator: the file, and the work tree as it is now."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyrunner.base.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pyrunner.cli.coordinator.client import CoordinatorClient

#: Seconds, for jobs without ``timeout``: GitLab's default.
_TIMEOUT = 3600


def make_pipeline(
    path: str, content: str, jobs: Sequence[str], client: CoordinatorClient, variables: Sequence[str]
) -> dict[str, Any]:
    """The body of ``POST pipelines``; the work tree is a commit in the coordinator's git directory afterwards.

    Raises:
        PipelineError: the file is wrong.
        PyrunnerError: it is not in a git repository, or git failed.
    """
    import msgspec

    from pyrunner.cli.exec.context import project_path, run_context
    from pyrunner.cli.exec.git import CONFIG_QUESTION, Git, find_repository, parse_config
    from pyrunner.cli.exec.snapshot import take_snapshot
    from pyrunner.pipeline.load import load_pipeline
    from pyrunner.server.submit import make_order

    overrides = dict(_pair(text) for text in variables)
    load_pipeline(content.encode(), path)
    repository = find_repository(Path(path).resolve().parent)
    settings = parse_config(Git(repository.top).start(*CONFIG_QUESTION))
    bare = Path(client.data_dir) / "git" / f"{project_path(repository.top, settings)}.git"
    # every pipeline has its own ref, so that a later one takes nothing away from its jobs
    ref = f"refs/pipelines/{time.time_ns():x}"
    borrowed = _alternates(bare)
    snapshot = take_snapshot(repository, bare, ref)
    _keep_alternates(bare, borrowed)
    context = run_context(
        repository.top,
        snapshot,
        server_url=client.url,
        overrides=overrides,
        timeout=_TIMEOUT,
        config_path=os.path.relpath(Path(path).resolve(), repository.top),
    )
    branches = [spec for spec in context.refspecs if "refs/heads/" in spec]
    context = msgspec.structs.replace(context, refspecs=(f"+{ref}:{ref}", *branches))
    order: dict[str, Any] = msgspec.to_builtins(make_order(content, path, jobs, context))
    return order


def _alternates(bare: Path) -> list[str]:
    try:
        return (bare / "objects/info/alternates").read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def _keep_alternates(bare: Path, before: list[str]) -> None:
    """Earlier pipelines may stand on another clone of the project."""
    now = _alternates(bare)
    both = list(dict.fromkeys([*now, *(path for path in before if os.path.isdir(path))]))
    if both != now:
        text = "".join(f"{path}\n" for path in both)
        (bare / "objects/info/alternates").write_text(text, errors="surrogateescape")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f'invalid value "{text}" for flag --variable: expected K=V')
    return name, value
