"""Secrets out of a stream: phrases, URL parameters, token prefixes (facts/job-lifecycle.md 5.6).

Every filter has ``feed(data) -> bytes`` and ``flush() -> bytes`` and gives the same output however the stream is cut. A
filter holds back only what may turn out to be the start of a secret, so never more than the longest one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product

import ahocorasick_rs

MASK = b"[MASKED]"

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


class Phrases:
    """A compiled, immutable set of phrases to mask; safe to share between streams."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self.sorted = sorted({value.strip() for value in values} - {b""})
        self.longest = max(map(len, self.sorted), default=0)
        if not self.sorted:
            return
        # Leftmost-longest is ten times faster than the overlapping search, which is only needed around matches.
        self._fast = ahocorasick_rs.BytesAhoCorasick(self.sorted, matchkind=ahocorasick_rs.MatchKind.LeftmostLongest)
        self._overlapping = ahocorasick_rs.BytesAhoCorasick(self.sorted) if _can_overlap(self.sorted) else None
        first = b"".join(sorted({re.escape(value[:1]) for value in self.sorted}))
        self._first = re.compile(b"[" + first + b"]")

    def __len__(self) -> int:
        return len(self.sorted)

    def plus(self, values: Iterable[bytes]) -> Phrases:
        """This set with `values` added; itself when that adds nothing."""
        merged = Phrases((*self.sorted, *values))
        return self if merged.sorted == self.sorted else merged

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Start and end of each stretch of `data` that phrases cover, in order; overlapping ones are one stretch."""
        found = [(start, end) for _, start, end in self._fast.find_matches_as_indexes(data)]
        if self._overlapping is None or not found:
            return found
        spans: list[tuple[int, int]] = []
        for start, end in found:
            if spans and start < spans[-1][1]:
                continue
            spans.append((start, self._extended(data, start, end)))
        return spans

    def _extended(self, data: bytes, start: int, end: int) -> int:
        """Where the stretch that begins with the match from `start` to `end` really ends."""
        assert self._overlapping is not None  # noqa: S101 - the only caller has checked
        reach = self.longest
        while True:
            # What starts earlier than this cannot reach beyond `end`.
            start = max(start, end - self.longest)
            window = data[start : end + reach]
            grown = end
            for _, first, last in self._overlapping.find_matches_as_indexes(window, overlapping=True):
                if start + first < grown:
                    grown = max(grown, start + last)
            if grown == end:
                return end
            end = grown
            reach *= 2

    def pending(self, data: bytes) -> int:
        """Index of the first byte of `data` whose rest may be the start of a phrase; the length when none is."""
        length = len(data)
        for match in self._first.finditer(data, max(0, length - self.longest + 1)):
            rest = data[match.start() :]
            place = bisect_right(self.sorted, rest)
            if place < len(self.sorted) and self.sorted[place].startswith(rest):
                return match.start()
        return length


def _can_overlap(phrases: Sequence[bytes]) -> bool:
    """Whether the end of one phrase can be the start of another (or of itself)."""
    heads = {phrase[:size] for phrase in phrases for size in range(1, len(phrase))} if len(phrases) < 200 else None
    if heads is None or sum(map(len, phrases)) > 10_000:
        return True
    return any(phrase[-size:] in heads for phrase in phrases for size in range(1, len(phrase)))


class PhraseFilter:
    """Replaces every stretch covered by phrases with one `MASK`."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self._held = b""
        #: So many bytes at the start of `_held` are covered by a mask that is already out.
        self._covered = 0

    def feed(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`."""
        buffer = self._held + data if self._held else data
        if not len(self.phrases):
            return buffer
        return self._release(buffer, self.phrases.pending(buffer))

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        return self._release(self._held, len(self._held)) if self._held else b""

    def _release(self, buffer: bytes, until: int) -> bytes:
        spans = self.phrases.spans(buffer)
        if not spans and not self._covered:
            self._held = buffer[until:]
            return buffer[:until] if self._held else buffer
        parts: list[bytes] = []
        end = self._covered
        for first, last in spans:
            if first < end:
                end = max(end, last)
                continue
            if first >= until:
                break
            parts += (buffer[end:first], MASK)
            end = last
        parts.append(buffer[end:until])
        self._held = buffer[until:]
        self._covered = max(0, end - until)
        return b"".join(parts)


class RunFilter:
    """Keeps a known head and replaces the run of bytes behind it with `MASK`.

    `minimum` is how many bytes (0 or 1) must follow a head; `probe` tells cheaply that no head can be in a piece.
    """

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
    """The compiled rule of a `RunFilter`; immutable."""

    def __init__(
        self,
        heads: Sequence[bytes],
        *,
        run: bytes,
        minimum: int,
        probe: Callable[[bytes], bool],
        ignore_case: bool = False,
    ) -> None:
        flags = re.IGNORECASE if ignore_case else 0
        choices = b"|".join(re.escape(head) for head in sorted(heads, key=len))
        self.pattern = re.compile(b"(" + choices + b")" + run + (b"+" if minimum else b"*"), flags)
        self.probe = probe
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
    cases = [bytes(map(ord, letters)) for choices in pairs for letters in product(*choices)]
    heads = [mark + name.encode() + b"=" for mark in (b"?", b"&") for name in URL_PARAMETERS]
    return RunRule(heads, run=_VALUE_RUN, minimum=0, probe=_finder(cases), ignore_case=True)


@lru_cache(maxsize=64)
def token_rule(prefixes: tuple[str, ...]) -> RunRule:
    """Whatever follows one of `prefixes`: the `MAXIMUM_PREFIXES` shortest count."""
    chosen = sorted({prefix for prefix in prefixes if prefix}, key=lambda prefix: (len(prefix), prefix))
    heads = [prefix.encode() for prefix in chosen[:MAXIMUM_PREFIXES]]
    return RunRule(heads, run=_TOKEN_RUN, minimum=1, probe=_finder(heads))


def _finder(needles: Sequence[bytes]) -> Callable[[bytes], bool]:
    """Tells whether any of `needles` is in a piece."""
    search = ahocorasick_rs.BytesAhoCorasick(
        needles, matchkind=ahocorasick_rs.MatchKind.LeftmostLongest
    ).find_matches_as_indexes
    return lambda data: bool(search(data))


class Masker:
    """All filters of one stream, in their order."""

    def __init__(self, phrases: Phrases, prefixes: Sequence[str] = (DEFAULT_PREFIX,)) -> None:
        self._phrases = PhraseFilter(phrases)
        self._runs = [RunFilter(url_rule())]
        if any(prefixes):
            self._runs.append(RunFilter(token_rule(tuple(prefixes))))

    def use(self, phrases: Phrases) -> None:
        """Mask `phrases` from the next byte on."""
        self._phrases.phrases = phrases

    def feed(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`."""
        data = self._phrases.feed(data)
        for run in self._runs:
            if data:
                data = run.feed(data)
        return data

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        data = self._phrases.flush()
        for run in self._runs:
            data = (run.feed(data) if data else b"") + run.flush()
        return data
