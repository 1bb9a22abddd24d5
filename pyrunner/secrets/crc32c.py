"""CRC-32C (Castagnoli), with which Google protects secrets on their way; secrets are 64 KiB at most."""

from __future__ import annotations

from functools import cache

_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    """The checksum of `data`, unsigned."""
    table = _table()
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    return tuple(_entry(number) for number in range(256))


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value
