"""URL parameters and token prefixes out of a stream, however it is cut (facts/job-lifecycle.md 5.6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from pyrunner.job.trace.phrases import MASK
from pyrunner.job.trace.search import Search

URL_PARAMETERS = (
    "private_token",
    "authenticity_token",
    "rss_token",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
)
#: Masked in every job.
DEFAULT_PREFIX = "glpat-"
#: More than this many prefixes are not looked for; the shortest stay.
MAXIMUM_PREFIXES = 15

_TOKEN_RUN = rb"[0-9A-Za-z._=-]"
_VALUE_RUN = rb"[^?&\x00-\x20\x7f]"
#: Every URL parameter contains one of these, in some case.
_URL_HINTS = ("_token=", "x-amz-")


class RunFilter:
    """Keeps a known head and replaces the run of bytes behind it with `MASK`."""

    def __init__(self, rule: RunRule) -> None:
        self._rule = rule
        self._held = b""
        self._in_run = False

    def feed(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`."""
        if self._in_run:
            skipped = self._rule.run_length(data)
            if skipped == len(data):
                return b""
            data = data[skipped:]
            self._in_run = False
        buffer = self._held + data if self._held else data
        until = self._rule.pending(buffer, 0)
        if self._rule.probe(buffer):
            return self._replace(buffer, until)
        self._held = buffer[until:]
        return buffer[:until] if self._held else buffer

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        rest = self._replace(self._held, len(self._held)) if self._held else b""
        self._in_run = False
        return rest

    def _replace(self, buffer: bytes, until: int) -> bytes:
        final = until == len(buffer)
        parts: list[bytes] = []
        end = 0
        for match in self._rule.pattern.finditer(buffer):
            # At `until` itself a match is certain: shorter heads come first, what may still grow there is longer.
            if match.start() > until:
                break
            parts += (buffer[end : match.end(1)], MASK)
            end = match.end()
            self._in_run = end == len(buffer)
            if end > until:
                until = self._rule.pending(buffer, end)
        parts.append(buffer[end:until])
        self._held = b"" if final else buffer[until:]
        return b"".join(parts)


class RunRule:
    """The compiled rule of a `RunFilter`; immutable.

    `minimum` is how many bytes (0 or 1) must follow a head; no head can be in a piece without one of `hints`.
    """

    def __init__(
        self, heads: Sequence[bytes], *, run: bytes, minimum: int, hints: Sequence[bytes], ignore_case: bool = False
    ) -> None:
        flags = re.IGNORECASE if ignore_case else 0
        choices = b"|".join(re.escape(head) for head in sorted(heads, key=len))
        self.pattern = re.compile(b"(" + choices + b")" + run + (b"+" if minimum else b"*"), flags)
        self.probe = Search(hints)
        self._run = re.compile(run + b"*")
        self._longest = max(map(len, heads)) - (0 if minimum else 1)
        self._first = re.compile(b"[" + b"".join(re.escape(head[:1]) for head in heads) + b"]", flags)
        self._ignore_case = ignore_case
        self._starts = frozenset(head[:size] for head in heads for size in range(1, len(head) + (1 if minimum else 0)))

    def run_length(self, data: bytes) -> int:
        """How many bytes at the start of `data` belong to a run."""
        match = self._run.match(data)
        return match.end() if match else 0

    def pending(self, data: bytes, start: int) -> int:
        """Index of the first byte, at or behind `start`, whose rest may become a head; the length when none is."""
        for match in self._first.finditer(data, max(start, len(data) - self._longest)):
            rest = data[match.start() :]
            if (rest.lower() if self._ignore_case else rest) in self._starts:
                return match.start()
        return len(data)


@lru_cache(maxsize=1)
def url_rule() -> RunRule:
    """Values of `URL_PARAMETERS`, in any case, behind ``?`` or ``&``."""
    # To look for all cases at once costs a tenth of lowering the text and looking for one.
    pairs = ([{letter.lower(), letter.upper()} for letter in hint] for hint in _URL_HINTS)
    hints = [bytes(map(ord, letters)) for choices in pairs for letters in product(*choices)]
    heads = [mark + name.encode() + b"=" for mark in (b"?", b"&") for name in URL_PARAMETERS]
    return RunRule(heads, run=_VALUE_RUN, minimum=0, hints=hints, ignore_case=True)


@lru_cache(maxsize=64)
def token_rule(prefixes: tuple[str, ...]) -> RunRule:
    """Whatever follows one of `prefixes`: the `MAXIMUM_PREFIXES` shortest count."""
    chosen = sorted({prefix for prefix in prefixes if prefix}, key=lambda prefix: (len(prefix), prefix))
    heads = [prefix.encode() for prefix in chosen[:MAXIMUM_PREFIXES]]
    return RunRule(heads, run=_TOKEN_RUN, minimum=1, hints=heads)
