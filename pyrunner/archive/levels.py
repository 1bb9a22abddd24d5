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
RAW_DEFLATE = -15
ISAL = {"fast": 1, "default": 2}
ZLIB = {"slow": 7, "slowest": 9}
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
    if level in ISAL:
        number = ISAL[level]
        return lambda data: bytes(isal_zlib.compress(data, number, RAW_DEFLATE))
    number = ZLIB[level]
    return lambda data: zlib.compress(data, number, RAW_DEFLATE)


def zstd_level(level: str) -> int:
    """zstd's number for a level name."""
    return _ZSTD[level]
