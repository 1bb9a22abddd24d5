"""What jobs are told about the run: names and numbers as a server would give them, taken from git."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyrunner.cli.exec.git import Settings
from pyrunner.cli.exec.snapshot import Snapshot
from pyrunner.pipeline.variables import RunContext, slug

#: The ref that the snapshot is served under.
REF = "refs/pipelines/1"
_REMOTE = re.compile(r"(?!file:)(?:\w+://[^/]+/|(?:[^@/]+@)?[^:/]+:)(?P<path>[^?#]+?)(?:\.git)?/*")
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")


def project_path(top: Path, settings: Settings) -> str:
    """``group/name``: from the remote ``origin`` (or the first one), else ``local/<directory>``."""
    remotes = settings.remotes
    url = remotes.get("origin") or next(iter(remotes.values()), "")
    match = _REMOTE.fullmatch(url)
    if match and _PATH.fullmatch(match["path"].strip("/")):
        return match["path"].strip("/")
    return f"local/{slug(top.name) or 'project'}"


def run_context(
    top: Path,
    snapshot: Snapshot,
    *,
    server_url: str,
    overrides: Mapping[str, str],
    timeout: int,
    config_path: str,
) -> RunContext:
    """The `RunContext` of a run of `snapshot`."""
    settings, head = snapshot.settings, snapshot.head
    refspecs = [f"+{REF}:{REF}"]
    if snapshot.branch:
        refspecs.append(f"+refs/heads/{snapshot.branch}:refs/remotes/origin/{snapshot.branch}")
    return RunContext(
        server_url=server_url,
        project_path=project_path(top, settings),
        ref=snapshot.branch,
        sha=snapshot.sha,
        message=head.message,
        author=head.author,
        timestamp=head.timestamp,
        created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        default_branch=settings.default_branch or snapshot.branch or "main",
        user_name=settings.user_name,
        user_email=settings.user_email,
        refspecs=tuple(refspecs),
        shallow=snapshot.shallow,
        timeout=timeout,
        overrides=overrides,
        config_path=config_path,
        hash_files=file_hasher(top),
    )


def file_hasher(top: Path) -> Callable[[Sequence[str]], str]:
    """Fingerprints of files of the work tree, for ``cache:key:files``."""

    def fingerprint(names: Sequence[str]) -> str:
        digest = hashlib.sha256()
        found = False
        for name in sorted(names):
            path = top / name
            if path.is_file():
                digest.update(name.encode() + b"\0" + path.read_bytes())
                found = True
        return digest.hexdigest()[:40] if found else ""

    return fingerprint
