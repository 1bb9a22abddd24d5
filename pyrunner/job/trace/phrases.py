"""Phrases out of a stream, however it is cut (facts/job-lifecycle.md 5.6)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from pyrunner.job.trace.search import Search

MASK = b"[MASKED]"

_HEAD = 32
#: What may become a phrase is looked for by so many bytes of its start.
_OPENING = 4


class Phrases:
    """A compiled, immutable set of phrases to mask; safe to share between streams.

    A phrase is looked for by its first `_HEAD` bytes and then compared: long ones cost no more than short ones.
    """

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self.sorted = sorted({value.strip() for value in values} - {b""})
        self.longest = max(map(len, self.sorted), default=0)
        #: By their head, the longest first.
        self._by_head: dict[bytes, list[bytes]] = {}
        for phrase in reversed(self.sorted):
            self._by_head.setdefault(phrase[:_HEAD], []).append(phrase)
        self._sizes = sorted(set(map(len, self._by_head)), reverse=True)
        self._find = Search(list(self._by_head))
        self._openings = Search(sorted({phrase[:_OPENING] for phrase in self.sorted if len(phrase) > _OPENING}))
        self._starts = frozenset(
            phrase[:size] for phrase in self.sorted for size in range(1, min(len(phrase), _OPENING))
        )

    def __len__(self) -> int:
        return len(self.sorted)

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Start and end of each stretch of `data` that phrases cover, in order; overlapping ones are one stretch."""
        spans: list[tuple[int, int]] = []
        reached = 0
        for first, last in self._find(data):
            # a head that begins inside another one is not found
            place = max(first, reached)
            while place < last:
                end = self._end(data, place, last - first if place == first else _HEAD)
                if end:
                    reached = self._reached(data, place, end)
                    spans.append((place, reached))
                place = max(place + 1, reached)
        return spans

    def pending(self, data: bytes) -> int:
        """Index of the first byte of `data` whose rest may be the start of a phrase; the length when none is."""
        return next(self._open_places(data, 0, len(data)), len(data))

    def _end(self, data: bytes, place: int, size: int) -> int:
        """Where the longest phrase ends that begins at `place` with a head of up to `size` bytes; 0 without one."""
        for length in self._sizes:
            if length <= size:
                for phrase in self._by_head.get(data[place : place + length], ()):
                    if data.startswith(phrase, place):
                        return place + len(phrase)
        return 0

    def _reached(self, data: bytes, start: int, end: int) -> int:
        """Where the stretch that begins with the match from `start` to `end` really ends.

        Phrases may begin inside the match and end behind it; others may begin inside those.
        """
        while True:
            places = self._open_places(data, start, end)
            grown, place = max(((self._reach(data, place, end), place) for place in places), default=(end, end))
            if grown == end:
                return end
            start, end = end, _repeated(data, data[place:grown], grown - end, grown)

    def _reach(self, data: bytes, place: int, end: int) -> int:
        """Where the longest phrase ends that begins at `place` and reaches beyond `end`; `end` without one."""
        rest = data[place:end]
        longest = end
        for index in range(bisect_right(self.sorted, rest), len(self.sorted)):
            phrase = self.sorted[index]
            if not phrase.startswith(rest):
                break
            # longer ones follow
            if data.startswith(phrase, place):
                longest = place + len(phrase)
        return longest

    def _open_places(self, data: bytes, start: int, end: int) -> Iterator[int]:
        """Places, in order, from which the bytes up to `end` are the beginning of a phrase but not all of it."""
        start = max(start, end - self.longest + 1)
        if end - start >= _OPENING:
            for first, last in self._openings(data[start:end]):
                # an opening that begins inside another one is not found
                for place in range(start + first, start + last):
                    if self._goes_on(data[place:end]):
                        yield place
        for place in range(max(start, end - _OPENING + 1), end):
            if data[place:end] in self._starts:
                yield place

    def _goes_on(self, rest: bytes) -> bool:
        index = bisect_right(self.sorted, rest)
        return index < len(self.sorted) and self.sorted[index].startswith(rest)


def _repeated(data: bytes, phrase: bytes, shift: int, end: int) -> int:
    """Where a row of `phrase`, each `shift` bytes behind the one before, ends; the first one ends at `end`.

    A secret of one repeated character meets lines of thousands of them.
    """
    if phrase[shift:] != phrase[:-shift]:
        return end
    row = re.compile(b"(?:" + re.escape(phrase[-shift:]) + b")*").match(data, end)
    return row.end() if row else end


class PhraseFilter:
    """Replaces every stretch covered by phrases with one `MASK`.

    `current` tells the phrases to look for; it is asked for each piece. Held back is only what may turn out to be the
    start of a phrase.
    """

    def __init__(self, current: Callable[[], Phrases]) -> None:
        self._current = current
        self._held = b""
        #: So many bytes at the start of `_held` are covered by a mask that is already out.
        self._covered = 0

    def feed(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`."""
        phrases = self._current()
        buffer = self._held + data if self._held else data
        return self._release(phrases, buffer, phrases.pending(buffer))

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        return self._release(self._current(), self._held, len(self._held)) if self._held else b""

    def _release(self, phrases: Phrases, buffer: bytes, until: int) -> bytes:
        spans = phrases.spans(buffer)
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
