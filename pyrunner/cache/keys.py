"""Cache keys: what a job's ``cache: key`` becomes on disk (facts/cache-artifacts.md 1.2). Pure."""

from __future__ import annotations

import posixpath
import re

#: Name of the archive in a key's directory, whatever its format.
ARCHIVE_NAME = "cache.zip"

_ESCAPES = re.compile(r"%2[fF]|%2[eE]|\\")


class CacheKey:
    """A key as its archive is named, and how people see it.

    `name` is empty when nothing usable is left of the raw key; `warning` is one line for the job log, or empty.
    """

    __slots__ = ("name", "shown", "warning")

    def __init__(self, name: str, shown: str, warning: str = "") -> None:
        self.name = name
        self.shown = shown
        self.warning = warning


def raw_key(key: str, job_name: str, ref: str) -> str:
    """The expanded `key`, or what stands for an empty one."""
    return key or posixpath.normpath(posixpath.join("/", job_name, ref))[1:]


def plain_key(raw: str) -> CacheKey:
    """`raw` made safe as a path below the cache directory."""
    name = _sanitized(raw)
    if raw and not name:
        return CacheKey("", raw, f'cache key "{raw}" could not be sanitized')
    if name != raw:
        return CacheKey(name, name, f'cache key "{raw}" sanitized to "{name}"')
    return CacheKey(name, name)


def hashed_key(raw: str) -> CacheKey:
    """`raw` under its SHA-256 (``FF_HASH_CACHE_KEYS``)."""
    from hashlib import sha256

    return CacheKey(sha256(raw.encode("utf-8", "surrogateescape")).hexdigest() if raw else "", raw)


def is_fallback_allowed(key: str) -> bool:
    """Whether ``CACHE_FALLBACK_KEY`` may name `key`: caches of protected refs are not for everyone."""
    return not key.rstrip(". ").endswith("-protected")


def archive_path(cache_dir: str, key: CacheKey) -> str:
    """Where the archive of a key lies."""
    return posixpath.join(cache_dir, key.name, ARCHIVE_NAME)


def _sanitized(raw: str) -> str:
    decoded = _ESCAPES.sub(lambda match: "." if match.group().lower() == "%2e" else "/", raw)
    segments = posixpath.normpath("/" + decoded).lstrip("/").split("/")
    while segments:
        segments[-1] = segments[-1].rstrip()
        # "a/.. " is "a/.." once the blanks are gone: not a step up any more, and no name either
        if segments[-1] not in ("", ".", ".."):
            break
        segments.pop()
    return "/".join(segments)
