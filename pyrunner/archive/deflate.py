"""A stretch of a large file as deflate blocks that can be made, joined and inflated independently of all others.

The work is done in pieces that stay in the processor's cache from the read to the checksum: with a megabyte at a time
the same calls take half as long again, most of it in page faults.
"""

from __future__ import annotations

import os
import struct
import zlib

from isal import isal_zlib

from pyrunner.archive.levels import ISAL, RAW_DEFLATE, ZLIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of a piece for isal; zlib's slow levels find more in larger ones.
_PIECE, _SLOW_PIECE = 1 << 17, 1 << 20
#: A longer list of pieces would not fit into the extra field of a zip entry (see `zip_format.pieces_field`).
MOST_PIECES = 12_000
#: What one thread does before it takes the next stretch.
STRETCH = 1 << 20
_SAMPLE = 4096
_HARDLY = 0.98
_STORED_BLOCK = struct.Struct("<BHH")
_LONGEST_STORED = 0xFFFF
#: An empty last block.
DEFLATE_END = b"\x03\x00"


class Stretch:
    """What became of one stretch of a file: packed pieces, checksum and length of what was read."""

    __slots__ = ("crc", "length", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.crc = 0
        self.length = 0


class Stretches:
    """A large file, cut into stretches of pieces.

    Args:
        fd: the open file.
        size: how much of it to take.
        level: one of `levels.LEVELS`, ``""`` to leave the content as it is.
    """

    def __init__(self, fd: int, size: int, level: str) -> None:
        self._fd = fd
        self._size = size
        self._level = level
        self.piece = _SLOW_PIECE if level in ZLIB else _PIECE
        while self.piece * MOST_PIECES < size:
            self.piece *= 2
        self._step = max(self.piece, STRETCH)
        self.count = -(-size // self._step)

    def pack(self, number: int) -> Stretch:
        """Read, check and pack a stretch; safe from several threads.

        Raises:
            OSError: the file cannot be read.
        """
        result = Stretch()
        suspect = True
        for data in self._read(number):
            result.crc = isal_zlib.crc32(data, result.crc)
            result.length += len(data)
            if not self._level:
                result.pieces.append(bytes(data))
                continue
            # what does not shrink costs one try per stretch and is only sampled from then on
            if suspect and _is_dense(data):
                result.pieces.append(stored_blocks(data))
                continue
            packed = deflate_block(self._level, data)
            suspect = len(packed) > len(data) * _HARDLY
            result.pieces.append(stored_blocks(data) if len(packed) > len(data) else packed)
        return result

    def _read(self, number: int) -> Iterator[memoryview]:
        """The pieces of a stretch, each valid until the next one is asked for."""
        at = number * self._step
        end = min(at + self._step, self._size)
        buffer = memoryview(bytearray(min(self.piece, end - at)))
        while at < end:
            length = _fill(self._fd, buffer[: min(self.piece, end - at)], at)
            if not length:
                return  # the file has shrunk
            yield buffer[:length]
            at += length


def _fill(fd: int, buffer: memoryview, offset: int) -> int:
    done = 0
    while done < len(buffer) and (count := os.preadv(fd, [buffer[done:]], offset + done)):
        done += count
    return done


def deflate_block(level: str, data: bytes | memoryview) -> bytes:
    """`data` as deflate blocks that end on a byte and refer to nothing before them, none of them the last.

    `DEFLATE_END` ends the joined stream.
    """
    if level in ISAL:
        fast = isal_zlib.compressobj(ISAL[level], isal_zlib.DEFLATED, RAW_DEFLATE)
        return bytes(fast.compress(data) + fast.flush(isal_zlib.Z_FULL_FLUSH))
    maker = zlib.compressobj(ZLIB[level], zlib.DEFLATED, RAW_DEFLATE)
    return maker.compress(data) + maker.flush(zlib.Z_FULL_FLUSH)


def stored_blocks(data: bytes | memoryview) -> bytes:
    """`data` as deflate blocks that hold it as it is, none of them the last."""
    parts: list[bytes | memoryview] = []
    for start in range(0, len(data), _LONGEST_STORED):
        part = data[start : start + _LONGEST_STORED]
        parts += (_STORED_BLOCK.pack(0, len(part), len(part) ^ 0xFFFF), part)
    return b"".join(parts)


def _is_dense(data: memoryview) -> bool:
    """Whether compressing would be wasted, judged by a sample from the middle (a video, an inner archive)."""
    middle = len(data) // 2
    sample = data[middle : middle + _SAMPLE]
    return len(sample) >= _SAMPLE // 2 and len(isal_zlib.compress(sample, 0, RAW_DEFLATE)) > len(sample) * _HARDLY
