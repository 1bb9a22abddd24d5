"""The structures of a zip file: making headers and records, zip64 included.

Numbers as in PKWARE's APPNOTE; which fields are written is facts/cache-artifacts.md 2.2.
"""

from __future__ import annotations

import os
import stat
import struct
import time

STORED, DEFLATED, ZSTD = 0, 8, 93
FLAG_ENCRYPTED, FLAG_DESCRIPTOR, FLAG_UTF8 = 0x1, 0x8, 0x800

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR64 = struct.Struct("<4sIQI")
DESCRIPTOR = struct.Struct("<4s3I")
DESCRIPTOR64 = struct.Struct("<4sI2Q")

LOCAL_MAGIC, CENTRAL_MAGIC = b"PK\x03\x04", b"PK\x01\x02"
END_MAGIC, END64_MAGIC, LOCATOR64_MAGIC = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
DESCRIPTOR_MAGIC = b"PK\x07\x08"

#: From here on a number stands in a zip64 field.
LIMIT32, LIMIT16 = 0xFFFFFFFF, 0xFFFF
EXTRA_ZIP64, EXTRA_TIME, EXTRA_UNIX = 0x0001, 0x5455, 0x7875
#: Our own: lengths of the independent deflate pieces of a large file, so that they can be inflated at the same time.
#: Other tools skip it, as they skip every identifier that they do not know.
EXTRA_PIECES = 0x7970
PIECES = struct.Struct("<2HI")

TIME_AND_OWNER = struct.Struct("<2HBI2H2BIBI")
_UNIX = 3
_OFFSET_AT = 42
_EXTRA_LENGTH_AT = 30
_VERSIONS = {STORED: 20, DEFLATED: 20, ZSTD: 63}
_VERSION_ZIP64 = 45


class Member:
    """What the headers of one entry say; sizes and checksum are known once the data is."""

    __slots__ = ("compressed", "crc", "dos_date", "dos_time", "extra", "flags", "method", "mode", "name", "size")

    def __init__(self, path: str, info: os.stat_result) -> None:
        name = os.fsencode(path)
        self.name = name + b"/" if stat.S_ISDIR(info.st_mode) else name
        self.mode = info.st_mode
        self.method = STORED
        self.flags = FLAG_UTF8 if name.isascii() or _is_utf8(name) else 0
        self.crc = self.size = self.compressed = 0
        seconds = min(max(int(info.st_mtime), 0), LIMIT32)
        self.dos_date, self.dos_time = _dos_time(seconds)
        self.extra = TIME_AND_OWNER.pack(
            EXTRA_TIME, 5, 1, seconds, EXTRA_UNIX, 11, 1, 4, info.st_uid & LIMIT32, 4, info.st_gid & LIMIT32
        )

    def local(self) -> bytes:
        """Local header with sizes in it."""
        return self._local(self.flags, self.crc, self.compressed, self.size, self.extra, _VERSIONS[self.method])

    def local_before_data(self, *, zip64: bool) -> bytes:
        """Local header whose sizes follow the data; `zip64` when they may need eight bytes."""
        self.flags |= FLAG_DESCRIPTOR
        if not zip64:
            return self._local(self.flags, 0, 0, 0, self.extra, _VERSIONS[self.method])
        extra = struct.pack("<2H2Q", EXTRA_ZIP64, 16, 0, 0) + self.extra
        return self._local(self.flags, 0, LIMIT32, LIMIT32, extra, max(_VERSION_ZIP64, _VERSIONS[self.method]))

    def _local(self, flags: int, crc: int, compressed: int, size: int, extra: bytes, version: int) -> bytes:
        header = LOCAL.pack(
            LOCAL_MAGIC, version, flags, self.method, self.dos_time, self.dos_date,
            crc, compressed, size, len(self.name), len(extra),
        )  # fmt: skip
        return header + self.name + extra

    def descriptor(self, *, zip64: bool) -> bytes:
        """What follows the data of a header made by `local_before_data`."""
        form = DESCRIPTOR64 if zip64 else DESCRIPTOR
        return form.pack(DESCRIPTOR_MAGIC, self.crc, self.compressed, self.size)

    def central(self, pieces: bytes = b"") -> bytes:
        """Record of the central directory with offset 0; `place` sets the offset."""
        extra, size, compressed, version = self.extra + pieces, self.size, self.compressed, _VERSIONS[self.method]
        if size >= LIMIT32 or compressed >= LIMIT32:
            extra = struct.pack("<2H2Q", EXTRA_ZIP64, 16, size, compressed) + extra
            size = compressed = LIMIT32
            version = max(version, _VERSION_ZIP64)
        record = CENTRAL.pack(
            CENTRAL_MAGIC, _UNIX << 8 | version, version, self.flags, self.method, self.dos_time, self.dos_date,
            self.crc, compressed, size, len(self.name), len(extra), 0, 0, 0,
            self.mode << 16 & LIMIT32 | (0x10 if self.name.endswith(b"/") else 0), 0,
        )  # fmt: skip
        return record + self.name + extra


def place(record: bytes, offset: int) -> bytes:
    """A record of the central directory with the offset of its local header."""
    if offset < LIMIT32:
        return record[:_OFFSET_AT] + offset.to_bytes(4, "little") + record[_OFFSET_AT + 4 :]
    name_length, extra_length = struct.unpack_from("<2H", record, 28)
    extra = record[CENTRAL.size + name_length :]
    # the offset comes third in the zip64 field, after the sizes if these are there
    if extra[:2] == EXTRA_ZIP64.to_bytes(2, "little"):
        held = int.from_bytes(extra[2:4], "little")
        sizes, rest = extra[4 : 4 + held], extra[4 + held :]
    else:
        sizes, rest = b"", extra
    extra = struct.pack("<2H", EXTRA_ZIP64, len(sizes) + 8) + sizes + offset.to_bytes(8, "little") + rest
    head = bytearray(record[: CENTRAL.size + name_length])
    head[_EXTRA_LENGTH_AT : _EXTRA_LENGTH_AT + 2] = len(extra).to_bytes(2, "little")
    head[_OFFSET_AT : _OFFSET_AT + 4] = b"\xff\xff\xff\xff"
    needed = max(int.from_bytes(head[6:8], "little"), _VERSION_ZIP64)
    head[6:8] = needed.to_bytes(2, "little")
    return bytes(head) + extra


def pieces_field(piece: int, lengths: list[int]) -> bytes:
    """The extra field that lists a large file's deflate pieces: all of `piece` bytes but the last."""
    return PIECES.pack(EXTRA_PIECES, 4 + 4 * len(lengths), piece) + struct.pack(f"<{len(lengths)}I", *lengths)


def end_of_directory(count: int, size: int, offset: int) -> bytes:
    """What ends a zip file whose directory has `count` records in `size` bytes at `offset`."""
    end = END.pack(
        END_MAGIC, 0, 0, min(count, LIMIT16), min(count, LIMIT16), min(size, LIMIT32), min(offset, LIMIT32), 0
    )
    if count < LIMIT16 and size < LIMIT32 and offset < LIMIT32:
        return end
    end64 = END64.pack(
        END64_MAGIC, END64.size - 12, _UNIX << 8 | _VERSION_ZIP64, _VERSION_ZIP64, 0, 0, count, count, size, offset
    )
    return end64 + LOCATOR64.pack(LOCATOR64_MAGIC, 0, offset + size, 1) + end


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


_dos_times: dict[int, tuple[int, int]] = {}


def _dos_time(seconds: int) -> tuple[int, int]:
    """Date and time of day in MS-DOS form, local time, within the years that the form can say."""
    known = _dos_times.get(seconds)
    if known is None:
        at = time.localtime(seconds)
        if at.tm_year < 1980:
            known = (1 << 5 | 1, 0)
        elif at.tm_year > 2107:
            known = (127 << 9 | 12 << 5 | 31, 23 << 11 | 59 << 5 | 29)
        else:
            date = (at.tm_year - 1980) << 9 | at.tm_mon << 5 | at.tm_mday
            known = (date, at.tm_hour << 11 | at.tm_min << 5 | min(at.tm_sec, 59) // 2)
        if len(_dos_times) > 4096:
            _dos_times.clear()
        _dos_times[seconds] = known
    return known


def seconds_of_dos(date: int, clock: int) -> int:
    """The inverse of what headers hold for entries without an exact time; 0 for a date that is none."""
    parts = (
        (date >> 9) + 1980, date >> 5 & 15, date & 31, clock >> 11, clock >> 5 & 63, (clock & 31) * 2, 0, 0, -1,
    )  # fmt: skip
    try:
        return max(0, int(time.mktime(parts)))
    except (OverflowError, ValueError):
        return 0
