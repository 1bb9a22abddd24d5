"""What a failing provider may say in a message, and what may not be shown."""

from __future__ import annotations

import json
from contextlib import closing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets import spec
from pyrunner.secrets.errors import SecretOutageError
from pyrunner.secrets.exchange import Request, error_text
from pyrunner.secrets.spec import AwsSpec, VaultSpec, read_spec
from tests.unit.secrets.stores import Gcp, Reply, quick_caller


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"errors": ["permission denied"]}, "permission denied"),
        ({"errors": [], "warnings": ["Invalid path"]}, "Invalid path"),
        ({"error": {"code": 403, "status": "DENIED", "message": "no"}}, "DENIED: no"),
        ({"error": "invalid_grant", "error_description": "bad\r\nTrace ID: 1"}, "invalid_grant: bad"),
        ({"__type": "X", "Message": "m"}, "X: m"),
        (["x"], ""),
        ("x", ""),
    ],
)
def test_error_bodies(body: object, text: str) -> None:
    assert error_text(json.dumps(body).encode()) == text


def test_error_bodies_that_are_no_json() -> None:
    assert error_text(b"<a><Error><Code>Denied</Code><Message>no\x1b[0m</Message></Error></a>") == "Denied: no [0m"
    assert error_text(b"<html>hello</html>") == ""


@given(st.binary(max_size=200) | st.text(max_size=400).map(lambda text: json.dumps({"error": text}).encode()))
def test_any_body_gives_one_short_printable_line(body: bytes) -> None:
    text = error_text(body)
    assert text.isprintable()
    assert len(text) <= 300


def test_tokens_are_hidden_in_failures_and_causes(gcp: Gcp) -> None:
    gcp.fail("x", Reply(500, {"error": "token abcdefghij-long and abcdefghij refused"}))
    with closing(quick_caller()) as caller:
        caller.hide("abcdefghij", "abcdefghij-long", "", "ok")
        with pytest.raises(SecretOutageError, match=r"token \[MASKED\] and \[MASKED\] refused") as caught:
            caller.call(Request(method="GET", url=f"{gcp.url}/x?token=abcdefghij"), CancelToken())
        with pytest.raises(SecretOutageError, match="line break") as broken:
            caller.call(Request(method="GET", url=gcp.url, headers={"X": "abcdefghij\n"}), CancelToken())
    for error in (caught.value, broken.value):
        assert "abcdefghij" not in str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None


def test_body_of_a_good_answer_is_never_quoted(gcp: Gcp) -> None:
    class Wanted(msgspec.Struct):
        data: int

    gcp.fail("x", Reply(200, {"data": "topsecret", "message": "topsecret"}))
    with closing(quick_caller()) as caller:
        response = caller.call(Request(method="GET", url=f"{gcp.url}/x"), CancelToken())
        with pytest.raises(SecretOutageError) as caught:
            caller.read(response, Wanted)
        assert "topsecret" not in str(caught.value) + caller.failure(response)


def test_specs_show_nothing() -> None:
    payload = {"server": {"url": "https://vault.test", "auth": {"data": {"jwt": "topsecret"}}}, "path": "a"}
    shown = read_spec(VaultSpec, payload)
    assert repr(shown) == "VaultSpec(…)"
    assert repr(shown.server) == "VaultServer(…)"
    kinds = [kind for kind in vars(spec).values() if isinstance(kind, type) and issubclass(kind, spec.Spec)]
    assert all(repr(kind()) == f"{kind.__name__}(…)" for kind in kinds)


def test_unknown_keys_and_nulls_are_lenient() -> None:
    payload = {"secret_id": "x", "field": None, "server": {"jwt": None, "future": 1}, "future": {}}
    assert read_spec(AwsSpec, payload) == AwsSpec(secret_id="x")


def test_expansion_reaches_nested_strings_only() -> None:
    payload = {"path": "a", "server": {"auth": {"data": {"jwt": "b", "number": 3, "list": ["c"]}}}}
    read = read_spec(VaultSpec, payload, str.upper)
    assert read.path == "A"
    assert read.server.auth.data == {"jwt": "B", "number": 3, "list": ["C"]}
