"""``restore_cache`` and ``archive_cache*`` (facts/cache-artifacts.md section 1, facts/job-lifecycle.md section 8)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyrunner.api.wire import Cache
from pyrunner.base.errors import JobFailure
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages.cache_key import CacheKey, archive_path, fallback_keys, main_key
from pyrunner.shells.stages.environment import exports, integer
from pyrunner.shells.stages.runner_command import file_arguments, guarded, outcome_applies
from pyrunner.shells.writer import Argument, Located, ScriptWriter


def restore_cache(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Unpack the first cache that exists for each entry; a missing one never fails the job."""
    entries = [entry for entry in context.job.cache if _selects(entry)]
    if not entries:
        return False
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    for entry in entries:
        _restore(writer, context, entry)
    return True


def archive_cache_on_success(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Save the caches of a successful job."""
    return _archive_all(writer, context, success=True)


def archive_cache_on_failure(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Save the caches of a failed job."""
    return _archive_all(writer, context, success=False)


def _selects(entry: Cache) -> bool:
    return bool(file_arguments(entry.paths, [], entry.untracked))


def _policy(context: ScriptContext, entry: Cache) -> str:
    """``pull-push``, ``pull`` or ``push``.

    Raises:
        JobFailure: anything else.
    """
    policy = context.variables.expand(entry.policy) or "pull-push"
    if policy not in ("pull-push", "pull", "push"):
        raise JobFailure(f"unknown cache policy {policy}", job_exit_code=0)
    return policy


def _usable_key(writer: ScriptWriter, context: ScriptContext, entry: Cache, action: str) -> CacheKey | None:
    key = main_key(context, entry.key)
    if key.warning:
        writer.warning(key.warning)
    if key.name and context.cache_dir:
        return key
    reason = "unset cache directory" if key.name else "empty cache key"
    writer.notice(f"Skipping cache {action} due to {reason}")
    return None


def _restore(writer: ScriptWriter, context: ScriptContext, entry: Cache) -> None:
    key = _usable_key(writer, context, entry, "extraction")
    if key is None:
        return
    if _policy(context, entry) == "push":
        writer.notice(f"Not downloading cache {key.human} due to policy")
        return
    others, warnings = fallback_keys(context, entry.fallback_keys)
    for warning in warnings:
        writer.warning(warning)
    with guarded(writer, context, "Extracting cache") as available:
        if available:
            _extract(writer, context, [key, *others], entry.paths)


def _extract(writer: ScriptWriter, context: ScriptContext, keys: Sequence[CacheKey], paths: Sequence[str]) -> None:
    """Nested tries: the first success stops."""
    for key in keys:
        writer.notice(f"Checking cache for {key.human}...")
        writer.if_command(
            *(context.runner_command, "cache-extractor"),
            *("--file", archive_path(context, key.name)),
            *("--timeout", _timeout(context)),
        )
        writer.notice("Successfully extracted cache")
        writer.else_()
        writer.warning("Failed to extract cache")
        if context.flags.get("FF_CLEAN_UP_FAILED_CACHE_EXTRACT", False):
            for path in paths:
                writer.print(f"Removing {path}")
                writer.rm(path)
    for _ in keys:
        writer.end()


def _timeout(context: ScriptContext) -> str:
    """Minutes per transfer."""
    return str(integer(context, "CACHE_REQUEST_TIMEOUT", 10))


def _archive_all(writer: ScriptWriter, context: ScriptContext, *, success: bool) -> bool:
    entries = [entry for entry in context.job.cache if _selects(entry) and outcome_applies(entry.when, success=success)]
    if not entries:
        return False
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    for entry in entries:
        _archive(writer, context, entry)
    return True


def _archive(writer: ScriptWriter, context: ScriptContext, entry: Cache) -> None:
    key = _usable_key(writer, context, entry, "archiving")
    if key is None:
        return
    if _policy(context, entry) == "pull":
        writer.notice(f"Not uploading cache {key.human} due to policy")
        return
    with guarded(writer, context, "Creating cache") as available:
        if not available:
            return
        writer.notice(f"Creating cache {key.human}...")
        writer.if_command(
            *_archiver(context, key),
            *file_arguments(entry.paths, [], entry.untracked),
            env={"CACHE_METADATA": json.dumps({"cachekey": key.human})},
        )
        writer.notice("Created cache")
        writer.else_()
        writer.warning("Failed to create cache")
        writer.end()


def _archiver(context: ScriptContext, key: CacheKey) -> list[Argument]:
    arguments: list[Argument] = [context.runner_command, "cache-archiver", "--file", archive_path(context, key.name)]
    if key.alternate:
        arguments += ["--alternate-file", archive_path(context, key.alternate)]
    arguments += ["--timeout", _timeout(context)]
    limit = context.config.cache.max_uploaded_archive_size
    if limit > 0:
        arguments += ["--max-uploaded-archive-size", str(limit)]
    return arguments
