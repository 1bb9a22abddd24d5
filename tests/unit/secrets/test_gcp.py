"""``gcp_secret_manager`` against a token service and a store that check tokens and names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.crc32c import crc32c
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from pyrunner.secrets.gcp import GcpSource
from tests.unit.secrets.stores import DROP, HANG, Gcp, Reply, make_jwt, quick_caller, slow_crc32c, unchanged


@pytest.fixture
def source(gcp: Gcp) -> Iterator[GcpSource]:
    with closing(GcpSource(gcp.url, gcp.url, quick_caller())) as source:
        yield source


def spec(gcp: Gcp, **changes: Any) -> dict[str, Any]:
    server = {
        "project_number": "1234",
        "workload_identity_federation_pool_id": "pool",
        "workload_identity_federation_provider_id": "gitlab",
        "jwt": make_jwt(gcp.audience),
    }
    return {"name": "db", "version": "", "server": server, **changes}


def resolve(source: GcpSource, payload: dict[str, Any]) -> str:
    return source.resolve(payload, unchanged, CancelToken())


def test_latest_version_is_read_with_one_login(gcp: Gcp, source: GcpSource) -> None:
    gcp.secrets["projects/1234/secrets/db/versions/latest"] = "pä55\n".encode()
    gcp.secrets["projects/1234/secrets/db/versions/3"] = b""
    payload = spec(gcp)
    assert resolve(source, payload) == "pä55\n"
    assert resolve(source, payload | {"version": "3"}) == ""
    assert [asked.method for asked in gcp.asked] == ["POST", "GET", "GET"]


def test_secret_of_another_project(gcp: Gcp, source: GcpSource) -> None:
    gcp.secrets["projects/99/secrets/db/versions/latest"] = b"x"
    assert resolve(source, spec(gcp, name="projects/99/secrets/db")) == "x"


@pytest.mark.parametrize("name", ["a/b", "projects/1/secrets/x/versions/1", "projects//secrets/x"])
def test_unknown_form_of_name(gcp: Gcp, source: GcpSource, name: str) -> None:
    with pytest.raises(SecretConfigError, match="unknown form of secret name"):
        resolve(source, spec(gcp, name=name))
    assert gcp.asked == []


def test_missing_secret(gcp: Gcp, source: GcpSource) -> None:
    with pytest.raises(SecretMissingError, match=r"404 Not Found \(NOT_FOUND: Secret \[projects/1234/secrets/db"):
        resolve(source, spec(gcp))


def test_incomplete_spec(gcp: Gcp, source: GcpSource) -> None:
    with pytest.raises(SecretConfigError, match='"server.jwt" is empty'):
        resolve(source, spec(gcp, server=spec(gcp)["server"] | {"jwt": ""}))


def test_refused_token_is_the_runners_matter(gcp: Gcp, source: GcpSource) -> None:
    server = spec(gcp)["server"] | {"jwt": make_jwt(gcp.audience, key=b"forged")}
    with pytest.raises(SecretError, match=r"400 .* \(invalid_grant: error verifying token signature\)") as caught:
        resolve(source, spec(gcp, server=server))
    assert caught.value.reason == "runner_system_failure"


def test_damaged_secret_is_noticed(gcp: Gcp, source: GcpSource) -> None:
    gcp.secrets["projects/1234/secrets/db/versions/latest"] = b"topsecret"
    gcp.damage = True
    with pytest.raises(SecretOutageError, match="checksum does not match"):
        resolve(source, spec(gcp))


def test_binary_secret_is_refused(gcp: Gcp, source: GcpSource) -> None:
    gcp.secrets["projects/1234/secrets/db/versions/latest"] = b"\xff\xfe"
    with pytest.raises(SecretConfigError, match="is binary: only UTF-8"):
        resolve(source, spec(gcp))


@pytest.mark.parametrize("place", ["token", "access"])
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(403, {"error": {"status": "PERMISSION_DENIED", "message": "no"}}), SecretConfigError),
        (Reply(401), SecretError),
        (Reply(503), SecretOutageError),
        (Reply(200, b"nope"), SecretOutageError),
        (Reply(200, {"payload": {"data": "!!!"}, "access_token": 1}), SecretOutageError),
        (DROP, SecretOutageError),
    ],
)
def test_failing_server(gcp: Gcp, source: GcpSource, place: str, reply: Reply, kind: type[SecretError]) -> None:
    gcp.secrets["projects/1234/secrets/db/versions/latest"] = b"x"
    gcp.fail(place, reply)
    with pytest.raises(SecretError) as caught:
        resolve(source, spec(gcp))
    # a refused login is not the job's to mend
    assert type(caught.value) is (SecretError if kind is SecretConfigError and place == "token" else kind)


def test_silent_server_is_an_outage(gcp: Gcp) -> None:
    gcp.fail("access", HANG)
    with (
        closing(GcpSource(gcp.url, gcp.url, quick_caller(timeout=0.2))) as source,
        pytest.raises(SecretOutageError, match="no answer within"),
    ):
        resolve(source, spec(gcp))


def test_known_checksum() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300))
def test_checksum_is_that_of_the_definition(data: bytes) -> None:
    assert crc32c(data) == slow_crc32c(data)
