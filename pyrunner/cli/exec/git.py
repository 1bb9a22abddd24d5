"""Questions to git about the user's repository, several at a time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from pyrunner.base.errors import PyrunnerError

#: What `git rev-parse --local-env-vars` lists: set inside hooks, and poison for every other repository.
LOCAL_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)


class Repository(Struct, frozen=True, kw_only=True):
    """Where the parts of the user's repository are."""

    top: Path
    objects: Path
    index: Path
    shallow: Path
    object_format: str


class Head(Struct, frozen=True, kw_only=True):
    """The commit that is checked out; an empty `sha` = there is none yet."""

    sha: str = ""
    tree: str = ""
    author: str = ""
    timestamp: str = ""
    committed: int = 0
    message: str = ""


class Settings(Struct, frozen=True, kw_only=True):
    """What the user's git configuration says that matters here."""

    user_name: str = ""
    user_email: str = ""
    remotes: Mapping[str, str] = field(default_factory=dict)
    default_branch: str = ""
    #: Some objects are only at a remote.
    partial: bool = False


class Git:
    """Runs git in one directory, reading only: no lock of the user's repository is ever taken."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start git without waiting for it."""
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})}
        try:
            return subprocess.Popen(
                ["git", "-C", str(self._directory), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
        except FileNotFoundError:
            raise PyrunnerError("git is not installed") from None

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> bytes:
        """What git writes to stdout.

        Raises:
            PyrunnerError: git failed.
        """
        return finish(self.start(*words, env=env))


def finish(process: subprocess.Popen[bytes]) -> bytes:
    """Wait for a git process; its output.

    Raises:
        PyrunnerError: it failed, with git's own last line.
    """
    output, errors = process.communicate()
    if process.returncode:
        raise PyrunnerError(f"git failed: {_last_line(errors)}")
    return output


def _last_line(errors: bytes) -> str:
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or ["no message"])[0].removeprefix("fatal: ").removeprefix("error: ")


def find_repository(directory: Path) -> Repository:
    """The repository whose work tree `directory` is in.

    Raises:
        PyrunnerError: it is in none, or in a bare one.
    """
    words = ["--show-toplevel", "--show-object-format"]
    for path in ("objects", "index", "shallow"):
        words += ["--git-path", path]
    process = Git(directory).start("rev-parse", *words)
    output, errors = process.communicate()
    if process.returncode:
        raise PyrunnerError(f"{directory}: {_last_line(errors)}", hint="exec runs the pipeline of a git repository")
    top, style, *paths = (Path(os.fsdecode(line)) for line in output.splitlines())
    objects, index, shallow = (directory / path for path in paths)
    return Repository(top=top, objects=objects, index=index, shallow=shallow, object_format=str(style))


def parse_head(process: subprocess.Popen[bytes]) -> Head:
    """Read the answer to `HEAD_QUESTION`; a repository without commits fails it, which is no error."""
    output, _ = process.communicate()
    if process.returncode:
        return Head()
    text = output.decode(errors="replace")
    sha, tree, author, timestamp, committed, message = text.split("\0", 5)
    return Head(
        sha=sha,
        tree=tree,
        author=author,
        timestamp=timestamp,
        committed=int(committed),
        message=message.rstrip("\n"),
    )


HEAD_QUESTION = (
    "-c", "log.showSignature=false", "log", "-1", "--no-color", "--format=%H%x00%T%x00%an <%ae>%x00%aI%x00%ct%x00%B",
)  # fmt: skip
CONFIG_QUESTION = (
    "config",
    "--null",
    "--get-regexp",
    r"^(user\.(name|email)|remote\..*\.(url|promisor)|init\.defaultbranch)$",
)


def parse_config(process: subprocess.Popen[bytes]) -> Settings:
    """Read the answer to `CONFIG_QUESTION`; no match at all is no error."""
    output, _ = process.communicate()
    found: dict[str, str] = {}
    for entry in output.decode(errors="replace").split("\0"):
        key, _, value = entry.partition("\n")
        found[key] = value
    remotes = {
        key.removeprefix("remote.").removesuffix(".url"): value
        for key, value in found.items()
        if key.startswith("remote.") and key.endswith(".url")
    }
    return Settings(
        user_name=found.get("user.name", ""),
        user_email=found.get("user.email", ""),
        remotes=remotes,
        default_branch=found.get("init.defaultbranch", ""),
        partial=any(key.endswith(".promisor") for key in found),
    )
