"""Chains of certificates made whole: real keys, a real address to fetch from."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

from pyrunner.api.chain import full_chain

Issued = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def issue(name: str, issuer: Issued | None = None, url: str = "") -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=3650))
    )
    if url:
        place = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(url))
        builder = builder.add_extension(x509.AuthorityInformationAccess([place]), critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def pem(*certificates: x509.Certificate) -> str:
    return "".join(item.public_bytes(Encoding.PEM).decode() for item in certificates)


@pytest.fixture
def served() -> Iterator[tuple[str, dict[str, bytes]]]:
    bodies: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_missing_issuers_are_fetched_up_to_the_root(served: tuple[str, dict[str, bytes]]) -> None:
    url, bodies = served
    root = issue("root")
    middle = issue("middle", root, f"{url}/root.p7c")
    leaf = issue("leaf", middle, f"{url}/middle.der")
    bodies["/middle.der"] = middle[0].public_bytes(Encoding.DER)
    bodies["/root.p7c"] = pkcs7.serialize_certificates([root[0]], Encoding.DER)
    assert full_chain(pem(leaf[0])) == pem(leaf[0], middle[0], root[0])
    bodies["/middle.der"] = pem(middle[0]).encode()
    assert full_chain(pem(leaf[0])) == pem(leaf[0], middle[0], root[0])


def test_a_whole_chain_and_one_without_addresses_stay_as_they_are() -> None:
    root = issue("root")
    leaf = issue("leaf", root)
    assert full_chain(pem(leaf[0], root[0])) == pem(leaf[0], root[0])
    assert full_chain(pem(leaf[0])) == pem(leaf[0])


@pytest.mark.parametrize(
    "body", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", None]
)
def test_what_a_stranger_serves_does_no_harm(served: tuple[str, dict[str, bytes]], body: bytes | None) -> None:
    url, bodies = served
    leaf = issue("leaf", issue("root"), f"{url}/root")
    if body is not None:
        bodies["/root"] = body
    assert full_chain(pem(leaf[0])) == pem(leaf[0])


def test_an_issuer_that_did_not_sign_is_not_taken(served: tuple[str, dict[str, bytes]]) -> None:
    url, bodies = served
    leaf = issue("leaf", issue("root"), f"{url}/root")
    bodies["/root"] = issue("root")[0].public_bytes(Encoding.DER)
    assert full_chain(pem(leaf[0])) == pem(leaf[0])


def test_a_circle_ends() -> None:
    first, second = issue("first"), issue("second")
    one = issue("one", second, "http://127.0.0.1/x")
    asked = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return b"" if len(asked) > 20 else first[0].public_bytes(Encoding.DER)

    assert full_chain(pem(one[0]), fetch) == pem(one[0])
    assert len(asked) == 1


def test_text_that_is_no_certificate_is_given_back() -> None:
    assert full_chain("nothing") == "nothing"
