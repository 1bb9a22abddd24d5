"""A bare repository with commits, to serve to jobs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyrunner.server.queue_source import TOKEN_PLACEHOLDER

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
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        project: str = "group/project",
        files: Mapping[str, str | bytes] | None = None,
        branch: str = "main",
    ) -> None:
        self.project = project
        self.branch = branch
        self.root = Path(root) / "served"
        self.bare = self.root / f"{project}.git"
        self.work_tree = Path(root) / "work" / project
        self.work_tree.mkdir(parents=True)
        self._git(None, "init", "--quiet", "--bare", f"--initial-branch={branch}", str(self.bare))
        self._git(None, "init", "--quiet", f"--initial-branch={branch}", str(self.work_tree))
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
