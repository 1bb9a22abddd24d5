"""A server's certificate chain up to its root (facts/runner-api.md 1.4, ``FF_RESOLVE_FULL_TLS_CHAIN``).

Servers leave out the root, and some an intermediate too; clients with a short list of authorities cannot do without.
Each certificate names where its issuer's can be had (Authority Information Access); that is fetched until one has
signed itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyrunner.base.cancel import CancelToken

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

#: Issuers that are fetched at most: a chain that goes in a circle must end.
_LONGEST = 10
#: Seconds for one certificate.
_LIMIT = 10.0

#: URL → the body of a successful answer.
Fetch = Callable[[str], bytes]


def full_chain(pem: str, fetch: Fetch | None = None) -> str:
    """`pem`, leaf first, with the issuers that it lacks behind it; as it is as far as they cannot be had."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    try:
        chain = load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        log.warning("The certificate chain of the server cannot be read", extra={"error": str(error)})
        return pem
    added: list[Certificate] = []
    last = chain[-1]
    while last.issuer != last.subject and len(added) < _LONGEST:
        issuer = _issuer(last, fetch or _download)
        if issuer is None:
            break
        added.append(issuer)
        last = issuer
    if not added:
        return pem
    return pem.rstrip("\n") + "\n" + "".join(item.public_bytes(Encoding.PEM).decode() for item in added)


def _issuer(certificate: Certificate, fetch: Fetch) -> Certificate | None:
    """The certificate that signed this one, from the first address that has it."""
    for url in _addresses(certificate):
        try:
            for found in _certificates(fetch(url)):
                certificate.verify_directly_issued_by(found)
                return found
        except Exception as error:  # noqa: BLE001 - whatever is served there is a stranger's; the job goes on without
            fields = {"action": "issuer_failed", "url": url, "error": str(error) or type(error).__name__}
            log.warning("Cannot get the certificate of an issuer", extra=fields)
    return None


def _addresses(certificate: Certificate) -> list[str]:
    from cryptography.x509 import AuthorityInformationAccess, ExtensionNotFound
    from cryptography.x509.oid import AuthorityInformationAccessOID

    try:
        access = certificate.extensions.get_extension_for_class(AuthorityInformationAccess).value
    except ExtensionNotFound:
        return []
    method = AuthorityInformationAccessOID.CA_ISSUERS
    places = [str(item.access_location.value) for item in access if item.access_method == method]
    return [place for place in places if place.startswith(("http://", "https://"))]


def _certificates(body: bytes) -> list[Certificate]:
    """What an address serves: DER, PEM, or a PKCS#7 bundle."""
    from cryptography.hazmat.primitives.serialization import pkcs7
    from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificates

    if b"-----BEGIN CERTIFICATE-----" in body:
        return load_pem_x509_certificates(body)
    try:
        return [load_der_x509_certificate(body)]
    except ValueError:
        return pkcs7.load_der_pkcs7_certificates(body)


def _download(url: str) -> bytes:
    from pyrunner.api.errors import TransportError
    from pyrunner.api.http import HttpClient

    client = HttpClient()
    limit = CancelToken().child(_LIMIT)
    try:
        answer = client.request("GET", url, cancel=limit)
        if answer.status != 200:
            raise TransportError(f"GET {url}: {answer.status}")
        return answer.body
    finally:
        limit.close()
        client.close()
