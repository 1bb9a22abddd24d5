"""Plain YAML scalars → values, after YAML 1.1 as GitLab's parser reads it; a date stays text."""

from __future__ import annotations

import re
from typing import TypeAlias

import yaml

TAG = "tag:yaml.org,2002:"

Scalar: TypeAlias = "str | int | float | bool | None"

_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(:[0-5]?[0-9])*)")


def resolved_tag(text: str) -> str:
    """The tag that YAML 1.1 gives a plain scalar."""
    resolvers = yaml.resolver.Resolver.yaml_implicit_resolvers
    for tag, pattern in resolvers.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return f"{TAG}str"


def converted(text: str, tag: str) -> Scalar:
    """The value of a scalar with this tag.

    Raises:
        KeyError: the tag is not known.
        ValueError: the text is not what the tag says.
    """
    match tag.removeprefix(TAG):
        case "null":
            return None
        case "bool":
            return text.lower() in ("yes", "true", "on")
        case "int":
            return _integer(text)
        case "float":
            return _float(text)
        case "str" | "timestamp" | "value":
            return text
    raise KeyError(tag)


def _integer(text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError(text)
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if ":" in digits:
        total = 0
        for part in digits.split(":"):
            total = total * 60 + int(part)
        return sign * total
    if digits[:2] in ("0b", "0x"):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if digits.startswith("0") and len(digits) > 1 else 10)


def _float(text: str) -> float:
    digits = text.replace("_", "").lower()
    if digits.lstrip("+-") in (".inf", ".nan"):
        return float(digits.replace(".", ""))
    if ":" in digits:
        sign, total = (-1 if digits.startswith("-") else 1), 0.0
        for part in digits.lstrip("+-").split(":"):
            total = total * 60 + float(part)
        return sign * total
    return float(digits)
