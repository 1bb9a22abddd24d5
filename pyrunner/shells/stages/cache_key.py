"""Names of caches: keys, their sanitising and hashing, the archive's path (facts/cache-artifacts.md 1.2)."""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.writer import Located

_ESCAPES = (("%2f", "/"), ("%2F", "/"), ("%2e", "."), ("%2E", "."), ("\\", "/"))
_PROTECTED = "-protected"


@dataclass(frozen=True, kw_only=True)
class CacheKey:
    """A cache key as people see it and as it names files."""

    #: For messages and metadata.
    human: str
    #: Path below the cache directory; empty when nothing usable is left of the key.
    name: str
    #: The same under the other setting of FF_HASH_CACHE_KEYS, so that a cache survives a change of the flag.
    alternate: str = ""
    warning: str = ""


def sanitized(raw: str) -> str:
    """`raw` as a clean relative path without ``.``, ``..`` and trailing white space; may be empty."""
    for escape, character in _ESCAPES:
        raw = raw.replace(escape, character)
    segments = [part for part in posixpath.normpath("/" + raw).split("/") if part]
    while segments:
        last = segments.pop().rstrip()
        # a white space tail may have hidden another dot segment
        if last not in ("", ".", ".."):
            return "/".join([*segments, last])
    return ""


def cache_key(raw: str, *, hashed: bool) -> CacheKey:
    """The key for the expanded text `raw`."""
    clean = sanitized(raw)
    digest = hashlib.sha256(raw.encode("utf-8", "surrogateescape")).hexdigest() if raw else ""
    if hashed:
        return CacheKey(human=raw, name=digest, alternate=clean)
    if raw and not clean:
        return CacheKey(human=raw, name="", warning=f'cache key "{raw}" could not be sanitized')
    warning = f'cache key "{raw}" sanitized to "{clean}"' if raw != clean else ""
    return CacheKey(human=clean, name=clean, alternate=digest, warning=warning)


def main_key(context: ScriptContext, key: str) -> CacheKey:
    """The key of a cache entry: `key` expanded, or ``<job name>/<ref>``."""
    info = context.job
    raw = context.variables.expand(key)
    if not raw:
        raw = posixpath.normpath(f"{info.job_info.name}/{info.git_info.ref}")
    return cache_key(raw, hashed=_hashing(context))


def fallback_keys(context: ScriptContext, keys: list[str]) -> tuple[list[CacheKey], list[str]]:
    """The usable fallback keys in order, ``CACHE_FALLBACK_KEY`` last, and warnings about the others."""
    raw = [context.variables.expand(key) for key in keys]
    warnings = []
    last = context.variables.get("CACHE_FALLBACK_KEY")
    if re.sub(r"[.\s]+$", "", last).endswith(_PROTECTED):
        warnings.append(f'CACHE_FALLBACK_KEY "{last}" not allowed to end in "{_PROTECTED}"')
    else:
        raw.append(last)
    found = [cache_key(key, hashed=_hashing(context)) for key in raw if key]
    warnings += [key.warning for key in found if key.warning]
    return [key for key in found if key.name], warnings


def archive_path(context: ScriptContext, name: str) -> str | Located:
    """``cache.zip`` of a key, relative to the project directory when both are given alike.

    A shell that resolves paths itself gets it as it is.
    """
    path = posixpath.join(context.project_cache_dir, name, "cache.zip")
    if context.flags.get("FF_USE_POWERSHELL_PATH_RESOLVER", False):
        return Located(path)
    if path.startswith("/") != context.project_dir.startswith("/"):
        return path
    return posixpath.relpath(path, context.project_dir)


def _hashing(context: ScriptContext) -> bool:
    return context.flags.get("FF_HASH_CACHE_KEYS", False)
