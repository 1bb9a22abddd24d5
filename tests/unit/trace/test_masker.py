"""Secrets never get through, however the stream is cut."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pyrunner.job.trace import phrases as phrases_module
from pyrunner.job.trace import search as search_module
from pyrunner.job.trace.masker import Masker, Masks
from pyrunner.job.trace.phrases import MASK, PhraseFilter, Phrases
from pyrunner.job.trace.runs import URL_PARAMETERS, RunFilter, token_rule, url_rule

#: Few letters make secrets that overlap, contain and repeat each other.
LETTERS = st.sampled_from([b"a", b"b", b"ab", b"\xc3", b"\n"])
PIECES = st.lists(LETTERS, min_size=1, max_size=6).map(b"".join)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(place, len(data)) for place in cuts} | {0, len(data)})
    return [data[first:last] for first, last in itertools.pairwise(places)] or [b""]


def phrase_filter(values: list[bytes]) -> PhraseFilter:
    phrases = Phrases(values)
    return PhraseFilter(lambda: phrases)


def filtered(filter_: PhraseFilter | RunFilter | Masker, pieces: list[bytes]) -> bytes:
    return b"".join([filter_.feed(piece) for piece in pieces]) + filter_.flush()


def reference(data: bytes, secrets: list[bytes]) -> bytes:
    """Every byte that any occurrence covers is gone; overlapping occurrences leave one mask."""
    spans = sorted(
        (start, start + len(secret))
        for secret in {secret.strip() for secret in secrets} - {b""}
        for start in range(len(data))
        if data.startswith(secret, start)
    )
    merged: list[list[int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    out, place = b"", 0
    for start, end in merged:
        out += data[place:start] + MASK
        place = end
    return out + data[place:]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(LETTERS, max_size=40).map(b"".join),
    st.lists(PIECES, min_size=1, max_size=6),
    st.lists(st.integers(0, 60), max_size=8),
)
@example(b"aaaa", [b"aa"], [1, 3])
@example(b"abababab", [b"abab", b"babb"], [2])
def test_any_split_masks_like_the_whole(data: bytes, secrets: list[bytes], cuts: list[int]) -> None:
    assert filtered(phrase_filter(secrets), cut(data, cuts)) == reference(data, secrets)


@pytest.fixture(params=[(2, 1, 1), (3, 2, 2), (5, 4, 60)])
def small_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads, openings and groups so small that short texts have all their cases."""
    head, opening, group = request.param
    monkeypatch.setattr(phrases_module, "_HEAD", head)
    monkeypatch.setattr(phrases_module, "_OPENING", opening)
    monkeypatch.setattr(search_module, "_GROUP", group)


@pytest.mark.usefixtures("small_parts")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(LETTERS, max_size=60).map(b"".join),
    st.lists(st.lists(LETTERS, min_size=1, max_size=12).map(b"".join), min_size=1, max_size=8),
    st.lists(st.integers(0, 80), max_size=8),
)
@example(b"ab" * 30, [b"ab" * 4, b"ba" * 5], [7, 8, 31])
@example(b"aaaaaaab" * 4, [b"aaaab", b"aaaaaaaaa", b"aabaa"], [3])
def test_long_phrases_mask_like_the_whole(data: bytes, secrets: list[bytes], cuts: list[int]) -> None:
    assert filtered(phrase_filter(secrets), cut(data, cuts)) == reference(data, secrets)


@pytest.mark.parametrize("size", [31, 32, 33, 36, 37, 200])
@pytest.mark.parametrize("piece", [1, 5, 33, 1000])
def test_phrases_around_the_length_of_a_head(size: int, piece: int) -> None:
    secret = (b"0123456789abcdefghijklmnopqrstuvwxyz" * 6)[:size]
    secrets = [secret, secret[:-1] + b"!", secret[5:20], secret + secret]
    data = b"<" + secret + b">" + secret[:-1] + b"?" + secret[:-1] + b"!" + secret * 5 + secret[:-2]
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    assert filtered(phrase_filter(secrets), pieces) == reference(data, secrets)


SECRET = (
    st.binary(min_size=4, max_size=40).map(bytes.strip).filter(lambda secret: len(secret) >= 4 and secret not in MASK)
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_fifty_secrets_in_any_text_never_appear(data: st.DataObject) -> None:
    secrets = data.draw(st.lists(SECRET, min_size=1, max_size=50))
    parts = data.draw(st.lists(st.one_of(st.sampled_from(secrets), st.binary(max_size=30)), max_size=30))
    text = b"".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=20))
    masked = filtered(phrase_filter(secrets), cut(text, cuts))
    assert masked == reference(text, secrets)
    for rest in masked.split(MASK):
        assert not any(secret in rest for secret in secrets)


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(1, 30))
def test_text_without_secrets_passes_unchanged(data: bytes, size: int) -> None:
    masker = Masker(Masks([b"no such secret in any text"]))
    assert filtered(masker, [data[i : i + size] for i in range(0, len(data), size)]) == data


def test_held_back_is_only_what_may_become_a_secret() -> None:
    masker = phrase_filter([b"password"])
    assert masker.feed(b"enter the ") == b"enter the "
    assert masker.feed(b"pass") == b""
    assert masker.feed(b"port") == b"passport"


def test_phrases_are_trimmed_and_empty_ones_dropped() -> None:
    phrases = Phrases([b"  s3cret\n", b" ", b"", b"s3cret"])
    assert len(phrases) == 1
    assert filtered(PhraseFilter(lambda: phrases), [b"<s3cret>"]) == b"<[MASKED]>"


def test_longest_phrase_wins() -> None:
    assert filtered(phrase_filter([b"abc", b"abcdef"]), [b"abcdef abcd"]) == b"[MASKED] [MASKED]d"


def test_mask_added_in_mid_stream_covers_what_comes() -> None:
    masks = Masks([b"first"])
    masker = Masker(masks)
    out = masker.feed(b"first second ")
    masks.add([b"second"])
    out += masker.feed(b"sec") + masker.feed(b"ond first") + masker.flush()
    assert out == b"[MASKED] second [MASKED] [MASKED]"


def test_first_phrases_of_a_stream_that_had_none() -> None:
    masks = Masks()
    masker = Masker(masks)
    out = masker.feed(b"open ")
    masks.add([b"open"])
    assert out + masker.feed(b"open") + masker.flush() == b"open [MASKED]"


def test_separator_line_as_a_secret_is_masked_in_linear_time() -> None:
    data = b"=" * 300_000
    assert filtered(phrase_filter([b"===="]), [data]) == MASK


TOKEN_PREFIXES = ("glpat-", "gl", "_gitlab_session=", "tok[", "glrt-")
TOKEN_TEXT = st.lists(
    st.sampled_from([b"glpat-", b"gl", b"pat-", b"tok[", b"tok", b"[", b"aZ9", b"._=-", b" ", b"\n", b"glrt-"]),
    max_size=20,
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(TOKEN_TEXT, st.lists(st.integers(0, 80), max_size=8))
def test_token_prefixes_in_any_split(data: bytes, cuts: list[int]) -> None:
    rule = token_rule(TOKEN_PREFIXES)
    whole = re.compile(rb"(gl|tok\[|glrt-|glpat-|_gitlab_session=)[0-9A-Za-z._=-]+").sub(rb"\1[MASKED]", data)
    assert filtered(RunFilter(rule), cut(data, cuts)) == whole


URL_TEXT = st.lists(
    st.sampled_from(
        [b"?", b"&", b"private_token=", b"Private_", b"TOKEN=", b"x-amz-", b"signature=", b"v", b"=", b" ", b"\t"]
    ),
    max_size=20,
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(URL_TEXT, st.lists(st.integers(0, 120), max_size=8))
def test_url_parameters_in_any_split(data: bytes, cuts: list[int]) -> None:
    keys = "|".join(map(re.escape, URL_PARAMETERS)).encode()
    whole = re.compile(rb"([?&](?:" + keys + rb")=)[^?&\s\x00-\x20\x7f]*", re.IGNORECASE).sub(rb"\1[MASKED]", data)
    assert filtered(RunFilter(url_rule()), cut(data, cuts)) == whole


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (b"token glpat-abc_x/y end", b"token glpat-[MASKED]/y end"),
        (b"token glpat-abc.DEF=1-2 end", b"token glpat-[MASKED] end"),
        (b"nothing behind glpat- here", b"nothing behind glpat- here"),
        (b"https://x/?private_token=abc&x=1", b"https://x/?private_token=[MASKED]&x=1"),
        (b"https://x/?a=1&X-AMZ-Signature=ab%20c z", b"https://x/?a=1&X-AMZ-Signature=[MASKED] z"),
        (b"private_token=abc", b"private_token=abc"),
        (b"glpat-s3cret", b"glpat-[MASKED]"),
    ],
)
def test_all_filters_together(text: bytes, masked: bytes) -> None:
    assert filtered(Masker(Masks([b"s3cret"])), [text]) == masked
    assert filtered(Masker(Masks([b"s3cret"])), [bytes([byte]) for byte in text]) == masked


def test_only_the_fifteen_shortest_prefixes_count() -> None:
    prefixes = tuple(f"p{'x' * n}-" for n in range(20))
    masker = Masker(Masks(), prefixes)
    assert filtered(masker, [b"p-a pxxxxxxxxxxxxxxxxxxx-a"]) == b"p-[MASKED] pxxxxxxxxxxxxxxxxxxx-a"
