"""Encryption at rest: AES-256-GCM under a key file that only its owner may read."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE_BYTES = 12


class SealError(Exception):
    """What was sealed cannot be read: another key, or damage. ``str()`` is one line."""


class Seal:
    """Encrypts under the key in a file; the file is made when it is first needed. Safe from any thread.

    The cipher is imported at first use: that costs 8 to 15 ms and 2 MB of its own (9 MB with pages that processes
    share), which only a process that keeps something pays. One call costs 2 µs afterwards.
    """

    def __init__(self, key_path: str) -> None:
        self._path = key_path
        self._lock = threading.Lock()
        self._cipher: AESGCM | None = None

    def load(self) -> None:
        """Do now what first use would do: import the cipher, read or make the key.

        Raises:
            OSError: the key file can be neither read nor made.
            SealError: it holds no key.
        """
        self._loaded()

    def seal(self, data: bytes, context: bytes) -> bytes:
        """`data` encrypted; opens only together with the same `context`.

        Raises:
            OSError: the key file can be neither read nor made.
            SealError: it holds no key.
        """
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._loaded().encrypt(nonce, data, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What `seal` was given.

        Raises:
            OSError: the key file can be neither read nor made.
            SealError: `sealed` was made with another key or context, or is damaged.
        """
        cipher = self._loaded()
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError) as error:
            raise SealError(f"damaged, or sealed with another key than {self._path}") from error

    def _loaded(self) -> AESGCM:
        with self._lock:
            if self._cipher is None:
                try:
                    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
                except ImportError as error:
                    raise SealError(f"the package cryptography cannot be used: {error}") from error
                self._cipher = AESGCM(self._key())
            return self._cipher

    def _key(self) -> bytes:
        try:
            key = _read(self._path)
        except FileNotFoundError:
            _make_key(self._path)
            key = _read(self._path)
        if len(key) != KEY_BYTES:
            raise SealError(f"{self._path}: not a key: {KEY_BYTES} bytes expected, {len(key)} found")
        return key


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(KEY_BYTES + 1)


def _make_key(path: str) -> None:
    """Make the file whole or not at all; when another process makes it at the same time, that one stays."""
    temporary = f"{path}.{os.urandom(6).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
