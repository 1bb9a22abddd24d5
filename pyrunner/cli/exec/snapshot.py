"""The work tree as it is, uncommitted and untracked files included, as a commit in a bare repository of our own.

The user's repository is only read: git writes new objects to the bare repository, which borrows all others from the
user's (alternates), and works on a copy of the index. (The time of an object file is all that git may renew, when it
would have written the same object.) A work tree without changes gives the commit that is checked out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from pathlib import Path

from msgspec import Struct

from pyrunner.cli.exec.git import (
    CONFIG_QUESTION,
    HEAD_QUESTION,
    Git,
    Head,
    Repository,
    Settings,
    finish,
    parse_config,
    parse_head,
)

_AUTHOR = "pyrunner exec <pyrunner@localhost>"
_MESSAGE = "Work tree with uncommitted changes"
#: No writing to the user's directory by way of helpers, and no time for compression of what is read once.
_CONFIG = (
    "-c", "core.splitIndex=false", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false",
    "-c", "core.looseCompression=0", "-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false",
)  # fmt: skip


class Snapshot(Struct, frozen=True, kw_only=True):
    """A commit and what is known about it."""

    sha: str
    #: Name of the branch, empty on a detached HEAD.
    branch: str
    head: Head
    settings: Settings
    #: Whether the work tree differs from the commit that is checked out.
    changed: bool
    #: Whether the user's repository lacks older commits.
    shallow: bool


def take_snapshot(repository: Repository, bare: Path, ref: str) -> Snapshot:
    """Make the bare repository at `bare` and put the work tree into it as a commit under `ref` and under its branch.

    The same content on the same commit gives the same snapshot commit, so that a later fetch has nothing to do.

    Raises:
        PyrunnerError: git failed, e.g. because a file cannot be read.
        OSError: the bare repository cannot be written.
    """
    _make_bare(repository, bare)
    git = Git(repository.top)
    environment = {
        "GIT_INDEX_FILE": str(_copy_index(repository, bare)),
        "GIT_OBJECT_DIRECTORY": str(bare / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.objects.resolve()),
    }
    adding = git.start(*_CONFIG, "add", "--all", "--", ":/", env=environment)
    asking = git.start(*HEAD_QUESTION)
    configuring = git.start(*CONFIG_QUESTION)
    branching = git.start("symbolic-ref", "--quiet", "--short", "HEAD")
    head, settings = parse_head(asking), parse_config(configuring)
    branch = branching.communicate()[0].decode(errors="replace").strip()
    finish(adding)
    tree = git.run(*_CONFIG, "write-tree", env=environment).decode().strip()
    changed = tree != head.tree
    sha = head.sha
    if changed:
        parent = "" if settings.partial else head.sha
        sha = _write_commit(bare, repository.object_format, tree, parent, head.committed)
    _write_ref(bare, ref, sha)
    if branch:
        _write_ref(bare, f"refs/heads/{branch}", sha)
    return Snapshot(
        sha=sha, branch=branch, head=head, settings=settings, changed=changed, shallow=repository.shallow.exists()
    )


def _make_bare(repository: Repository, bare: Path) -> None:
    """A bare repository without the process that `git init` would be."""
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (bare / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    version = 1 if repository.object_format != "sha1" else 0
    config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
    if version:
        config += f"[extensions]\n\tobjectFormat = {repository.object_format}\n"
    # a job may fetch any commit of the branch by its id, and history that is not there is no error of the user
    config += "[uploadpack]\n\tallowAnySHA1InWant = true\n[gc]\n\tauto = 0\n"
    (bare / "config").write_text(config)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "objects/info/alternates").write_bytes(os.fsencode(repository.objects.resolve()) + b"\n")
    if repository.shallow.exists():
        shutil.copyfile(repository.shallow, bare / "shallow")


def _quoted(path: Path) -> str:
    """A path for GIT_ALTERNATE_OBJECT_DIRECTORIES, in which ``:`` separates and quotes protect it."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _copy_index(repository: Repository, bare: Path) -> Path:
    """A copy of the index with its time kept: git takes entries younger than the index for possibly changed."""
    copy = bare / "exec-index"
    copy.unlink(missing_ok=True)
    if repository.index.exists():
        shutil.copy2(repository.index, copy)
    return copy


def _write_commit(bare: Path, style: str, tree: str, parent: str, after: int) -> str:
    """Write a commit object; its time is that of the parent, so that it depends on nothing but content."""
    lines = [f"tree {tree}"]
    if parent:
        lines.append(f"parent {parent}")
    lines += [f"author {_AUTHOR} {after} +0000", f"committer {_AUTHOR} {after} +0000", "", _MESSAGE, ""]
    body = "\n".join(lines).encode()
    data = b"commit %d\0" % len(body) + body
    sha = hashlib.new("sha256" if style == "sha256" else "sha1", data, usedforsecurity=False).hexdigest()
    path = bare / "objects" / sha[:2] / sha[2:]
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(zlib.compress(data, 1))
    return sha


def _write_ref(bare: Path, ref: str, sha: str) -> None:
    path = bare / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(sha + "\n")
