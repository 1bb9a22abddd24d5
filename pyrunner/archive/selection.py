"""Which files go into an archive: paths, globs, excludes and git's untracked files (facts/cache-artifacts.md 2.1)."""

from __future__ import annotations

import os
import stat

from pyrunner.archive import glob
from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.notice import warn_about_git
from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = Log(__name__)


class Selection:
    """The chosen files: relative path → its `os.stat_result` (of the link itself), in the order they were found."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, os.stat_result] = {}

    def sorted(self) -> list[tuple[str, os.stat_result]]:
        """The files by name."""
        return sorted(self.files.items())

    def newest(self) -> float:
        """Modification time of the newest file in seconds since the epoch; 0 without files."""
        return max((info.st_mtime for info in self.files.values()), default=0.0)


def select(
    root: str,
    paths: Sequence[str],
    *,
    excludes: Sequence[str] = (),
    untracked: bool = False,
    verbose: bool = False,
) -> Selection:
    """Find everything below `root` that `paths` name, and say in the log what was found.

    Paths are already expanded. Nothing outside `root` is ever taken.
    """
    chooser = _Chooser(os.path.realpath(root), excludes, verbose=verbose)
    for path in paths:
        chooser.take_path(path)
    if untracked:
        chooser.take_untracked()
    chooser.say_excluded()
    _warn_about_git(chooser.selection.files)
    return chooser.selection


class _Chooser:
    def __init__(self, root: str, excludes: Sequence[str], *, verbose: bool) -> None:
        self.selection = Selection(root)
        self._root = root
        self._verbose = verbose
        self._excludes: list[tuple[str, Callable[[str], bool]]] = []
        self._excluded: dict[str, int] = {}
        for pattern in excludes:
            try:
                self._excludes.append((pattern, glob.matcher(self._relative_pattern(pattern))))
            except glob.BadPatternError as error:
                log.warning("%s: %s", pattern, error)

    def take_path(self, path: str) -> None:
        if not path:
            log.warning("No matching files. Path is empty.")
            return
        relative = os.path.normpath(self._relative_pattern(path))
        if relative.split("/", 1)[0] == ".." or os.path.isabs(relative):
            log.warning("processPath: artifact path is not a subpath of project directory: %s", path)
            return
        found = 0
        try:
            for match in glob.find(self._root, relative):
                found += self._take_tree(match)
        except glob.BadPatternError as error:
            log.warning("%s: %s", path, error)
            return
        if found:
            log.info("%s: found %d matching artifact files and directories", path, found)
        else:
            log.warning(
                "%s: no matching files. Ensure that the artifact path is relative to the working directory (%s)",
                path,
                self._root,
            )

    def take_untracked(self) -> None:
        names = _untracked(self._root)
        found = sum(self._take_one(name) for name in names)
        if found:
            log.info("untracked: found %d files", found)
        else:
            log.warning("untracked: no files")

    def say_excluded(self) -> None:
        for pattern, count in self._excluded.items():
            log.info("%s: excluded %d files", pattern, count)

    def _relative_pattern(self, pattern: str) -> str:
        if not pattern.startswith("/"):
            return pattern
        for root in (self._root, os.environ.get("PWD", "")):
            if root and (pattern + "/").startswith(root.rstrip("/") + "/"):
                return pattern[len(root.rstrip("/")) + 1 :] or "."
        return pattern

    def _take_tree(self, path: str) -> int:
        """Take `path` and, when it is a directory, everything in it; returns how many."""
        start = os.path.join(self._root, path)
        if not self._is_inside(path, start):
            return 0
        found = self._take_one(path)
        if not os.path.isdir(start) or os.path.islink(start):
            return found
        waiting = [path]
        while waiting:
            directory = waiting.pop()
            prefix = "" if directory == "." else f"{directory}/"
            try:
                with os.scandir(os.path.join(self._root, directory)) as items:
                    for item in items:
                        found += self._take(prefix + item.name, item.stat(follow_symlinks=False))
                        if item.is_dir(follow_symlinks=False):
                            waiting.append(prefix + item.name)
            except OSError as error:
                log.warning("%s: %s", directory, error.strerror)
        return found

    def _is_inside(self, path: str, start: str) -> bool:
        if "/" not in path:
            return True
        parent = os.path.realpath(os.path.dirname(start))
        if (parent + "/").startswith(self._root.rstrip("/") + "/"):
            return True
        log.warning("%s: not supported: outside build directory", path)
        return False

    def _take_one(self, path: str) -> int:
        try:
            info = os.lstat(os.path.join(self._root, path))
        except FileNotFoundError:
            return 0
        except OSError as error:
            log.warning("%s: %s", path, error.strerror)
            return 0
        return self._take(path, info)

    def _take(self, path: str, info: os.stat_result) -> int:
        for pattern, matches in self._excludes:
            if matches(path):
                self._excluded[pattern] = self._excluded.get(pattern, 0) + 1
                return 0
        if path == ".":
            # the working directory itself is no entry of its own archive
            return 1
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            log.warning("File ignored: %s", path)
            return 0
        if self._verbose and path not in self.selection.files:
            log.info("%s", path)
        self.selection.files[path] = info
        return 1


def _untracked(root: str) -> list[str]:
    """What ``git ls-files -o`` lists: files that git does not track, the ignored ones included."""
    import subprocess

    command = ["git", "ls-files", "-o", "-z"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    except OSError as error:
        raise ArchiveError(f"untracked: cannot run git: {error.strerror}") from error
    if done.returncode:
        reason = os.fsdecode(done.stderr).strip().splitlines()
        log.warning("untracked: %s", reason[0] if reason else f"git exited with {done.returncode}")
        return []
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _warn_about_git(files: dict[str, os.stat_result]) -> None:
    if any(path == ".git" or path.startswith(".git/") for path in files):
        warn_about_git("archive")
