"""A small image registry on loopback that misbehaves on demand.

It speaks the part of the registry's HTTP API (version 2) that a pull needs: ping, manifests by tag and digest, blobs,
Basic authentication, and Bearer authentication with a token server of its own. For everything that works as it should,
`pyrunner.testing.registry_program` runs the real one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyrunner.testing.docker_rootfs import RootFs
from pyrunner.testing.registry_program import forget_images

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/]+)")


@dataclass(kw_only=True)
class Fault:
    """What happens instead of an answer, `times` times; the first matching one is taken."""

    #: Of the request's path.
    path: str
    times: int = 1_000_000
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: Only half of the right answer, and then the connection is closed.
    cut: bool = False
    #: No byte until the client goes away or the registry is closed.
    hang: bool = False


@dataclass(frozen=True, kw_only=True)
class Auth:
    """Who may pull. Without `bearer` the registry wants Basic authentication itself."""

    username: str
    password: str
    bearer: bool = False
    #: Taken by the token server in place of user and password.
    identity_token: str = ""


class StandInRegistry:
    """Serves images that it makes itself; a context manager. Removes from the engine what was pulled from it."""

    def __init__(self, auth: Auth | None = None) -> None:
        self.auth = auth
        self.faults: list[Fault] = []
        #: Method and path of every request, in order.
        self.requests: list[str] = []
        self._content: dict[str, tuple[str, bytes]] = {}
        self._tags: dict[tuple[str, str], str] = {}
        self._tokens: set[str] = set()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.registry = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> StandInRegistry:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        forget_images(self.host)

    @property
    def host(self) -> str:
        """``address:port``, the first part of every image name here."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def add_image(self, name: str, tag: str = "latest", *, arch: str = "amd64") -> str:
        """A new tiny image, like no other; its digest. It cannot be run: there is no program in it."""
        digest = self._image(arch)
        self._tags[name, tag] = digest
        return digest

    def add_index(self, name: str, tag: str, architectures: list[str]) -> dict[str, str]:
        """A new image per architecture under one tag; their digests."""
        digests = {arch: self._image(arch) for arch in architectures}
        entries = [
            {**self._described(MANIFEST, digest), "platform": {"os": "linux", "architecture": arch}}
            for arch, digest in digests.items()
        ]
        self._tags[name, tag] = self._add(INDEX, _json(schemaVersion=2, mediaType=INDEX, manifests=entries))
        return digests

    def fail(self, path: str, **fault: Any) -> Fault:
        """Answer requests whose path matches with a fault; see `Fault`."""
        self.faults.append(Fault(path=path, **fault))
        return self.faults[-1]

    def count(self, path: str) -> int:
        """Requests so far whose path matches."""
        with self._lock:
            return sum(1 for request in self.requests if re.search(path, request))

    # --- for the handler --------------------------------------------------------------------------------------

    def note(self, request: str) -> Fault | None:
        """Record a request; the fault that it shall get."""
        with self._lock:
            self.requests.append(request)
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.path, request):
                    fault.times -= 1
                    return fault
        return None

    def find(self, name: str, kind: str, reference: str) -> tuple[str, bytes] | None:
        """Media type and content of a manifest or blob."""
        digest = self._tags.get((name, reference), "") if kind == "manifests" else reference
        return self._content.get(digest or reference)

    def token_for(self, username: str, password: str, refresh: str) -> str:
        """A token for these credentials; empty = they are wrong."""
        auth = self.auth
        if auth is None or not (
            (username, password) == (auth.username, auth.password)
            or (refresh and secrets.compare_digest(refresh, auth.identity_token))
        ):
            return ""
        token = secrets.token_hex(16)
        self._tokens.add(token)
        return token

    def allows(self, authorization: str) -> bool:
        """Whether a request with this header may go on."""
        auth = self.auth
        if auth is None:
            return True
        if auth.bearer:
            return authorization.partition("Bearer ")[2] in self._tokens
        return basic(authorization) == (auth.username, auth.password)

    def challenge(self) -> str:
        """``WWW-Authenticate``"""
        if self.auth is not None and self.auth.bearer:
            return f'Bearer realm="http://{self.host}/token",service="{self.host}"'
        return 'Basic realm="stand-in"'

    def wait_for_end(self) -> None:
        """Block until the registry is closed."""
        self._closing.wait(60)

    # --- making images ----------------------------------------------------------------------------------------

    def _image(self, arch: str) -> str:
        root = RootFs()
        root.text("/unique", secrets.token_bytes(4096))
        layer = root.data()
        packed = gzip.compress(layer, 1)
        config = _json(
            architecture=arch,
            os="linux",
            config={"Cmd": ["/unique"]},
            rootfs={"type": "layers", "diff_ids": [_digest(layer)]},
            history=[{"created_by": "pyrunner.testing.registry"}],
        )
        parts = [
            self._described(_CONFIG, self._add(_CONFIG, config)),
            self._described(_LAYER, self._add(_LAYER, packed)),
        ]
        return self._add(MANIFEST, _json(schemaVersion=2, mediaType=MANIFEST, config=parts[0], layers=parts[1:]))

    def _add(self, media_type: str, content: bytes) -> str:
        digest = _digest(content)
        self._content[digest] = (media_type, content)
        return digest

    def _described(self, media_type: str, digest: str) -> dict[str, Any]:
        return {"mediaType": media_type, "size": len(self._content[digest][1]), "digest": digest}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    registry: StandInRegistry


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Requests are recorded, not printed."""

    def _serve(self) -> None:
        registry, url = self.server.registry, urlsplit(self.path)
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = registry.note(f"{self.command} {url.path}")
        if fault is not None and fault.hang:
            registry.wait_for_end()
            self.close_connection = True
        elif fault is not None and not fault.cut:
            self._answer(fault.status, fault.body, fault.headers)
        elif url.path == "/token":
            self._token({**parse_qs(url.query), **parse_qs(sent.decode())})
        elif not registry.allows(self.headers.get("Authorization", "")):
            self._answer(
                401, _error("UNAUTHORIZED", "authentication required"), {"WWW-Authenticate": registry.challenge()}
            )
        elif url.path == "/v2/":
            self._answer(200, b"{}")
        else:
            self._content(url.path, cut=fault is not None)

    def _token(self, form: dict[str, list[str]]) -> None:
        user = basic(self.headers.get("Authorization", ""))
        token = self.server.registry.token_for(*user, form.get("refresh_token", [""])[0])
        if token:
            self._answer(200, _json(token=token, access_token=token))
        else:
            self._answer(401, _error("UNAUTHORIZED", "incorrect username or password"))

    def _content(self, path: str, *, cut: bool) -> None:
        match = _PATH.fullmatch(path)
        found = self.server.registry.find(*match.groups()) if match else None
        if match is None or found is None:
            self._answer(404, _error("MANIFEST_UNKNOWN", "manifest unknown"))
            return
        media_type, content = found
        headers = {"Content-Type": media_type, "Docker-Content-Digest": _digest(content)}
        self._answer(200, content, headers, cut=cut)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Docker-Distribution-API-Version": "registry/2.0", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


def basic(authorization: str) -> tuple[str, str]:
    """User and password of a header; empty when it has none."""
    kind, _, encoded = authorization.partition(" ")
    if kind != "Basic":
        return "", ""
    username, _, password = base64.b64decode(encoded).decode().partition(":")
    return username, password


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def _error(code: str, message: str) -> bytes:
    # Without a detail the engine shows the code alone.
    return _json(errors=[{"code": code, "message": message, "detail": {}}])


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
