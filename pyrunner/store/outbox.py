"""The ends of jobs that a server has yet to be told, on disk until it has.

Layout, directories for their owner only (0700) and files too (0600)::

    <home>/.pyrunner_key                            key of the letters
    <home>/.pyrunner/outbox/<place>/                one per runner machine: its system id
        .lock                                       held while directories of processes come and go
        <process>/                                  locked by the process as long as that lives
            <job id>-<random>/trace                 the whole log, masked
            <job id>-<random>/letter                verdict, token and server, sealed

The intent is written before the act: an entry is complete once its letter has its name, and over once that name is
gone. A process that starts takes over, by rename, the entries of those that are dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
from isal import isal_zlib

from pyrunner.base.kill_point import kill_point
from pyrunner.store.letter import Letter, decode, encode
from pyrunner.store.seal import Seal, SealError

log = logging.getLogger(__name__)

KEY_FILE = ".pyrunner_key"
LETTER, TRACE = "letter", "trace"
_FORMAT = b"pyrunner outbox 1\n"
_PIECE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One job's end in the outbox. One thread at a time."""

    path: str
    letter: Letter

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes of the log from `start`."""
        handle = os.open(os.path.join(self.path, TRACE), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(handle, length, start)
        finally:
            os.close(handle)

    def sync(self) -> None:
        """Make it outlive a crash of the machine, too: `Outbox.put` alone outlives that of the process."""
        parents = self.path, os.path.dirname(self.path)
        for path in (os.path.join(self.path, TRACE), os.path.join(self.path, LETTER), *parents):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def remove(self) -> None:
        """The server knows it; may be called twice."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, LETTER))
        kill_point("outbox.letter-removed")
        _remove_rest(self.path)


class Outbox:
    """The entries of this process, and those that it takes over from dead ones. Safe from any thread.

    Args:
        home: the directory of ``config.toml``, or another that survives the process.
        place: the runner's system id: machines that share `home` over a network must not take over from each other.
    """

    def __init__(self, home: str, place: str) -> None:
        self._home = os.path.abspath(home)
        self._place = os.path.join(self._home, ".pyrunner", "outbox", place)
        self._seal = Seal(os.path.join(self._home, KEY_FILE))
        self._lock = threading.Lock()
        self._own = ""
        self._own_lock = -1

    def directory(self) -> str:
        """Where this process keeps its entries; a good place for what will become one.

        Raises:
            OSError: it cannot be made.
        """
        with self._lock:
            if not self._own:
                self._open()
            return self._own

    def _open(self) -> None:
        os.makedirs(self._home, mode=0o700, exist_ok=True)
        outbox = os.path.dirname(self._place)
        for directory in (os.path.dirname(outbox), outbox, self._place):
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, 0o700)
        with self._coming_and_going():
            own = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self._place)
            self._own_lock = os.open(own, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._own_lock, fcntl.LOCK_EX)
            self._own = own

    def warm_up(self) -> None:
        """Make ready for `put`, so that the first job does not have to.

        Raises:
            OSError, SealError: as `put` would.
        """
        self.directory()
        self._seal.load()

    def put(self, letter: Letter, save_trace: Callable[[str], object]) -> Entry:
        """Keep `letter`, and the log that `save_trace` writes to the path that it is given.

        Costs 0.1 ms: what the process has written outlives its death, and only `Entry.sync` waits for the disk.

        Raises:
            OSError, SealError: it could not be kept; nothing of it is left.
        """
        path = os.path.join(self.directory(), f"{letter.job_id}-{os.urandom(4).hex()}")
        os.mkdir(path, 0o700)
        try:
            save_trace(os.path.join(path, TRACE))
            kill_point("outbox.log-saved")
            self._write(path, letter)
        except BaseException:
            _remove_rest(path)
            raise
        return Entry(path=path, letter=letter)

    def update(self, entry: Entry, letter: Letter) -> Entry:
        """Put another letter in the place of an entry's own.

        Raises:
            OSError, SealError: the old one stays.
        """
        self._write(entry.path, letter)
        return Entry(path=entry.path, letter=letter)

    def _write(self, path: str, letter: Letter) -> None:
        sealed = _FORMAT + self._seal.seal(encode(letter), _FORMAT)
        temporary = os.path.join(path, f"{LETTER}.new")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            if file.write(sealed) != len(sealed):
                raise OSError("the disk is full")
        os.rename(temporary, os.path.join(path, LETTER))

    def adopt(self) -> list[Entry]:
        """Take over what dead processes left; an entry that cannot be read costs one log line, and stays.

        Raises:
            OSError: the outbox cannot be used.
        """
        own = self.directory()
        names: list[str] = []
        with self._coming_and_going():
            for process in sorted(os.listdir(self._place)):
                path = os.path.join(self._place, process)
                if path != own and os.path.isdir(path):
                    names += _take_over(path, own)
        entries = [self._load(os.path.join(own, name)) for name in names]
        return sorted((entry for entry in entries if entry), key=lambda entry: entry.letter.decided_at)

    def _load(self, path: str) -> Entry | None:
        try:
            with open(os.path.join(path, LETTER), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            # its writer died before the letter was whole, or after the server knew it
            _remove_rest(path)
            return None
        except OSError as error:
            _say_unreadable(path, error.strerror or str(error))
            return None
        try:
            return Entry(path=path, letter=_as_it_is(self._unsealed(content), path))
        except (OSError, SealError, msgspec.DecodeError) as error:
            _say_unreadable(path, str(error))
            return None

    def _unsealed(self, content: bytes) -> Letter:
        if not content.startswith(_FORMAT):
            raise SealError("not a letter of this version")
        return decode(self._seal.open(content[len(_FORMAT) :], _FORMAT))

    def close(self) -> None:
        """Let go of everything: what is still in it is for the next process."""
        with self._lock:
            if self._own_lock < 0:
                return
            with contextlib.suppress(OSError), self._coming_and_going():
                os.rmdir(self._own)
            os.close(self._own_lock)
            self._own, self._own_lock = "", -1

    @contextlib.contextmanager
    def _coming_and_going(self) -> Iterator[None]:
        handle = os.open(os.path.join(self._place, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def state_home(environment: Mapping[str, str]) -> str:
    """Where programs of this user keep what outlives them, when no config file says where."""
    base = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "pyrunner")


def _take_over(process: str, own: str) -> list[str]:
    """Move the entries of the directory `process` to `own` unless its process lives; their names."""
    handle = os.open(process, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return []
    else:
        names = sorted(os.listdir(process))
        for name in names:
            os.rename(os.path.join(process, name), os.path.join(own, name))
            kill_point("outbox.adopted")
        os.rmdir(process)
        return names
    finally:
        os.close(handle)


def _as_it_is(letter: Letter, path: str) -> Letter:
    """The letter with size and checksum of the log that is there: a crash of the machine may have cut it.

    A verdict with half a log is better than none.
    """
    size, crc = 0, 0
    with contextlib.suppress(FileNotFoundError), open(os.path.join(path, TRACE), "rb") as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            crc = isal_zlib.crc32(piece, crc)
    checksum = f"crc32:{crc:08x}"
    if (size, checksum) == (letter.size, letter.checksum):
        return letter
    log.error(
        "The log of a job in the outbox is damaged; what there is of it is sent",
        extra={"action": "outbox_damaged", "job": letter.job_id, "bytesize": size, "expected": letter.size},
    )
    return msgspec.structs.replace(letter, size=size, checksum=checksum, offset=0)


def _say_unreadable(path: str, why: str) -> None:
    log.error("Cannot read an entry of the outbox", extra={"action": "outbox_unreadable", "path": path, "error": why})


def _remove_rest(path: str) -> None:
    for name in (f"{LETTER}.new", TRACE):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(path, name))
    with contextlib.suppress(OSError):
        os.rmdir(path)
