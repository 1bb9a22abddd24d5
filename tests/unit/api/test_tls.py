"""TLS against real servers with certificates of a self-made authority."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.errors import TransportError
from pyrunner.api.http import HttpClient
from pyrunner.api.info import client_info
from pyrunner.api.tls import TlsFiles
from pyrunner.api.wire import JobRequest
from tests.unit.api.conftest import json_reply, reply


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


def make_authority(directory: Path, name: str) -> None:
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt", cwd=directory,
    )  # fmt: skip


def make_certificate(directory: Path, authority: str, name: str, names: str) -> None:
    openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=directory,
    )  # fmt: skip
    (directory / f"{name}.ext").write_text(f"subjectAltName={names}\n")
    openssl(
        "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key",
        "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt", cwd=directory,
    )  # fmt: skip


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pki")
    for authority in ("authority", "stranger"):
        make_authority(directory, authority)
    make_certificate(directory, "authority", "server", "DNS:localhost,IP:127.0.0.1")
    make_certificate(directory, "authority", "elsewhere", "DNS:elsewhere.example")
    make_certificate(directory, "authority", "runner", "DNS:runner")
    return directory


def server_context(pki: Path, name: str = "server", *, ask: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / f"{name}.crt", pki / f"{name}.key")
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pki / "authority.crt")
    return context


def test_the_ca_file_is_trusted(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki))
    served.script(reply(200, b"safe"))
    client = HttpClient(TlsFiles(str(pki / "authority.crt")))
    for _ in range(3):
        assert client.request("GET", served.url).body == b"safe"
    assert served.connections == 1
    client.close()


def test_the_servers_own_certificate_can_be_the_ca_file(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki))
    served.script(reply(200))
    assert HttpClient(TlsFiles(str(pki / "server.crt"))).request("GET", served.url).status == 200


@pytest.mark.parametrize("ca", ["", "stranger.crt", "missing.crt", "server.key"])
def test_an_unknown_authority_is_refused_with_one_line(make_server, pki: Path, ca: str) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki))
    served.script(reply(200))
    client = HttpClient(TlsFiles(str(pki / ca) if ca else ""))
    with pytest.raises(TransportError, match=r"certificate is not valid: [^\n]+$"):
        client.request("GET", served.url)
    assert served.requests == []


def test_a_certificate_of_another_host_is_refused(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki, "elsewhere"))
    with pytest.raises(TransportError, match="certificate is not valid"):
        HttpClient(TlsFiles(str(pki / "authority.crt"))).request("GET", served.url)


def test_old_protocols_are_refused(pki: Path) -> None:
    from pyrunner.api.tls import make_context

    assert make_context(TlsFiles()).minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_client_pair_is_shown(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki, ask=True))
    served.script(reply(200))
    files = TlsFiles(str(pki / "authority.crt"), str(pki / "runner.crt"), str(pki / "runner.key"))
    assert HttpClient(files).request("GET", served.url).status == 200
    assert served.requests[0].client_certificate["subject"] == ((("commonName", "runner"),),)


def test_a_missing_client_pair_is_an_error(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki, ask=True))
    files = TlsFiles(str(pki / "authority.crt"), str(pki / "runner.crt"))
    with pytest.raises(TransportError):
        HttpClient(files).request("GET", served.url)


def test_rotated_material_is_noticed_without_a_restart(make_server, pki: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki))
    served.script(reply(200))
    ca = tmp_path / "ca.crt"
    shutil.copy(pki / "stranger.crt", ca)
    client = HttpClient(TlsFiles(str(ca)))
    with pytest.raises(TransportError):
        client.request("GET", served.url)
    shutil.copy(pki / "authority.crt", ca)
    os.utime(ca, (1, 1))
    assert client.request("GET", served.url).status == 200
    os.utime(ca, (2, 2))
    assert client.request("GET", served.url).status == 200
    assert len({request.connection for request in served.requests}) == 2


def test_the_certificate_directory_fills_in_what_is_empty(tmp_path: Path) -> None:
    for name in ("gitlab.example.crt", "gitlab.example.auth.crt", "gitlab.example.auth.key"):
        (tmp_path / name).touch()
    found = TlsFiles("", "mine.crt", "").completed("gitlab.example", str(tmp_path))
    assert found.ca == str(tmp_path / "gitlab.example.crt")
    assert found.certificate == "mine.crt"
    assert found.key == str(tmp_path / "gitlab.example.auth.key")
    assert TlsFiles().completed("other.example", str(tmp_path)).ca == ""


def test_a_job_comes_with_the_chain_of_its_connection(make_server, pki: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki))
    served.script(json_reply(201, '{"id": 7, "token": "t"}'))
    monkeypatch.setenv("SSL_CERT_FILE", str(pki / "authority.crt"))
    answer = RunnerClient(Endpoint(url=served.url, token="glrt-x")).request_job(JobRequest(info=client_info()))
    certificates = [
        ssl.PEM_cert_to_DER_cert(f"{part}-----END CERTIFICATE-----\n")
        for part in answer.tls_chain.split("-----END CERTIFICATE-----\n")[:-1]
    ]
    expected = [ssl.PEM_cert_to_DER_cert((pki / f"{name}.crt").read_text()) for name in ("server", "authority")]
    assert certificates == expected


def test_a_job_comes_with_the_configured_material(make_server, pki: Path) -> None:  # type: ignore[no-untyped-def]
    served = make_server(server_context(pki, ask=True))
    served.script(json_reply(201, '{"id": 7, "token": "t"}'))
    endpoint = Endpoint(
        url=served.url,
        token="glrt-x",
        tls_ca_file=str(pki / "authority.crt"),
        tls_cert_file=str(pki / "runner.crt"),
        tls_key_file=str(pki / "runner.key"),
    )
    answer = RunnerClient(endpoint).request_job(JobRequest(info=client_info()))
    assert answer.tls_chain == (pki / "authority.crt").read_text()
    assert answer.tls_certificate == (pki / "runner.crt").read_text()
    assert answer.tls_key == (pki / "runner.key").read_text()
    assert "PRIVATE" not in repr(answer)
