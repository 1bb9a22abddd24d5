"""Texts of ``[runners.docker]`` that stand for something structured: sizes, CPUs, limits, devices, GPUs. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyrunner.base.errors import SystemFailure

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_LOG_OPTIONS = ("env", "labels")
_ISOLATIONS = ("", "default", "process", "hyperv")
_ALL_GPUS = -1


def memory(key: str, text: str) -> int:
    """Bytes of ``512m``; 0 for no text, -1 stays (unlimited swap).

    Raises:
        SystemFailure: it is no size.
    """
    size = text.strip()
    if size in ("", "-1"):
        return int(size or 0)
    match = _SIZE.fullmatch(size)
    if match is None:
        raise _bad(f"Error parsing docker {key}: invalid size: '{text}'", 'expected a size such as "512m"')
    return int(Decimal(match["number"]) * (1 << _UNITS[match["unit"].lower()]))


def nano_cpus(text: str) -> int:
    """Billionths of a CPU for ``1.5`` or ``3/2``; 0 for no text.

    Raises:
        SystemFailure: it is no number.
    """
    if not text.strip():
        return 0
    top, slash, bottom = text.partition("/")
    try:
        return int(Decimal(top) / Decimal(bottom if slash else "1") * 1_000_000_000)
    except (ArithmeticError, ValueError) as error:
        raise _bad(f"failed to parse {text} as a rational number", 'expected CPUs such as "1.5"') from error


def ulimits(limits: Mapping[str, str]) -> list[dict[str, Any]]:
    """``Ulimits`` of ``{"nofile": "1024:2048"}``; without a hard limit it is the soft one.

    Raises:
        SystemFailure: a limit is no number, or the hard one is below the soft one.
    """
    return [_ulimit(name, text) for name, text in limits.items()]


def _ulimit(name: str, text: str) -> dict[str, Any]:
    soft_text, colon, hard_text = text.partition(":")
    soft = _limit("soft", name, soft_text)
    hard = _limit("hard", name, hard_text) if colon else soft
    if soft > hard != -1:
        raise _bad(f"invalid hard limit value: {name} = {text}: below the soft limit")
    return {"Name": name, "Soft": soft, "Hard": hard}


def _limit(kind: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise _bad(f'invalid {kind} limit value: {name} = "{text}": expected a number') from error


def devices(texts: Sequence[str]) -> list[dict[str, str]]:
    """``Devices`` of ``host[:container[:permissions]]``.

    Raises:
        SystemFailure: an entry has another form.
    """
    return [_device(text) for text in texts]


def _device(text: str) -> dict[str, str]:
    parts = text.split(":")
    if len(parts) > 3 or not all(parts):
        raise _bad(f'failed to parse device string "{text}"', "expected host[:container[:permissions]]")
    host = parts[0]
    return {
        "PathOnHost": host,
        "PathInContainer": parts[1] if len(parts) > 1 else host,
        "CgroupPermissions": parts[2] if len(parts) > 2 else "rwm",
    }


def gpus(key: str, text: str) -> list[dict[str, Any]]:
    """``DeviceRequests`` of the syntax of ``docker run --gpus``: ``all``, ``2``, ``"device=0,1",capabilities=utility``.

    Raises:
        SystemFailure: it has another form.
    """
    if not text.strip():
        return []
    request: dict[str, Any] = {"Driver": "", "Count": 0, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}
    for entry in next(csv.reader([text.strip()])):
        name, equals, value = entry.partition("=")
        if not equals:
            name, value = "count", entry
        _add_gpu_setting(request, key, name.strip(), value.strip())
    if not request["Count"] and not request["DeviceIDs"]:
        request["Count"] = 1
    return [request]


def _add_gpu_setting(request: dict[str, Any], key: str, name: str, value: str) -> None:
    if name == "count":
        request["Count"] = _ALL_GPUS if value == "all" else _gpu_count(key, value)
    elif name == "device":
        request["DeviceIDs"] = value.split(",")
    elif name == "driver":
        request["Driver"] = value
    elif name == "capabilities":
        request["Capabilities"] = [["gpu", *(item for item in value.split(",") if item != "gpu")]]
    elif name == "options":
        pairs = (option.partition("=") for option in value.split(","))
        request["Options"] = {option: setting for option, _, setting in pairs}
    else:
        raise _bad(f'{key}: unexpected key "{name}"', "expected count, device, driver, capabilities or options")


def _gpu_count(key: str, value: str) -> int:
    if not value.isdecimal():
        raise _bad(f'{key}: invalid count "{value}"', 'expected "all" or a number')
    return int(value)


def log_config(options: Mapping[str, str]) -> dict[str, Any]:
    """``LogConfig``: always json-file, because the log is read back.

    Raises:
        SystemFailure: an option that would break that.
    """
    if unknown := sorted(set(options) - set(_LOG_OPTIONS)):
        raise _bad(f"invalid log options: only {_quoted(_LOG_OPTIONS)} are allowed, but found: {_quoted(unknown)}")
    return {"Type": "json-file", "Config": dict(options)}


def isolation(text: str) -> str:
    """The isolation as it is.

    Raises:
        SystemFailure: there is no such isolation.
    """
    if text not in _ISOLATIONS:
        raise _bad(f'isolation "{text}" is not known', "expected default, hyperv or process")
    return text


def _quoted(words: Sequence[str]) -> str:
    inner = " ".join(f'"{word}"' for word in words)
    return f"[{inner}]"


def _bad(message: str, expected: str = "") -> SystemFailure:
    text = f"{message}: {expected}" if expected else message
    return SystemFailure(text, reason="runner_configuration_error")
