"""``vault`` and ``gitlab_secrets_manager`` against a server that checks tokens, namespaces and paths."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from pyrunner.secrets.gitlab import GitLabSource
from pyrunner.secrets.vault import VaultSource
from tests.unit.secrets.stores import DROP, HANG, Reply, Vault, make_jwt, quick_caller, unchanged


@pytest.fixture
def source() -> Iterator[VaultSource]:
    with closing(VaultSource(quick_caller())) as source:
        yield source


def spec(vault: Vault, **changes: Any) -> dict[str, Any]:
    """A working spec with top-level keys replaced."""
    return {
        "server": {
            "url": vault.url,
            "namespace": vault.namespace,
            "auth": {
                "name": "jwt",
                "path": "jwt",
                "data": {"jwt": make_jwt(vault.audience), "role": "deployer"},
            },
        },
        "engine": {"name": "kv-v2", "path": "kv-v2"},
        "path": "production/db",
        "field": "password",
        **changes,
    }


def resolve(source: Any, payload: dict[str, Any]) -> str:
    return str(source.resolve(payload, unchanged, CancelToken()))


def test_versioned_secret_is_read_and_the_token_revoked(vault: Vault) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "p4ss$word"}
    with closing(VaultSource(quick_caller())) as source:
        assert resolve(source, spec(vault)) == "p4ss$word"
        assert len(vault.tokens) == 1
    assert vault.tokens == set()
    assert len(vault.revoked) == 1
    assert vault.paths() == [
        "PUT /v1/auth/jwt/login",
        "GET /v1/kv-v2/data/production/db",
        "PUT /v1/auth/token/revoke-self",
    ]


@pytest.mark.parametrize("engine", ["kv-v1", "generic"])
def test_plain_engines_have_no_data_level(vault: Vault, source: VaultSource, engine: str) -> None:
    vault.secrets["old/production/db"] = {"password": "x"}
    assert resolve(source, spec(vault, engine={"name": engine, "path": "/old/"})) == "x"


def test_nested_mounts_slashes_and_odd_names(vault: Vault, source: VaultSource) -> None:
    vault.secrets["teams/kv/data/a b/ü?#%41"] = {"password": "x"}
    payload = spec(vault, engine={"name": "kv-v2", "path": "teams/kv"}, path="/a b/ü?#%41/")
    payload["server"]["url"] += "/"
    payload["server"]["auth"]["path"] = "gitlab/prod"
    assert resolve(source, payload) == "x"


def test_namespace_goes_with_every_request() -> None:
    with Vault(namespace="org/team") as vault, closing(VaultSource(quick_caller())) as source:
        vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
        assert resolve(source, spec(vault)) == "x"
        source.close()
        assert {asked.headers["x-vault-namespace"] for asked in vault.asked} == {"org/team"}
        assert len(vault.asked) == 3


def test_one_login_serves_all_secrets_of_a_job(vault: Vault) -> None:
    vault.secrets["kv-v2/data/a"] = {"x": "1", "y": "2"}
    payload = spec(vault, path="a")
    with closing(VaultSource(quick_caller())) as source:
        assert [resolve(source, payload | {"field": field}) for field in "xyx"] == ["1", "2", "1"]
    assert vault.paths().count("PUT /v1/auth/jwt/login") == 1
    assert len(vault.revoked) == 1


def test_batch_tokens_are_not_revoked(vault: Vault) -> None:
    vault.token_type = "batch"
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    with closing(VaultSource(quick_caller())) as source:
        resolve(source, spec(vault))
    assert len(vault.asked) == 2


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("line\nline\n", "line\nline\n"),
        ("", ""),
        (1.50, "1.5"),
        (12345678901234567890, "12345678901234567890"),
        (True, "true"),
        ({"a": [1, "é"]}, json.dumps({"a": [1, "é"]})),
    ],
)
def test_values_of_any_type_become_text(vault: Vault, source: VaultSource, stored: Any, text: str) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": stored}
    assert resolve(source, spec(vault)) == text


def test_strings_are_expanded_those_of_the_login_too(vault: Vault, source: VaultSource) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    payload = spec(vault, path="$ENVIRONMENT/db")
    values = {"$TOKEN": payload["server"]["auth"]["data"]["jwt"], "$ENVIRONMENT/db": "production/db"}
    payload["server"]["auth"]["data"]["jwt"] = "$TOKEN"
    assert source.resolve(payload, lambda text: values.get(text, text), CancelToken()) == "x"


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"user": "x"}, 'no field "password"'), ({"password": None}, 'no field "password"'), (None, "404")],
)
def test_missing_field_and_deleted_version(
    vault: Vault, source: VaultSource, fields: dict[str, Any] | None, words: str
) -> None:
    vault.secrets["kv-v2/data/production/db"] = fields
    with pytest.raises(SecretMissingError, match=words):
        resolve(source, spec(vault))


def test_missing_secret(vault: Vault, source: VaultSource) -> None:
    with pytest.raises(SecretMissingError, match=r"GET http://127.*/v1/kv-v2/data/production/db: 404 Not Found$"):
        resolve(source, spec(vault))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": ""}, '"path" is empty'),
        ({"field": None}, '"field" is empty'),
        ({"server": None}, '"server.url" is empty'),
        ({"engine": {"name": "ssh", "path": "x"}}, 'unknown secrets engine "ssh", expected one of: kv-v1'),
        ({"path": 3}, r"Expected `str`, got `int` - at `\$.path`"),
    ],
)
def test_incomplete_spec_is_a_configuration_error(
    vault: Vault, source: VaultSource, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(SecretConfigError, match=words):
        resolve(source, spec(vault, **changes))
    assert vault.asked == []


def test_unusable_url_is_a_configuration_error(vault: Vault, source: VaultSource) -> None:
    payload = spec(vault)
    payload["server"]["url"] = "vault.example.com"
    with pytest.raises(SecretConfigError, match="must start with http"):
        resolve(source, payload)


def test_other_login_methods_are_refused(vault: Vault, source: VaultSource) -> None:
    payload = spec(vault)
    payload["server"]["auth"]["name"] = "userpass"
    with pytest.raises(SecretConfigError, match='unknown Vault authentication method "userpass", expected: jwt'):
        resolve(source, payload)


@pytest.mark.parametrize("token", ["forged", "expired", "foreign"])
def test_refused_token_is_not_shown_even_if_the_server_repeats_it(
    vault: Vault, source: VaultSource, token: str
) -> None:
    made = {
        "forged": make_jwt(vault.audience, key=b"another"),
        "expired": make_jwt(vault.audience, lifetime=-1),
        "foreign": make_jwt("https://other.test"),
    }[token]
    payload = spec(vault)
    payload["server"]["auth"]["data"]["jwt"] = made
    with pytest.raises(SecretConfigError, match=r"400 Bad Request \(error validating token \[MASKED\]") as caught:
        resolve(source, payload)
    assert made not in repr(caught.value)
    assert made not in str(caught.value)


def test_refused_login_names_the_role(vault: Vault, source: VaultSource) -> None:
    payload = spec(vault)
    payload["server"]["auth"]["data"]["role"] = "another"
    with pytest.raises(SecretConfigError, match=r'400 Bad Request \(role "another" could not be found\)'):
        resolve(source, payload)


@pytest.mark.parametrize("place", ["login", "data"])
@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(403, {"errors": ["permission denied"]}), SecretConfigError, r"403 Forbidden \(permission denied\)"),
        (Reply(418), SecretError, "418"),
        (Reply(500, {"errors": ["internal error"]}), SecretOutageError, "500 Internal Server Error"),
        (Reply(503, {"errors": ["Vault is sealed"]}), SecretOutageError, r"503 .* \(Vault is sealed\)"),
        (Reply(429), SecretOutageError, "429"),
        (Reply(200, b"<html>please log in</html>", kind="text/html"), SecretOutageError, "not valid JSON"),
        (Reply(200, {"data": [], "auth": 1}), SecretOutageError, "the answer cannot be used: Expected"),
        (Reply(200, b'{"data": {'), SecretOutageError, "not valid JSON"),
        (DROP, SecretOutageError, "PUT|GET"),
    ],
)
def test_failing_server(
    vault: Vault, source: VaultSource, place: str, reply: Reply, kind: type[SecretError], words: str
) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    vault.fail(place, reply)
    with pytest.raises(SecretError, match=words) as caught:
        resolve(source, spec(vault))
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


def test_server_errors_are_tried_again(vault: Vault, source: VaultSource) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    vault.fail("login", Reply(502), times=2)
    vault.fail("data", Reply(503), times=1)
    assert resolve(source, spec(vault)) == "x"


def test_silent_server_is_an_outage(vault: Vault) -> None:
    vault.fail("login", HANG)
    with (
        closing(VaultSource(quick_caller(timeout=0.2))) as source,
        pytest.raises(SecretOutageError, match=r"PUT http://127.*/login: no answer within 0.2 seconds"),
    ):
        resolve(source, spec(vault))


def test_cancel_ends_a_silent_server(vault: Vault, source: VaultSource) -> None:
    vault.fail("login", HANG)
    cancel = CancelToken()
    timer = threading.Timer(0.1, cancel.cancel, [JobCanceled()])
    timer.start()
    with pytest.raises(JobCanceled):
        source.resolve(spec(vault), unchanged, cancel)
    timer.join()


def test_token_is_revoked_after_a_failure_and_a_cancel_too(vault: Vault) -> None:
    vault.fail("data", Reply(500))
    with closing(VaultSource(quick_caller())) as source, pytest.raises(SecretOutageError):
        resolve(source, spec(vault))
    assert len(vault.revoked) == 1


@pytest.mark.parametrize("reply", [Reply(500), Reply(403), DROP])
def test_failed_revocation_is_logged_without_the_token(
    vault: Vault, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    vault.fail("revoke-self", reply)
    with caplog.at_level(logging.WARNING), closing(VaultSource(quick_caller())) as source:
        resolve(source, spec(vault))
    assert [record.getMessage() for record in caplog.records] == [
        "Vault token was not revoked and lives until it expires"
    ]
    assert not any(token in str(vars(record)) for token in vault.tokens for record in caplog.records)


def test_silent_server_does_not_hold_up_the_end_of_the_stage(
    vault: Vault, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrunner.secrets.vault._REVOKE_TIMEOUT", 0.1)
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    vault.fail("revoke-self", HANG)
    with closing(VaultSource(quick_caller())) as source:
        resolve(source, spec(vault))
        resolve(source, spec(vault) | {"server": {**spec(vault)["server"], "url": f"{vault.url}/"}})
    assert len(caplog.records) == 2


def test_standby_server_names_the_active_one(vault: Vault, source: VaultSource) -> None:
    vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
    with Vault() as standby:
        for path in ("/v1/auth/jwt/login", "/v1/kv-v2/data/production/db"):
            standby.fail(f"^{path}$", Reply(307, headers={"Location": f"{vault.url}{path}"}))
        assert resolve(source, spec(standby, server=spec(vault)["server"] | {"url": standby.url})) == "x"
        assert len(standby.asked) == 2
        standby.fail("revoke-self", Reply(204))
        source.close()


def gitlab_spec(vault: Vault, **auth: Any) -> dict[str, Any]:
    inline = {"jwt": make_jwt(vault.audience), "role": "deployer", "auth_mount": "jwt", "path": "", **auth}
    return {
        "server": {"url": vault.url, "inline_auth": inline},
        "engine": {"name": "kv-v2", "path": "project_5/secrets/kv"},
        "path": "explicit/API_KEY",
        "field": "value",
    }


class TestGitLab:
    def test_one_request_reads_the_secret_and_leaves_no_token(self, vault: Vault) -> None:
        vault.secrets["project_5/secrets/kv/data/explicit/API_KEY"] = {"value": "k3y"}
        with closing(GitLabSource(quick_caller())) as source:
            assert resolve(source, gitlab_spec(vault)) == "k3y"
        assert vault.paths() == ["GET /v1/project_5/secrets/kv/data/explicit/API_KEY"]
        assert vault.asked[0].headers["x-vault-inline-auth-path"] == "auth/jwt/login"
        assert vault.asked[0].headers["x-vault-inline-auth-operation"] == "update"

    def test_login_path_of_the_payload_comes_first(self, vault: Vault) -> None:
        vault.secrets["project_5/secrets/kv/data/explicit/API_KEY"] = {"value": "k3y"}
        with closing(GitLabSource(quick_caller())) as source:
            assert resolve(source, gitlab_spec(vault, path="auth/gitlab/prod/login", auth_mount="x")) == "k3y"

    def test_nothing_is_expanded(self, vault: Vault) -> None:
        vault.secrets["project_5/secrets/kv/data/explicit/$HOME"] = {"value": "k3y"}
        with closing(GitLabSource(quick_caller())) as source:
            payload = gitlab_spec(vault) | {"path": "explicit/$HOME"}
            assert source.resolve(payload, lambda text: "expanded", CancelToken()) == "k3y"

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"jwt": ""}, '"server.inline_auth.jwt" is empty'),
            ({"auth_mount": ""}, '"auth_mount" is empty'),
            ({"role": "another"}, r'400 Bad Request \(role "another" could not be found\)'),
            ({"path": "auth/unknown/login"}, "403 Forbidden"),
        ],
    )
    def test_refused_login(self, vault: Vault, change: dict[str, Any], words: str) -> None:
        with closing(GitLabSource(quick_caller())) as source, pytest.raises(SecretConfigError, match=words):
            resolve(source, gitlab_spec(vault, **change))

    def test_missing_secret(self, vault: Vault) -> None:
        with closing(GitLabSource(quick_caller())) as source, pytest.raises(SecretMissingError, match="404"):
            resolve(source, gitlab_spec(vault))

    def test_no_redirect_takes_the_token_along(self, vault: Vault) -> None:
        with Vault() as other, closing(GitLabSource(quick_caller())) as source:
            vault.fail("", Reply(307, headers={"Location": f"{other.url}/v1/x"}))
            with pytest.raises(SecretError, match="307"):
                resolve(source, gitlab_spec(vault))
            assert other.asked == []
