"""Putting entries into the target directory without leaving it and without ruining what was there.

An entry is judged before anything is written: names that are absolute or climb, and parents that lead out of the target
through links that are already there, are refused. A file replaces an earlier one only when its whole content has been
checked; until then the earlier file stays as it is.
"""

from __future__ import annotations

import os
import stat

from pyrunner.archive.errors import ArchiveError, UnsafeEntryError
from pyrunner.archive.notice import warn_about_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Set-user-ID and set-group-ID are not taken from an archive: it may have been made by someone else.
_FILE_BITS = 0o777
_DIRECTORY_BITS = 0o1777


class Meta:
    """What an entry says about itself apart from its content."""

    __slots__ = ("gid", "mode", "mtime", "name", "uid")

    def __init__(self, name: bytes, mode: int, mtime: float, uid: int = -1, gid: int = -1) -> None:
        self.name = name
        self.mode = mode
        self.mtime = mtime
        self.uid = uid
        self.gid = gid


class Target:
    """The directory that entries go to."""

    def __init__(self, root: str) -> None:
        self.shown = root
        self.root = os.path.realpath(os.fsencode(root))
        self._prefix = self.root.rstrip(b"/") + b"/"
        self._ours = (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else (-1, -1)
        self._safe_parents: set[bytes] = {b""}
        self._umask = os.umask(0o077)
        os.umask(self._umask)

    def check(self, entries: Iterable[Meta]) -> None:
        """Refuse a set of entries of which any would leave the target, or that contradict each other.

        The entries' names are in their normal form afterwards.

        Raises:
            UnsafeEntryError: naming the first such entry.
            ArchiveError: an entry is both a file and a directory.
        """
        leaves: set[bytes] = set()
        parents: set[bytes] = set()
        for entry in entries:
            name = entry.name = self.clean(entry.name)
            parent = name.rpartition(b"/")[0]
            if parent not in parents:
                self._check_parent(name, parent)
                parents.add(parent)
            if stat.S_ISDIR(entry.mode):
                if name not in parents:
                    self._check_parent(name, name)
                    parents.add(name)
            else:
                leaves.add(name)
        git = b".git" in leaves or any(name == b".git" or name.startswith(b".git/") for name in parents)
        while parents:
            if clash := parents & leaves:
                shown = min(clash).decode("utf-8", "backslashreplace")
                raise ArchiveError(f"{shown} is both a file and a directory in the archive")
            parents = {parent.rpartition(b"/")[0] for parent in parents} - {b""}
        if git:
            warn_about_git("extract")

    def clean(self, name: bytes) -> bytes:
        """The normal form of an entry's name; raises `UnsafeEntryError` for one that is absolute or climbs."""
        if not (b"/." in name or b"//" in name or name.startswith((b".", b"/")) or b"\0" in name):
            # nearly all names are plain, and each comes by here several times
            return name[:-1] if name.endswith(b"/") else name
        if name.startswith(b"/") or b"\0" in name:
            raise UnsafeEntryError(name, self.shown)
        parts = [part for part in name.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise UnsafeEntryError(name, self.shown)
        return b"/".join(parts)

    def path(self, name: bytes) -> bytes:
        """Where the entry goes."""
        return self._prefix + self.clean(name)

    def _check_parent(self, name: bytes, parent: bytes) -> None:
        """Refuse `name` when `parent`, as far as it exists, is reached through a link that leads out."""
        if parent in self._safe_parents:
            return
        real = os.path.realpath(os.path.join(self.root, parent))
        if real != self.root and not real.startswith(self.root.rstrip(b"/") + b"/"):
            raise UnsafeEntryError(name, self.shown)
        self._safe_parents.add(parent)

    def make_parents(self, entries: Iterable[Meta]) -> None:
        """Create the directories of directory entries and of all parents, with the default mode."""
        made: set[bytes] = set()
        for entry in entries:
            name = self.clean(entry.name)
            directory = name if stat.S_ISDIR(entry.mode) else name.rpartition(b"/")[0]
            if directory not in made:
                made.add(directory)
                try:
                    os.makedirs(os.path.join(self.root, directory), exist_ok=True)
                except OSError as error:
                    raise _failed(entry.name, error) from error

    def write_file(self, entry: Meta, data: bytes) -> None:
        """Create or replace a regular file with content that has been checked."""
        path = self.path(entry.name)
        try:
            fd = os.open(path, _NEW, entry.mode & _FILE_BITS)
            temporary = None
        except FileExistsError:
            temporary = _beside(path)
            fd = os.open(temporary, _NEW, 0o600)
        except OSError as error:
            raise _failed(entry.name, error) from error
        try:
            write_all(fd, data)
            self._finish(fd, entry, made_with_mode=temporary is None)
            if temporary is not None:
                _replace(temporary, path)
        except BaseException as error:
            _remove(temporary or path)
            if isinstance(error, OSError):
                raise _failed(entry.name, error) from error
            raise
        finally:
            os.close(fd)

    def open_large(self, entry: Meta) -> LargeFile:
        """A new file that takes its place when it is finished; use it as a context manager."""
        return LargeFile(self, entry)

    def write_link(self, entry: Meta, destination: bytes) -> None:
        """Create or replace a symbolic link. Call after all files have been written."""
        path = self.path(entry.name)
        try:
            _make_way(path)
            os.symlink(destination, path)
            self._own(path, entry)
            os.utime(path, (entry.mtime, entry.mtime), follow_symlinks=False)
        except (OSError, ValueError) as error:
            raise _failed(entry.name, error) from error

    def finish_directories(self, entries: Iterable[Meta]) -> None:
        """Give the directories mode and time: last of all, and the deepest first."""
        for entry in sorted(entries, key=lambda entry: entry.name, reverse=True):
            path = self.path(entry.name)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    self._own(fd, entry)
                    os.chmod(fd, entry.mode & _DIRECTORY_BITS)
                    os.utime(fd, (entry.mtime, entry.mtime))
                finally:
                    os.close(fd)
            except OSError as error:
                raise _failed(entry.name, error) from error

    def _finish(self, fd: int, entry: Meta, *, made_with_mode: bool) -> None:
        self._own(fd, entry)
        # most files have got their mode when they were made; a call less for each is a tenth of the whole work
        if not made_with_mode or entry.mode & _FILE_BITS & self._umask:
            os.fchmod(fd, entry.mode & _FILE_BITS)
        os.utime(fd, (entry.mtime, entry.mtime))

    def _own(self, what: int | bytes, entry: Meta) -> None:
        """Owner and group as far as we may: only root can give files away."""
        if entry.uid < 0 or (entry.uid, entry.gid) == self._ours or self._ours[0] != 0:
            return
        try:
            if isinstance(what, int):
                os.fchown(what, entry.uid, entry.gid)
            else:
                os.lchown(what, entry.uid, entry.gid)
        except OSError:
            return


class LargeFile:
    """A file that is written piece by piece under another name and renamed when it is whole."""

    def __init__(self, target: Target, entry: Meta) -> None:
        self._target = target
        self._entry = entry
        self._path = target.path(entry.name)
        self._temporary = _beside(self._path)
        self.fd = -1

    def __enter__(self) -> LargeFile:
        try:
            self.fd = os.open(self._temporary, _NEW, 0o600)
        except OSError as error:
            raise _failed(self._entry.name, error) from error
        return self

    def write(self, data: bytes) -> None:
        """Append."""
        try:
            write_all(self.fd, data)
        except OSError as error:
            raise _failed(self._entry.name, error) from error

    def write_at(self, data: bytes, offset: int) -> None:
        """Write at a place; safe from several threads."""
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self.fd, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise _failed(self._entry.name, error) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._target._finish(self.fd, self._entry, made_with_mode=False)
                _replace(self._temporary, self._path)
        except OSError as failure:
            error = failure
            raise _failed(self._entry.name, failure) from failure
        finally:
            os.close(self.fd)
            if error is not None:
                _remove(self._temporary)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, however many calls that takes."""
    written = os.write(fd, data) if data else 0
    if written < len(data):
        view = memoryview(data)[written:]
        while view:
            view = view[os.write(fd, view) :]


def _beside(path: bytes) -> bytes:
    # a fixed short name: the entry's own may already be as long as names can be
    return os.path.join(os.path.dirname(path), b".archive_" + os.urandom(8).hex().encode())


def _replace(temporary: bytes, path: bytes) -> None:
    # in one step: to remove the earlier file first takes five times as long on ext4, too
    try:
        os.replace(temporary, path)
    except IsADirectoryError:
        os.rmdir(path)  # only an empty one can go
        os.replace(temporary, path)


def _make_way(path: bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise
        os.rmdir(path)  # only an empty one can go


def _remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _failed(name: bytes, error: Exception) -> ArchiveError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ArchiveError(f"{name.decode('utf-8', 'backslashreplace')}: {reason}")
