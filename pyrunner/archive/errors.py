"""What goes wrong with archives."""

from __future__ import annotations

from pyrunner.base.errors import PyrunnerError


class ArchiveError(PyrunnerError):
    """An archive cannot be written or read; the message names the file or entry."""


class UnsafeEntryError(ArchiveError):
    """An entry of an archive would end up outside the target directory; nothing has been written."""

    def __init__(self, name: bytes, root: str) -> None:
        shown = name.decode("utf-8", "backslashreplace")
        super().__init__(f"{shown} cannot be extracted outside of chroot ({root})")
