"""A private file that a download goes to until it is whole."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.helper.meter import Meter


class DownloadFile:
    """A sink for `HttpClient.request`; leaving the context removes the file unless `keep_as` has moved it."""

    def __init__(self, directory: str, prefix: str, meter: Meter) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.path = os.path.join(directory, f"{prefix}{os.urandom(8).hex()}")
        self.meter = meter
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._file = open(os.open(self.path, flags, 0o600), "wb", buffering=0)  # noqa: SIM115
        self._kept = False

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

    def flush(self) -> None:
        """Nothing is held back; here for readers who expect it of a file."""
        self._file.flush()

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
        self._kept = True

    def __enter__(self) -> DownloadFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._file.close()
        if not self._kept:
            os.unlink(self.path)
