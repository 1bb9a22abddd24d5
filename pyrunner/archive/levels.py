"""Compression levels by name (facts/cache-artifacts.md 2.2), and the compressors behind them.

isal deflates at several times zlib's speed and stands in for the two middle levels; it has no level that is as small
as zlib's 7 and 9, so the two slow ones are zlib's own.
"""

from __future__ import annotations

import zlib

from isal import isal_zlib

from pyrunner.base.light_log import Log

log = Log(__name__)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = ("fastest", "fast", "default", "slow", "slowest")
_RAW_DEFLATE = -15
_ISAL = {"fast": 1, "default": 2}
_ZLIB = {"slow": 7, "slowest": 9}
_ZSTD = {"fastest": 1, "fast": 1, "default": 3, "slow": 7, "slowest": 11}


def level_named(text: str) -> str:
    """The level that `text` names; an unknown one is warned about and means ``default``."""
    if text in LEVELS:
        return text
    if text:
        log.warning('compression level "%s" is invalid, falling back to default', text)
    return "default"


def deflater(level: str) -> Callable[[bytes], bytes]:
    """A function that compresses a whole file to raw deflate."""
    if level in _ISAL:
        number = _ISAL[level]
        return lambda data: bytes(isal_zlib.compress(data, number, _RAW_DEFLATE))
    number = _ZLIB[level]
    return lambda data: zlib.compress(data, number, _RAW_DEFLATE)


def deflate_block(level: str, data: bytes) -> bytes:
    """`data` as deflate blocks that end on a byte and refer to nothing before them, none of them the last.

    Such pieces can be made at the same time and joined; `DEFLATE_END` ends the joined stream.
    """
    if _is_dense(data):
        maker = zlib.compressobj(0, zlib.DEFLATED, _RAW_DEFLATE)
        return maker.compress(data) + maker.flush(zlib.Z_FULL_FLUSH)
    if level in _ISAL:
        fast = isal_zlib.compressobj(_ISAL[level], isal_zlib.DEFLATED, _RAW_DEFLATE)
        return bytes(fast.compress(data) + fast.flush(isal_zlib.Z_FULL_FLUSH))
    maker = zlib.compressobj(_ZLIB[level], zlib.DEFLATED, _RAW_DEFLATE)
    return maker.compress(data) + maker.flush(zlib.Z_FULL_FLUSH)


#: An empty last block.
DEFLATE_END = b"\x03\x00"


def _is_dense(data: bytes) -> bool:
    """Whether compressing would be wasted, judged by three samples (a video, an inner archive)."""
    if len(data) < 1 << 17:
        return False
    middle = len(data) // 2
    sample = data[:8192] + data[middle : middle + 8192] + data[-8192:]
    return len(isal_zlib.compress(sample, 1, _RAW_DEFLATE)) > len(sample) * 0.98


def zstd_level(level: str) -> int:
    """zstd's number for a level name."""
    return _ZSTD[level]
