"""TLS material of a runner and the context made from it (facts/runner-api.md 1.4)."""

from __future__ import annotations

import os
import threading

from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    Stamp = tuple[int, ...]

log = Log(__name__)


def certificate_directory() -> str:
    """``certs`` beside the default config file, whatever ``--config`` says."""
    from pyrunner.base.host import is_root

    return "/etc/gitlab-runner/certs" if is_root() else os.path.expanduser("~/.gitlab-runner/certs")


class TlsFiles:
    """Paths of the CA file and of the client pair; empty = none."""

    __slots__ = ("ca", "certificate", "key")

    def __init__(self, ca: str = "", certificate: str = "", key: str = "") -> None:
        self.ca = ca
        self.certificate = certificate
        self.key = key

    def completed(self, host: str, directory: str | None = None) -> TlsFiles:
        """These paths; an empty one is looked for in the certificate directory under the host's name."""
        base = os.path.join(certificate_directory() if directory is None else directory, host)
        return TlsFiles(
            self.ca or _existing(f"{base}.crt"),
            self.certificate or _existing(f"{base}.auth.crt"),
            self.key or _existing(f"{base}.auth.key"),
        )

    def stamp(self) -> Stamp:
        """Modification times; when it changes, the material was rotated. A missing file counts as 0."""
        return tuple(_modified(path) for path in (self.ca, self.certificate, self.key) if path)

    def ca_text(self) -> str:
        """Content of the CA file, empty without one."""
        return _read(self.ca)

    def pair_text(self) -> tuple[str, str]:
        """Contents of the client certificate and its key; both empty unless both files are there."""
        certificate, key = _read(self.certificate), _read(self.key)
        return (certificate, key) if certificate and key else ("", "")


def _existing(path: str) -> str:
    return path if os.path.exists(path) else ""


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _read(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Contexts:
    """Contexts by material, shared by all clients of a process.

    A context holds the parsed system pool (over a megabyte, 20 ms to load): fifty runners of one server share one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[tuple[str, ...], tuple[Stamp, ssl.SSLContext]] = {}

    def get(self, files: TlsFiles) -> ssl.SSLContext:
        """The context for `files` as they are now: the same object until one of them changes."""
        system = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
        key = (files.ca, files.certificate, files.key, *system)
        stamp = files.stamp()
        with self._lock:
            known = self._contexts.get(key)
            if known is None or known[0] != stamp:
                known = (stamp, make_context(files))
                self._contexts[key] = known
            return known[1]


contexts = Contexts()


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """A verifying client context: the system pool plus the CA file, the client pair, TLS 1.2 or newer."""
    # not above: most helper commands speak plain HTTP or none, and this import is a third of their start
    import ssl

    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # as Go: any certificate of the pool is an anchor (a CA file may hold the server's own certificate), and
    # home-made certificates without every extension of RFC 5280 are accepted
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if files.ca and os.path.exists(files.ca):
        _add_ca(context, files.ca)
    if files.certificate and files.key:
        _add_pair(context, files)
    return context


def _add_ca(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        log.error("Failed to load the CA file", extra={"path": path, "error": error})  # noqa: TRY400


def _add_pair(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        # the empty password keeps OpenSSL from asking for one on the terminal
        context.load_cert_chain(files.certificate, files.key, password="")
    except (OSError, ValueError) as error:
        log.error(  # noqa: TRY400
            "Failed to load the client certificate",
            extra={"certificate": files.certificate, "key": files.key, "error": error},
        )


def verified_chain(sock: ssl.SSLSocket) -> str:
    """PEM of the chain that was verified on a connection, the server's certificate first."""
    import ssl

    if hasattr(sock, "get_verified_chain"):
        encoded: list[bytes] = sock.get_verified_chain()
    else:
        # before Python 3.13 the chain is only on the inner object
        import _ssl

        inner = getattr(sock, "_sslobj", None)
        chain = inner.get_verified_chain() if inner is not None else None
        encoded = [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain or ()]
    return "".join(ssl.DER_cert_to_PEM_cert(certificate) for certificate in encoded)
