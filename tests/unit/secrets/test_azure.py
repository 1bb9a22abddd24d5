"""``azure_key_vault`` against a login and a key vault that check tokens and names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.azure import AzureSource, cloud_of
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from tests.unit.secrets.stores import DROP, HANG, Azure, Reply, make_jwt, quick_caller, unchanged


@pytest.fixture
def source(azure: Azure) -> Iterator[AzureSource]:
    with closing(AzureSource({"AZURE_AUTHORITY_HOST": azure.url}, quick_caller())) as source:
        yield source


def spec(azure: Azure, **changes: Any) -> dict[str, Any]:
    server = {
        "client_id": "client-1",
        "tenant_id": "tenant-1",
        "jwt": make_jwt(azure.audience),
        "url": f"{azure.url}/",
    }
    return {"name": "db", "version": "", "server": server, **changes}


def resolve(source: AzureSource, payload: dict[str, Any]) -> str:
    return source.resolve(payload, unchanged, CancelToken())


def test_versions_are_read_with_one_login(azure: Azure, source: AzureSource) -> None:
    azure.secrets |= {"db": "new", "db/0123": "old"}
    payload = spec(azure)
    assert resolve(source, payload) == "new"
    assert resolve(source, payload | {"version": "0123"}) == "old"
    assert [asked.method for asked in azure.asked] == ["POST", "GET", "GET"]


def test_missing_secret(azure: Azure, source: AzureSource) -> None:
    with pytest.raises(SecretMissingError, match=r"404 Not Found \(SecretNotFound: A secret with \(name/id\) db"):
        resolve(source, spec(azure))


def test_secret_without_a_value(azure: Azure, source: AzureSource) -> None:
    azure.fail("secrets", Reply(200, {"id": "x"}))
    with pytest.raises(SecretMissingError, match="the secret has no value"):
        resolve(source, spec(azure))


def test_incomplete_spec(azure: Azure, source: AzureSource) -> None:
    for name in ("url", "client_id", "tenant_id", "jwt"):
        with pytest.raises(SecretConfigError, match=f'"server.{name}" is empty'):
            resolve(source, spec(azure, server=spec(azure)["server"] | {name: ""}))


def test_unusable_url(azure: Azure, source: AzureSource) -> None:
    with pytest.raises(SecretConfigError, match="must start with http"):
        resolve(source, spec(azure, server=spec(azure)["server"] | {"url": "vault.test"}))


def test_refused_assertion_is_the_runners_matter(azure: Azure, source: AzureSource) -> None:
    server = spec(azure)["server"] | {"jwt": make_jwt("another")}
    words = r"401 Unauthorized \(invalid_client: AADSTS700213: invalid audience \(aud\) claim\)$"
    with pytest.raises(SecretError, match=words) as caught:
        resolve(source, spec(azure, server=server))
    assert caught.value.reason == "runner_system_failure"


@pytest.mark.parametrize("place", ["token", "secrets"])
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(403, {"error": {"code": "Forbidden", "message": "no policy"}}), SecretConfigError),
        (Reply(401), SecretError),
        (Reply(500), SecretOutageError),
        (Reply(200, b"nope"), SecretOutageError),
        (Reply(200, {"value": 1}), SecretOutageError),
        (DROP, SecretOutageError),
    ],
)
def test_failing_server(azure: Azure, source: AzureSource, place: str, reply: Reply, kind: type[SecretError]) -> None:
    azure.secrets["db"] = "x"
    azure.fail(place, reply)
    with pytest.raises(SecretError) as caught:
        resolve(source, spec(azure))
    # a refused login is not the job's to mend
    assert type(caught.value) is (SecretError if kind is SecretConfigError and place == "token" else kind)


def test_silent_server_is_an_outage(azure: Azure) -> None:
    azure.fail("token", HANG)
    with (
        closing(AzureSource({"AZURE_AUTHORITY_HOST": azure.url}, quick_caller(timeout=0.2))) as source,
        pytest.raises(SecretOutageError, match="no answer within"),
    ):
        resolve(source, spec(azure))


@pytest.mark.parametrize(
    ("vault", "authority", "scope"),
    [
        ("https://mine.vault.azure.net", "https://login.microsoftonline.com", "https://vault.azure.net/.default"),
        ("https://mine.vault.azure.cn/", "https://login.chinacloudapi.cn", "https://vault.azure.cn/.default"),
        (
            "https://mine.vault.usgovcloudapi.net",
            "https://login.microsoftonline.us",
            "https://vault.usgovcloudapi.net/.default",
        ),
        ("https://vault.azure.cn.evil.test", "https://login.microsoftonline.com", "https://vault.azure.net/.default"),
    ],
)
def test_each_cloud_has_its_login(vault: str, authority: str, scope: str) -> None:
    assert cloud_of(vault, {}) == (authority, scope)
    assert cloud_of(vault, {"AZURE_AUTHORITY_HOST": "login.test/"}) == ("https://login.test", scope)
