"""The size limit of a job's log (facts/job-lifecycle.md 5.7)."""

from __future__ import annotations

#: ``output_limit`` when the config names none, bytes.
DEFAULT_LIMIT = 4096 * 1024


class Limit:
    """Lets `limit` bytes of valid UTF-8 pass, then one last message, then nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._passed = 0
        #: Whether everything from now on is dropped.
        self.full = False

    def take(self, data: bytes) -> bytes:
        """The part of `data` that goes into the log."""
        if self.full:
            return b""
        room = self._limit - self._passed
        if len(data) <= room:
            self._passed += len(data)
            return data
        self.full = True
        cut = room
        while cut > 0 and data[cut] & 0xC0 == 0x80:
            cut -= 1
        return data[:cut] + self._message()

    def _message(self) -> bytes:
        return (
            f"\n\x1b[33;1mJob's log exceeded limit of {self._limit} bytes.\n"
            "Job execution will continue but no more output will be collected.\x1b[0;m\n"
        ).encode()
