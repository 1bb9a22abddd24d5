"""Tokens that the server hands out, with the prefixes by which runners and log masking know them."""

from __future__ import annotations

import secrets

#: Runner authentication tokens, made by an administrator (facts/runner-api.md 3).
RUNNER_PREFIX = "glrt-"
JOB_PREFIX = "glcbt-64_"


def new_runner_token() -> str:
    """A runner authentication token."""
    return RUNNER_PREFIX + secrets.token_hex(15)


def new_legacy_runner_token() -> str:
    """A token as registration with a registration token gives it: no prefix."""
    return secrets.token_hex(10)


def new_job_token() -> str:
    """The token of one job for one runner; sources put it into ``JobResponse.token`` and ``git_info.repo_url``."""
    return JOB_PREFIX + secrets.token_hex(16)


def same(left: str, right: str) -> bool:
    """Compare two secrets in constant time; an empty one never matches."""
    return bool(left) and bool(right) and secrets.compare_digest(left.encode(), right.encode())
