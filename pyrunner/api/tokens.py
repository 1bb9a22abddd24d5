"""Runner tokens: their kinds, and the short form that may be logged (facts/commands.md section 2).

Helper commands use this: nothing but `re` is imported.
"""

from __future__ import annotations

import re

#: Prefix of a *runner authentication token* (created in the UI or the API); every other token is legacy.
AUTHENTICATION_PREFIX = "glrt-"

_SHORT_LENGTH = 9
_PREFIX = re.compile(r"glrtr-|glcbt-|glrt-(?:t[123]_)?|t[123]_|GR[0-9A-Fa-f]{7}")


def is_authentication_token(token: str) -> bool:
    """Whether `token` is a runner authentication token (``glrt-…``); ``glrtr-…`` is not (facts/runner-api.md 3)."""
    return token.startswith(AUTHENTICATION_PREFIX)


def short_token(token: str) -> str:
    """What logs, metrics and directory names show of a token: up to 9 characters behind its prefix.

    A token that is not longer than its prefix gives what is left of it, possibly nothing.
    """
    prefix = _PREFIX.match(token)
    return token[prefix.end() if prefix else 0 :][:_SHORT_LENGTH]
