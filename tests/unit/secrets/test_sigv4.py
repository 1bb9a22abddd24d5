"""Signatures of AWS: known ones, and what must not change them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.secrets.exchange import Request
from pyrunner.secrets.sigv4 import Credentials, Scope, signed, signing_key

#: The example key, moment and scope of AWS's documentation.
KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
SCOPE = Scope(region="us-east-1", service="service")


def sign(request: Request, scope: Scope = SCOPE, *, token: str = "", now: datetime = NOW) -> str:
    """Signed names and signature."""
    credentials = Credentials(key_id="AKIDEXAMPLE", secret=KEY, session_token=token)
    return signed(request, credentials, scope, now).headers["Authorization"].partition("SignedHeaders=")[2]


@pytest.mark.parametrize(
    ("url", "signature"),
    [
        ("", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        ("ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        # a path that is encoded already is encoded again
        ("%E1%88%B4", "697b34846207a3f72246f99d74ae1ee4fe54f44bb06730c58a0d339eb079596d"),
        ("example%20space/", "446b817944c553435b35e813c261ff4e161fff982d1bacdef1c87f6785dd1662"),
        ("?a=b%20c&A=%2F&a=a&z&%C3%A9=~", "2daa5b3b2b1dd8e92c7431a8aee88b060e402ad1c5a760f180d11a17f682eed9"),
    ],
)
def test_known_signatures_of_urls(url: str, signature: str) -> None:
    request = Request(method="GET", url=f"https://example.amazonaws.com/{url}")
    assert sign(request) == f"host;x-amz-date, Signature={signature}"


def test_known_signature_of_the_documentation() -> None:
    request = Request(
        method="GET",
        url="https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
    )
    assert sign(request, Scope(region="us-east-1", service="iam")) == (
        "content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


def test_known_signature_of_a_secret_request_with_a_session() -> None:
    request = Request(
        method="POST",
        url="https://secretsmanager.eu-central-1.amazonaws.com/",
        headers={"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "secretsmanager.GetSecretValue"},
        body=b'{"SecretId":"app/db"}',
    )
    scope = Scope(region="eu-central-1", service="secretsmanager")
    assert sign(request, scope, token="a//session+token==") == (
        "content-type;host;x-amz-date;x-amz-security-token;x-amz-target, "
        "Signature=02429140d16dd8e46592f5a8a61caa3bae6329a5d7991cd8247b77223a890982"
    )


def test_port_and_white_space_in_headers() -> None:
    url, body = "http://127.0.0.1:4566/base/", b"x"
    request = Request(method="POST", url=url, headers={"My-Header": "  a   b  c "}, body=body)
    assert sign(request).endswith("31ebedd6614e4d57e648520de468d70ea80c082771ba005dbd870e56b4acdf02")


def test_known_signing_key() -> None:
    key = signing_key(KEY, "20150830/us-east-1/iam/aws4_request")
    assert key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


@given(hours=st.integers(-12, 14), order=st.permutations(["Bee", "aye", "CEE"]))
def test_neither_time_zone_nor_order_nor_case_of_headers_matters(hours: int, order: list[str]) -> None:
    headers = {name: "x" for name in order}
    request = Request(method="POST", url="https://example.com/", headers=headers, body=b"x")
    same = Request(method="POST", url=request.url, headers={"bee": "x", "Aye": "x", "cee": " x "}, body=b"x")
    assert sign(request, now=NOW.astimezone(timezone(timedelta(hours=hours)))) == sign(same)


@given(body=st.binary(max_size=64), other=st.binary(max_size=64))
def test_a_signature_is_good_for_one_body(body: bytes, other: bytes) -> None:
    first, second = (sign(Request(method="POST", url="https://example.com/", body=data)) for data in (body, other))
    assert (first == second) == (body == other)


def test_nothing_of_a_key_is_shown() -> None:
    credentials = Credentials(key_id="AKIDEXAMPLE", secret=KEY, session_token="session")
    request = signed(Request(method="GET", url="https://example.com/"), credentials, SCOPE, NOW)
    assert repr(credentials) == "Credentials(key_id='AKIDEXAMPLE')"
    assert repr(request) == "Request(method='GET', url='https://example.com/')"
