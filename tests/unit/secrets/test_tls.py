"""Secrets over TLS: whom a source trusts, and what it does with a server that it does not."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretOutageError
from pyrunner.secrets.exchange import Caller
from pyrunner.secrets.vault import VaultSource, vault_client
from tests.unit.api.test_tls import make_authority, make_certificate
from tests.unit.secrets.stores import Reply, Vault, unchanged
from tests.unit.secrets.test_vault import resolve, spec


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pki")
    make_authority(directory, "authority")
    make_certificate(directory, "authority", "server", "IP:127.0.0.1")
    make_certificate(directory, "authority", "runner", "DNS:runner")
    return directory


@pytest.fixture
def vault(pki: Path) -> Iterator[Vault]:
    """A server that asks for a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(pki / "authority.crt")
    with Vault(tls=context) as vault:
        vault.secrets["kv-v2/data/production/db"] = {"password": "x"}
        yield vault


def test_certificates_of_vaults_own_variables(vault: Vault, pki: Path) -> None:
    environment = {
        "VAULT_CACERT": str(pki / "authority.crt"),
        "VAULT_CLIENT_CERT": str(pki / "runner.crt"),
        "VAULT_CLIENT_KEY": str(pki / "runner.key"),
    }
    with closing(VaultSource(Caller(lambda url: vault_client(url, environment)))) as source:
        assert resolve(source, spec(vault)) == "x"


def test_certificate_directory_of_the_runner(vault: Vault, pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = pki / "certs"
    certificates.mkdir()
    (certificates / "127.0.0.1.crt").write_bytes((pki / "authority.crt").read_bytes())
    monkeypatch.setattr("pyrunner.api.tls.certificate_directory", lambda: str(certificates))
    with closing(VaultSource()) as source:
        assert resolve(source, spec(vault)) == "x"


def test_stranger_gets_no_token(vault: Vault) -> None:
    with (
        closing(VaultSource()) as source,
        pytest.raises(SecretOutageError, match="certificate is not valid: self-signed certificate"),
    ):
        resolve(source, spec(vault))
    assert vault.asked == []


def test_no_redirect_leads_out_of_tls(vault: Vault, pki: Path) -> None:
    environment = {"VAULT_CACERT": str(pki / "authority.crt")}
    with Vault() as other, closing(VaultSource(Caller(lambda url: vault_client(url, environment)))) as source:
        vault.fail("", Reply(307, headers={"Location": f"{other.url}/v1/auth/jwt/login"}))
        with pytest.raises(Exception, match="307 Temporary Redirect"):
            source.resolve(spec(vault), unchanged, CancelToken())
        assert other.asked == []
