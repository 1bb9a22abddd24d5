"""A private file that a download goes to until it is whole."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.helper.meter import Meter


class DownloadFile:
    """A sink for `HttpClient.request`; leaving the context removes the file unless `keep_as` has moved it.

    Args:
        directory: where; it is made when it is missing.
        prefix: of the name.
        meter: counts what arrives.
        nameless: give the name up at once: nothing is left behind even by a process that is killed.
    """

    def __init__(self, directory: str, prefix: str, meter: Meter, *, nameless: bool = False) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.path = os.path.join(directory, f"{prefix}{os.urandom(8).hex()}")
        self.meter = meter
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._file = open(os.open(self.path, flags, 0o600), "wb", buffering=0)  # noqa: SIM115
        self._named = True
        if nameless:
            self._forget_name()

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        """Append."""
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.meter.add(len(data))
        return len(data)

    def write_at(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write at a place, whatever the current one; safe from several threads. Not counted by the meter."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file.fileno(), view, offset)
            view, offset = view[written:], offset + written

    def seek(self, offset: int, /) -> int:
        """Go to a place."""
        return self._file.seek(offset)

    def tell(self) -> int:
        """The place we are at."""
        return self._file.tell()

    def truncate(self) -> int:
        """Forget everything from here on."""
        return self._file.truncate()

    def fileno(self) -> int:
        """The descriptor; what was written can be read from it."""
        return self._file.fileno()

    def restart(self) -> None:
        """Begin again with an empty file."""
        self._file.seek(0)
        self._file.truncate()
        self.meter.restart()

    def keep_as(self, path: str, mtime: float | None) -> None:
        """Make this the file at `path`, in one step, with a modification time if one is given."""
        if mtime is not None:
            os.utime(self._file.fileno(), (mtime, mtime))
        os.replace(self.path, path)
        self._named = False

    def __enter__(self) -> DownloadFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._file.close()
        if self._named:
            os.unlink(self.path)

    def _forget_name(self) -> None:
        try:
            os.unlink(self.path)
            self._named = False
        except OSError:
            return  # not while it is open, on some systems: then at the end
