"""Secrets out of a stream: phrases, URL parameters, token prefixes, in this order (facts/job-lifecycle.md 5.6).

Every filter has ``feed(data) -> bytes`` and ``flush() -> bytes`` and gives the same output however the stream is cut. A
filter holds back only what may turn out to be the start of a secret, so never more than the longest one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from pyrunner.job.trace.forms import forms
from pyrunner.job.trace.phrases import PhraseFilter, Phrases
from pyrunner.job.trace.runs import DEFAULT_PREFIX, RunFilter, token_rule, url_rule


class Masks:
    """The values that one job's log must not show, in any of their `forms`; grows. Safe from any thread."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self._lock = threading.Lock()
        self._values: set[bytes] = set()
        self._forms: set[bytes] = set()
        self._phrases: Phrases | None = None
        self.add(values)

    def add(self, values: Iterable[bytes]) -> None:
        """Mask `values` too, in whatever is fed to a filter from now on."""
        with self._lock:
            new = set(values) - self._values
            self._values |= new
            added = set().union(*map(forms, new)) - self._forms
            if added:
                self._forms |= added
                self._phrases = None

    def phrases(self) -> Phrases:
        """What to look for now."""
        phrases = self._phrases
        if phrases is None:
            # only now: values often come one by one, with nothing in between
            with self._lock:
                phrases = self._phrases = Phrases(self._forms)
        return phrases


class Masker:
    """All filters of one stream, in their order."""

    def __init__(self, masks: Masks, prefixes: Sequence[str] = (DEFAULT_PREFIX,)) -> None:
        self._phrases = PhraseFilter(masks.phrases)
        self._runs = [RunFilter(url_rule())]
        if any(prefixes):
            self._runs.append(RunFilter(token_rule(tuple(prefixes))))

    def feed(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`."""
        return self._without_runs(self._phrases.feed(data))

    def insert(self, data: bytes) -> bytes:
        """Masked output that is certain after `data`, in which there are no phrases."""
        return self._without_runs(self._phrases.flush() + data)

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        data = self._phrases.flush()
        for run in self._runs:
            data = (run.feed(data) if data else b"") + run.flush()
        return data

    def _without_runs(self, data: bytes) -> bytes:
        for run in self._runs:
            if data:
                data = run.feed(data)
        return data
