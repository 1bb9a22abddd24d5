"""A bare repository with commits, to serve to jobs."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyrunner.server.queue_source import TOKEN_PLACEHOLDER
from pyrunner.testing.lfs import object_path, pointer

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.com",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class GitRepository:
    """``<root>/<project>.git`` and a work tree that commits are made in.

    Args:
        root: an existing directory; hand it to the server as its `git_root`.
        project: path of the project, e.g. ``group/project``.
        files: content of the first commit by path.
        branch: name of the branch.
        object_format: ``sha1`` or ``sha256``.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        project: str = "group/project",
        files: Mapping[str, str | bytes] | None = None,
        branch: str = "main",
        object_format: str = "sha1",
    ) -> None:
        self.project = project
        self.branch = branch
        self.root = Path(root) / "served"
        self.bare = self.root / f"{project}.git"
        self.work_tree = Path(root) / "work" / project
        self.work_tree.mkdir(parents=True)
        self.object_format = object_format
        options = ("--quiet", f"--initial-branch={branch}", f"--object-format={object_format}")
        self._git(None, "init", "--bare", *options, str(self.bare))
        self._git(None, "init", *options, str(self.work_tree))
        self.git("remote", "add", "origin", str(self.bare))
        self.first_sha = self.commit(files or {"README.md": "hello\n"})

    def commit(self, files: Mapping[str, str | bytes], message: str = "change") -> str:
        """Commit and push these files; returns the commit's id."""
        for name, content in files.items():
            path = self.work_tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        self.git("push", "--quiet", "origin", self.branch)
        return self.sha

    def commit_lfs(self, files: Mapping[str, bytes]) -> str:
        """Commit pointers to Git LFS objects with these contents; returns the commit's id."""
        pointers = {".gitattributes": "".join(f"/{name} filter=lfs diff=lfs merge=lfs -text\n" for name in files)}
        for name, content in files.items():
            oid = hashlib.sha256(content).hexdigest()
            path = object_path(self.bare, oid)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            pointers[name] = pointer(oid, len(content))
        return self.commit(pointers)

    def add_submodule(self, path: str, repository: GitRepository, url: str) -> str:
        """Commit `repository` as a submodule at `path` that names it by `url`; returns the commit's id."""
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(repository.bare), path)
        self.git("config", "-f", ".gitmodules", f"submodule.{path}.url", url)
        return self.commit({})

    def push(self, *refspecs: str) -> None:
        """Push these refs, such as ``HEAD:refs/merge-requests/1/head``."""
        self.git("push", "--quiet", "origin", *refspecs)

    def tag(self, name: str) -> None:
        """Tag the last commit."""
        self.git("tag", name)
        self.git("push", "--quiet", "origin", name)

    @property
    def sha(self) -> str:
        """The last commit."""
        return self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        """Run git in the work tree; returns what it prints."""
        return self._git(self.work_tree, *words)

    def git_info(self, url: str, *, depth: int = 20) -> dict[str, Any]:
        """``git_info`` of a job payload for the last commit, served from `url`."""
        scheme, _, host = url.partition("://")
        return {
            "repo_url": f"{scheme}://gitlab-ci-token:{TOKEN_PLACEHOLDER}@{host}/{self.project}.git",
            "ref": self.branch,
            "sha": self.sha,
            "before_sha": "0" * 40,
            "ref_type": "branch",
            "refspecs": [f"+refs/heads/{self.branch}:refs/remotes/origin/{self.branch}"],
            "depth": depth,
            "repo_object_format": self.object_format,
        }

    @staticmethod
    def _git(directory: Path | None, *words: str) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words],
            cwd=directory,
            env=environment | _IDENTITY,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout.strip()
