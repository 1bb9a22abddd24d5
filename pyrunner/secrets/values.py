"""From what a store holds to the text of a variable."""

from __future__ import annotations

import binascii
from collections.abc import Mapping

import msgspec

from pyrunner.secrets.errors import SecretConfigError, SecretMissingError


def field_of(fields: Mapping[str, msgspec.Raw], name: str, place: str) -> str:
    """The field `name` as a text: a string as it is, anything else as the JSON that the store sent.

    Raises:
        SecretMissingError: the field is missing or null.
    """
    raw = bytes(fields[name]).strip() if name in fields else b"null"
    if raw == b"null":
        raise SecretMissingError(f'there is no field "{name}" at {place}')
    return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode()


def text_of(data: bytes, place: str) -> str:
    """`data` as a text: variables hold nothing else.

    Raises:
        SecretConfigError: it is no UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SecretConfigError(
            f"the secret at {place} is binary: only UTF-8 text can be a variable, store it encoded as Base64"
        ) from None


def from_base64(data: str) -> bytes | None:
    """The decoded `data`, or None when it is no Base64."""
    try:
        return binascii.a2b_base64(data, strict_mode=True) if data else b""
    except (binascii.Error, ValueError):
        return None
