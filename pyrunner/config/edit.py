"""Changes of config.toml: only the text in question changes, the file is never half written, two writers take turns.

GitLab Runner writes the file anew from what it understood, and loses comments and keys that it does not know. tomlkit
keeps most of them, but deleting a ``[[runners]]`` entry with it also deletes the comment above the next one and moves
other tables (seen with 0.13). So entries are cut and inserted as text, at places that `positions` finds, and each
change is checked before it is written: the new text must parse to exactly the values that were meant.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyrunner.base.errors import ConfigError
from pyrunner.config.keys import field_of, names_of
from pyrunner.config.load import decoded_text, parse_config, parse_toml
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.config.save import config_text, is_written, runner_text, toml_key, toml_value

if TYPE_CHECKING:
    from pyrunner.config.positions import Entry, Outline

_NOT_IN_LINE = "runners is written as one inline value: write [[runners]] tables to have it changed by commands"


class ConfigEditor:
    """The text of a config file and changes of it. `existed` says whether there was a file."""

    def __init__(self, text: str, path: str, *, existed: bool) -> None:
        self.path = path
        self.existed = existed
        self.text = text if existed else config_text(Config())
        self._config: Config | None = None

    @property
    def config(self) -> Config:
        """The config as the text has it now (url and token expanded)."""
        if self._config is None:
            self._config = parse_config(self.text, path=self.path)
        return self._config

    def append_runner(self, runner: RunnerConfig) -> None:
        """Add an entry at the end of the file."""
        values = self._values()
        if "runners" in values:
            self._outline()
        entry = runner_text(runner)
        values.setdefault("runners", []).append(parse_toml(entry, "")["runners"][0])
        before = self.text if self.text.endswith("\n") or not self.text else f"{self.text}\n"
        self._change(f"{before}\n{entry}" if before else entry, values)

    def remove_runner(self, index: int) -> None:
        """Remove an entry: its header and all its tables; comments directly above the next entry stay."""
        values = self._values()
        del values["runners"][index]
        if not values["runners"]:
            del values["runners"]
        places = self._outline()
        text = self.text
        for start, end in reversed(_sections_of(places, index)):
            text = text[:start] + text[end:]
        self._change(text, values)

    def set_runner(self, index: int, key: str, value: object) -> None:
        """Set a plain key of an entry (`key` as TOML spells it); an unset value of a key that need not be written is
        removed."""
        name = next((known for known, attribute in names_of(RunnerConfig).items() if key in (known, attribute)), key)
        declared = field_of(RunnerConfig, name)
        values = self._values()
        entry = values["runners"][index]
        spelled = next((old for old in entry if old.casefold() == name.casefold()), name)
        if is_written(declared, value):
            text = toml_value(declared, value)
            entry[spelled] = parse_toml(f"value = {text}", "")["value"]
            self._change(self._assigned(index, spelled, text), values)
        elif spelled in entry:
            del entry[spelled]
            self._change(self._unassigned(index, spelled), values)

    def _assigned(self, index: int, name: str, value: str) -> str:
        places = self._outline()
        if (found := _own(places, ("runners", index, name))) is not None:
            return self.text[: found.value] + value + self.text[found.end :]
        inside = [entry for entry in places.entries if entry.path[:2] == ("runners", index)]
        header = next(entry for entry in inside if entry.header == "array" and len(entry.path) == 2)
        plain = [entry for entry in inside if not entry.header and _is_plain_in(places, entry, header)]
        last = plain[-1] if plain else header
        end = self.text.find("\n", last.end)
        indent = self.text[_line_start(self.text, last.start) : last.start] if plain else "  "
        line = f"{indent}{toml_key(name)} = {value}\n"
        return f"{self.text}\n{line}" if end < 0 else f"{self.text[: end + 1]}{line}{self.text[end + 1 :]}"

    def _unassigned(self, index: int, name: str) -> str:
        found = _own(self._outline(), ("runners", index, name))
        assert found is not None  # noqa: S101 - the values have it
        end = self.text.find("\n", found.end)
        return self.text[: _line_start(self.text, found.start)] + (self.text[end + 1 :] if end >= 0 else "")

    def _outline(self) -> Outline:
        from pyrunner.config.positions import outline

        places = outline(self.text)
        if not any(entry.header == "array" and entry.path == ("runners", 0) for entry in places.entries):
            raise ConfigError(_NOT_IN_LINE, path=self.path)
        return places

    def _values(self) -> dict[str, Any]:
        values = copy.deepcopy(parse_toml(self.text, self.path))
        if other := [key for key in values if key != "runners" and key.casefold() == "runners"]:
            raise ConfigError(f"[[{other[0]}]] must be spelled [[runners]] to be changed by commands", path=self.path)
        if not all(isinstance(entry, dict) for entry in values.get("runners", [])):
            raise ConfigError(_NOT_IN_LINE, path=self.path)
        return values

    def _change(self, text: str, meant: dict[str, Any]) -> None:
        if parse_toml(text, self.path) != meant:
            raise ConfigError("cannot be changed safely: edit it by hand", path=self.path)
        self.text = text
        self._config = None


@contextlib.contextmanager
def edit_config(path: str) -> Iterator[ConfigEditor]:
    """Change a config file; it is written when the block ends without an error and something changed.

    The block runs under an exclusive lock of the file's directory, so another pyrunner waits, and then reads what this
    one wrote. A new file gets mode 0600 and its directory 0700; an existing file keeps mode, owner and being a link.

    Raises:
        ConfigError: the file is broken or cannot be written.
    """
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    with _locked(directory, path):
        try:
            with open(target, "rb") as file:
                text, existed = decoded_text(file.read(), path), True
        except FileNotFoundError:
            text, existed = "", False
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
        editor = ConfigEditor(text, path, existed=existed)
        yield editor
        if not existed or editor.text != text:
            write_atomically(target, editor.text.encode(), shown=path)


@contextlib.contextmanager
def _locked(directory: str, path: str) -> Iterator[None]:
    import fcntl

    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        # the directory itself: a lock file would stay behind, and the config file is replaced under the lock
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(f"its directory cannot be used: {error.strerror}", path=path) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_atomically(path: str, content: bytes, *, shown: str = "", mode: int = 0o600) -> None:
    """Replace a file so that a reader, or a power cut, finds the old or the new content and nothing between.

    Raises:
        ConfigError: naming `shown`, or the path.
    """
    directory = os.path.dirname(path) or "."
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
        with open(handle, "wb") as file:
            _like(path, file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path, content)
        temporary = ""
        _sync_directory(directory)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=shown or path) from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _like(path: str, handle: int, mode: int) -> None:
    try:
        old = os.stat(path)
    except FileNotFoundError:
        os.fchmod(handle, mode)
        return
    os.fchmod(handle, stat.S_IMODE(old.st_mode))
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        # only root may give files away; for others the file becomes theirs, as with any editor
        with contextlib.suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)


def _replace(temporary: str, path: str, content: bytes) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # a file that is a mount point of its own (bind-mounted into a container) can only be written in place
        with open(path, "r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        os.unlink(temporary)


def _sync_directory(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _own(places: Outline, path: tuple[str | int, ...]) -> Entry | None:
    return next((entry for entry in places.entries if entry.path == path and not entry.header), None)


def _is_plain_in(places: Outline, entry: Entry, header: Entry) -> bool:
    """Whether `entry` is a line of the header's own section, not one of its sub-tables or inside a value."""
    if entry.start < header.start or places.text[_line_start(places.text, entry.start) : entry.start].strip():
        return False
    between = [other for other in places.entries if header.start < other.start <= entry.start]
    inside = any(other.value < entry.start < other.end for other in between if other is not entry)
    return not inside and not any(other.header for other in between)


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _sections_of(places: Outline, index: int) -> list[tuple[int, int]]:
    """The spans of an entry's sections, in order: usually one, more when other tables stand between them."""
    headers = [entry for entry in places.entries if entry.header]
    spans: list[tuple[int, int]] = []
    for position, entry in enumerate(headers):
        if entry.path[:2] != ("runners", index):
            continue
        start = _line_start(places.text, entry.start)
        follower = headers[position + 1] if position + 1 < len(headers) else None
        end = _with_comment(places.text, follower.start) if follower else len(places.text)
        if not spans or spans[-1][1] < start:
            start = _with_comment(places.text, entry.start) if len(entry.path) == 2 else start
            spans.append((start, end))
        else:
            spans[-1] = (spans[-1][0], end)
    return spans


def _with_comment(text: str, offset: int) -> int:
    """The start of the comment lines directly above the line at `offset`, which speak of it."""
    start = _line_start(text, offset)
    while start > 0:
        above = _line_start(text, start - 1)
        if not text[above:start].lstrip().startswith("#"):
            return start
        start = above
    return start
