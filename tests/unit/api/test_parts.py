"""The pure parts of the client: URLs, tokens, retry delays, proxies, and the reader of answers under fuzz."""

from __future__ import annotations

import contextlib
import socket
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.api.answer import Answer, CutShortError, ProtocolError
from pyrunner.api.errors import ClientError
from pyrunner.api.info import client_info
from pyrunner.api.proxy import Proxies
from pyrunner.api.retry import RetryPolicy, is_retriable
from pyrunner.api.tokens import is_authentication_token, short_token
from pyrunner.api.urls import api_base, clean_url, has_ci_suffix, parse_target


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://host", "https://host/api/v4/"),
        ("https://host///", "https://host/api/v4/"),
        ("https://host/ci/", "https://host/api/v4/"),
        ("https://host/ci/ci", "https://host/ci/api/v4/"),
        ("https://host/gitlab", "https://host/gitlab/api/v4/"),
    ],
)
def test_the_base_url_is_cleaned_up(url: str, base: str) -> None:
    assert api_base(url) == base
    assert has_ci_suffix(url) == ("/ci" in url)


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://user:pw@host:8443/a/b?token=1#x", "https://host:8443/a/b"),
        ("https://token@host/a", "https://host/a"),
        ("http://us@er:p@w@host/", "http://host/"),
        ("http://user:pw@[::1", "[::1"),
        ("", ""),
    ],
)
def test_a_clean_url_holds_no_secret(url: str, clean: str) -> None:
    assert clean_url(url) == clean


@given(st.text())
def test_any_text_is_a_target_or_a_client_error(text: str) -> None:
    clean_url(text)
    with contextlib.suppress(ClientError):
        target = parse_target(text)
        assert target.path.isascii()
        assert not set(target.path) & set(" \r\n")
        assert target.host.isascii()


@pytest.mark.parametrize(
    ("token", "short"),
    [
        ("glrt-t1_abcdefghijklm", "abcdefghi"),
        ("glrt-abcdefghijklm", "abcdefghi"),
        ("glrt-abc", "abc"),
        ("glrt-", ""),
        ("t3_abcdefghijklm", "abcdefghi"),
        ("glrtr-abcdefghijklm", "abcdefghi"),
        ("glcbt-64_abcdefghijk", "64_abcdef"),
        ("GR1348941abcdefghijk", "abcdefghi"),
        ("GRnothex12abcdefghijk", "GRnothex1"),
        ("abcdefghijklm", "abcdefghi"),
        ("", ""),
    ],
)
def test_short_tokens(token: str, short: str) -> None:
    assert short_token(token) == short


def test_token_kinds() -> None:
    assert is_authentication_token("glrt-x")
    assert not is_authentication_token("glrtr-x")
    assert not is_authentication_token("GR1348941x")


@given(st.integers(min_value=100, max_value=999))
def test_retriable_statuses(status: int) -> None:
    assert is_retriable(status) == (status in (408, 429, 500, 502, 503, 504) or status >= 512)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "1" * 400}, 111111111.0),
        ({"RateLimit-ResetTime": format_datetime(NOW.replace(second=30), usegmt=True)}, 30.0),
        ({"RateLimit-ResetTime": format_datetime(NOW.replace(second=30), usegmt=True), "Retry-After": "7"}, 30.0),
        ({"RateLimit-ResetTime": format_datetime(NOW.replace(year=2025), usegmt=True), "Retry-After": "7"}, 7.0),
        ({"RateLimit-ResetTime": "nonsense", "Retry-After": "7"}, 7.0),
        ({}, None),
    ],
)
def test_what_the_server_asks_for_comes_first(headers: dict[str, str], delay: float | None) -> None:
    policy = RetryPolicy(jitter=lambda _low, high: high)
    found = policy.delay(1, lambda name: headers.get(name, ""), NOW)
    assert found == (0.1 if delay is None else delay)


@given(st.integers(min_value=1, max_value=10_000))
def test_pauses_double_up_to_a_minute(attempt: int) -> None:
    step = RetryPolicy(jitter=lambda _low, high: high).delay(attempt, lambda _name: "")
    assert step == min(60.0, 0.1 * 2 ** (min(attempt, 100) - 1))
    assert 0.1 <= RetryPolicy().delay(attempt, lambda _name: "") <= step


def via(url: str, **environment: str) -> str | None:
    proxy = Proxies(environment).of(parse_target(url))
    return proxy.address if proxy else None


def test_proxies_of_the_environment() -> None:
    assert via("http://host/", HTTP_PROXY="http://p:1") == "p:1"
    assert via("http://host/", http_proxy="p:1") == "p:1"
    assert via("https://host/", HTTP_PROXY="http://p:1") is None
    assert via("https://host/", https_proxy="http://u:s@p:1/") == "p:1"
    assert via("http://host/", HTTP_PROXY="http://p:1", REQUEST_METHOD="GET") is None
    for local in ("localhost", "127.0.0.1", "127.8.9.1", "[::1]"):
        assert via(f"http://{local}/", HTTP_PROXY="http://p:1") is None


@pytest.mark.parametrize(
    ("entry", "url", "direct"),
    [
        ("*", "http://any/", True),
        ("host", "http://host/", True),
        ("host", "http://sub.host/", True),
        ("host", "http://otherhost/", False),
        (".host", "http://host/", False),
        (".host", "http://sub.host/", True),
        ("*.host", "http://sub.host/", True),
        ("HOST", "http://host/", True),
        ("host:80", "http://host/", True),
        ("host:81", "http://host/", False),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.0.0.0/8", "http://11.1.2.3/", False),
        ("10.0.0.0/8", "http://host/", False),
        ("fe80::/10", "http://[fe80::1]/", True),
        ("a, b ,host", "http://host/", True),
        ("", "http://host/", False),
    ],
)
def test_exceptions_from_proxies(entry: str, url: str, direct: bool) -> None:
    assert (via(url, HTTP_PROXY="http://p:1", NO_PROXY=entry) is None) == direct


def test_other_proxies_are_refused_clearly() -> None:
    with pytest.raises(ClientError, match="only http:// proxies are supported|must start with"):
        via("https://host/", HTTPS_PROXY="https://p:1")
    with pytest.raises(ClientError):
        via("https://host/", HTTPS_PROXY="socks5://p:1")


def read(data: bytes, method: str = "GET") -> tuple[Answer, bytes]:
    """Read `data`, then the end of the connection, as an answer."""
    left, right = socket.socketpair()
    with left, right:
        right.sendall(data)
        right.shutdown(socket.SHUT_WR)
        answer = Answer(left)
        answer.read_head(method, 5)
        return answer, b"".join(bytes(piece) for piece in answer.pieces(time.monotonic() + 5))


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        with contextlib.suppress(ProtocolError, CutShortError):
            read(start + data)


BODY = st.binary(max_size=5000)


@given(BODY, st.lists(st.integers(min_value=1, max_value=700), max_size=8))
def test_a_chunked_body_comes_out_whole_and_any_cut_of_it_is_noticed(body: bytes, sizes: list[int]) -> None:
    pieces, rest = [], body
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    chunks = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, rest) if piece)
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: x\r\n\r\n"
    answer, found = read(whole)
    assert found == body
    assert answer.finished
    for cut in {len(whole) // 3, len(whole) // 2, len(whole) - 3}:
        with pytest.raises((ProtocolError, CutShortError)):
            read(whole[:cut])


def test_interim_answers_are_skipped() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    answer, body = read(early + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert (answer.status, body, answer.finished) == (200, b"ok", True)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2, 3",
        b"Content-Length: -2",
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Transfer-Encoding: gzip",
        b"no colon",
        b" Content-Length: 2",
        b"Content-Length : 2",
    ],
)
def test_ambiguous_heads_are_refused(head: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nokk")


def test_a_connection_is_only_kept_when_both_ends_agree_where_the_answer_ends() -> None:
    assert not read(b"HTTP/1.1 200 OK\r\n\r\nto the end")[0].finished
    assert not read(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx")[0].finished
    assert not read(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")[0].finished
    assert not read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200")[0].finished
    both = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    assert read(both)[1] == b"x"
    assert not read(both)[0].finished
    assert read(b"HTTP/1.1 204 No\r\n\r\n")[0].finished
    assert read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD")[0].finished


def test_registration_tells_only_what_every_client_can() -> None:
    info = client_info()
    assert info.executor == info.shell == ""
    assert info.features is not None
    assert info.features.trace_checksum
    assert not info.features.artifacts
