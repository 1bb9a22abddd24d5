"""Secret stores on real sockets: they check tokens, signatures and paths as the real ones do, and can fail."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pyrunner.api.dial import Timeouts
from pyrunner.api.http import HttpClient
from pyrunner.api.retry import RetryPolicy
from pyrunner.api.tls import TlsFiles
from pyrunner.secrets.exchange import Caller

ISSUER_KEY = b"the key of the GitLab instance"
JSON = "application/json"


def make_jwt(audience: str, *, key: bytes = ISSUER_KEY, lifetime: float = 60, **claims: Any) -> str:
    """A signed token of a job (HS256)."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"aud": audience, "exp": time.time() + lifetime, **claims})
    body = b".".join(_base64url(json.dumps(part).encode()) for part in parts)
    return (body + b"." + _base64url(hmac.digest(key, body, "sha256"))).decode()


def check_jwt(token: str, audience: str) -> str:
    """What is wrong with `token`; empty when nothing is."""
    try:
        head, claims, signature = token.split(".")
        content = json.loads(base64.urlsafe_b64decode(claims + "=="))
    except ValueError:
        return "token is malformed"
    expected = _base64url(hmac.digest(ISSUER_KEY, f"{head}.{claims}".encode(), "sha256")).decode()
    if signature != expected:
        return "error verifying token signature"
    if content["exp"] < time.time():
        return "token is expired"
    return "" if content["aud"] == audience else "invalid audience (aud) claim"


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def quick_client(url: str) -> HttpClient:
    """The client of production without its pauses."""
    return HttpClient.of_server(
        url,
        TlsFiles(),
        retry=RetryPolicy(attempts=3, minimum=0, maximum=0),
        timeouts=Timeouts(dial=5, header=5, total=5),
    )


def quick_caller(timeout: float = 5.0) -> Caller:
    """A caller with `quick_client`."""
    return Caller(quick_client, timeout=timeout)


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    #: With its query, as in the request line.
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int = 200
    content: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = JSON

    @property
    def body(self) -> bytes:
        if self.content is None:
            return b""
        return self.content if isinstance(self.content, bytes) else json.dumps(self.content).encode()


#: Answers nothing until the server stops.
HANG = Reply(status=-1)
#: Hangs up.
DROP = Reply(status=-2)


class Store:
    """A server on loopback; subclasses say what it answers. Use as a context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self._faults: list[tuple[str, Reply, int]] = []
        self._over = threading.Event()
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._send(store.reply(Asked(self.command, self.path, headers, body)))

            def _send(self, reply: Reply) -> None:
                if reply.status < 0:
                    if reply is HANG:
                        store._over.wait(30)
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.kind)
                self.send_header("Content-Length", str(len(reply.body)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *args: object) -> None:
                """Nothing: pytest shows the requests of `asked`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._server.block_on_close = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Any:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail(self, path: str, reply: Reply, times: int = 99) -> None:
        """Answer the next requests for paths that match `path` with `reply`."""
        self._faults.append((path, reply, times))

    def paths(self) -> list[str]:
        """``METHOD path`` of all requests."""
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        for number, (path, reply, times) in enumerate(self._faults):
            if times > 0 and re.search(path, asked.path):
                self._faults[number] = (path, reply, times - 1)
                return reply
        return self.answer(asked)

    def answer(self, asked: Asked) -> Reply:
        raise AssertionError(asked)


class Vault(Store):
    """Vault and OpenBao: JWT login, inline login, kv-v1 at ``old``, kv-v2 at ``kv-v2`` and ``teams/kv``."""

    audience = "https://vault.test"

    def __init__(self, namespace: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.namespace = namespace
        self.token_type = "service"
        self.tokens: set[str] = set()
        self.revoked: list[str] = []
        self.secrets: dict[str, dict[str, Any] | None] = {}

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("x-vault-namespace", "") != self.namespace:
            return _vault_errors(403, "permission denied")
        path = unquote(asked.path.removeprefix("/v1/"))
        if path.startswith("auth/") and path.endswith("/login"):
            return self._login(path, json.loads(asked.body)) if asked.method in ("PUT", "POST") else Reply(405)
        inline = asked.headers.get("x-vault-inline-auth-path")
        if inline is not None:
            problem = self._inline_problem(inline, asked.headers)
            if problem is not None:
                return problem
        elif asked.headers.get("x-vault-token") not in self.tokens:
            return _vault_errors(403, "permission denied")
        if path == "auth/token/revoke-self":
            self.revoked.append(asked.headers["x-vault-token"])
            self.tokens.remove(asked.headers["x-vault-token"])
            return Reply(204)
        return self._read(path)

    def _login(self, path: str, data: dict[str, Any]) -> Reply:
        if path not in ("auth/jwt/login", "auth/gitlab/prod/login"):
            return _vault_errors(403, "permission denied")
        if data.get("role") != "deployer":
            return _vault_errors(400, f'role "{data.get("role")}" could not be found')
        problem = check_jwt(str(data.get("jwt")), self.audience)
        if problem:
            return _vault_errors(400, f"error validating token {data.get('jwt')}: {problem}")
        token = f"hvs.{len(self.tokens) + len(self.revoked)}-token-of-the-job"
        self.tokens.add(token)
        return Reply(content={"auth": {"client_token": token, "token_type": self.token_type, "policies": []}})

    def _inline_problem(self, path: str, headers: dict[str, str]) -> Reply | None:
        data = {}
        for name, value in headers.items():
            if name.startswith("x-vault-inline-auth-parameter-"):
                assert "=" not in value, "no padding"
                pair = json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
                data[pair["key"]] = pair["value"]
        answer = self._login(path, data)
        self.tokens.clear()
        return None if answer.status == 200 else answer

    def _read(self, path: str) -> Reply:
        if path not in self.secrets:
            return _vault_errors(404)
        fields = self.secrets[path]
        if "/data/" not in path:
            return Reply(content={"lease_id": "", "data": fields})
        # a deleted version answers 404 with its metadata
        metadata = {"version": 1, "deletion_time": "" if fields else "2026-01-01T00:00:00Z"}
        return Reply(200 if fields is not None else 404, {"data": {"data": fields, "metadata": metadata}})


def _vault_errors(status: int, *texts: str) -> Reply:
    return Reply(status, {"errors": list(texts)})


class Gcp(Store):
    """Security Token Service and Secret Manager."""

    audience = "//iam.googleapis.com/projects/1234/locations/global/workloadIdentityPools/pool/providers/gitlab"
    access_token = "ya29.access-token-of-google"

    def __init__(self) -> None:
        super().__init__()
        self.secrets: dict[str, bytes] = {}
        self.damage = False

    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/v1/token":
            return self._exchange(json.loads(asked.body))
        if asked.headers.get("authorization") != f"Bearer {self.access_token}":
            return _google_error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        match = re.fullmatch(r"/v1/(projects/.*):access", unquote(asked.path))
        assert match, asked.path
        if match[1] not in self.secrets:
            return _google_error(404, "NOT_FOUND", f"Secret [{match[1]}] not found or has no versions.")
        data = self.secrets[match[1]]
        sent = data[:-1] if self.damage else data
        payload = {"data": base64.b64encode(sent).decode(), "dataCrc32c": str(slow_crc32c(data))}
        return Reply(content={"name": match[1], "payload": payload})

    def _exchange(self, body: dict[str, str]) -> Reply:
        fixed = {
            "audience": self.audience,
            "grantType": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requestedTokenType": "urn:ietf:params:oauth:token-type:access_token",
            "subjectTokenType": "urn:ietf:params:oauth:token-type:jwt",
            "scope": "https://www.googleapis.com/auth/cloud-platform",
        }
        wrong = [name for name, value in fixed.items() if body.get(name) != value]
        problem = f"wrong: {wrong}" if wrong else check_jwt(body["subjectToken"], self.audience)
        if problem:
            return Reply(400, {"error": "invalid_grant", "error_description": problem})
        return Reply(content={"access_token": self.access_token, "token_type": "Bearer", "expires_in": 3599})


def _google_error(code: int, status: str, message: str) -> Reply:
    return Reply(code, {"error": {"code": code, "status": status, "message": message}})


def slow_crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, by its definition."""
    value = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            value = (value >> 1) ^ (0x82F63B78 if (value ^ (byte >> bit)) & 1 else 0)
    return value ^ 0xFFFFFFFF


class Azure(Store):
    """Login and one key vault."""

    audience = "api://AzureADTokenExchange"
    access_token = "eyJ0.access-token-of-azure"

    def __init__(self) -> None:
        super().__init__()
        self.secrets: dict[str, str] = {}

    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/tenant-1/oauth2/v2.0/token":
            return self._login({name: values[0] for name, values in parse_qs(asked.body.decode()).items()})
        if asked.headers.get("authorization") != f"Bearer {self.access_token}":
            return _azure_error(401, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
        assert parse_qs(urlsplit(asked.target).query) == {"api-version": ["7.4"]}
        name = asked.path.removeprefix("/secrets/")
        if name not in self.secrets:
            return _azure_error(
                404, "SecretNotFound", f"A secret with (name/id) {name} was not found in this key vault"
            )
        return Reply(content={"value": self.secrets[name], "id": f"{self.url}/secrets/{name}", "attributes": {}})

    def _login(self, form: dict[str, str]) -> Reply:
        fixed = {
            "grant_type": "client_credentials",
            "client_id": "client-1",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "scope": "https://vault.azure.net/.default",
        }
        wrong = [name for name, value in fixed.items() if form.get(name) != value]
        problem = f"wrong: {wrong}" if wrong else check_jwt(form["client_assertion"], self.audience)
        if problem:
            text = f"AADSTS700213: {problem}\r\nTrace ID: 1\r\nCorrelation ID: 2"
            return Reply(401, {"error": "invalid_client", "error_description": text})
        return Reply(content={"token_type": "Bearer", "expires_in": 3599, "access_token": self.access_token})


def _azure_error(status: int, code: str, message: str) -> Reply:
    return Reply(status, {"error": {"code": code, "message": message}})


@dataclass(frozen=True)
class AwsKey:
    """An access key that an `Aws` knows."""

    key_id: str
    secret: str
    token: str = ""


ROLE_KEY = AwsKey("ASIAROLE", "secret/of+the=role", "session-token-of-the-role//==")


class Aws(Store):
    """STS, Secrets Manager (each request's signature is checked), and the credential services of ECS and EC2."""

    audience = "sts.amazonaws.com"
    role = "arn:aws:iam::123456789012:role/gitlab"

    def __init__(self) -> None:
        super().__init__()
        self.keys = {ROLE_KEY.key_id: ROLE_KEY}
        self.region = "eu-central-1"
        self.secrets: dict[tuple[str, str], dict[str, Any]] = {}
        self.sessions: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def answer(self, asked: Asked) -> Reply:
        if "x-amz-target" in asked.headers:
            return self._get_secret(asked)
        if asked.method == "POST":
            return self._assume(parse_qs(asked.body.decode()))
        return self._credentials(asked)

    def _assume(self, form: dict[str, list[str]]) -> Reply:
        assert form["Action"] == ["AssumeRoleWithWebIdentity"]
        assert form["Version"] == ["2011-06-15"]
        problem = check_jwt(form["WebIdentityToken"][0], self.audience)
        if problem:
            return _sts_error(400, "InvalidIdentityToken", problem)
        if form["RoleArn"] != [self.role]:
            return _sts_error(403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
        self.sessions += form["RoleSessionName"]
        key = ROLE_KEY
        text = (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            "<AssumeRoleWithWebIdentityResult><Credentials>"
            f"<SessionToken>{key.token}</SessionToken><SecretAccessKey>{key.secret}</SecretAccessKey>"
            f"<Expiration>2030-01-01T00:00:00Z</Expiration><AccessKeyId>{key.key_id}</AccessKeyId>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
        return Reply(content=text.encode(), kind="text/xml")

    def _get_secret(self, asked: Asked) -> Reply:
        assert asked.headers["x-amz-target"] == "secretsmanager.GetSecretValue"
        assert asked.headers["content-type"] == "application/x-amz-json-1.1"
        problem = self.signature_problem(asked)
        if problem:
            return Reply(400, {"__type": "InvalidSignatureException", "message": problem})
        wanted = json.loads(asked.body)
        version = wanted.get("VersionId") or wanted.get("VersionStage") or "AWSCURRENT"
        found = self.secrets.get((wanted["SecretId"], version))
        if found is None:
            text = "Secrets Manager can't find the specified secret."
            return Reply(400, {"__type": "com.amazonaws#ResourceNotFoundException", "Message": text})
        return Reply(content={"Name": wanted["SecretId"], "VersionId": "v1", **found})

    def signature_problem(self, asked: Asked) -> str:
        """Check a signature from the bytes that arrived, by AWS's description of it."""
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
            r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
            asked.headers.get("authorization", ""),
        )
        if match is None:
            return "no signature"
        key_id, day, region, service, names, signature = match.groups()
        key = self.keys.get(key_id)
        moment = asked.headers["x-amz-date"]
        if key is None or (region, service) != (self.region, "secretsmanager") or not moment.startswith(day):
            return "credential scope"
        if asked.headers.get("x-amz-security-token", "") != key.token:
            return "The security token included in the request is invalid"
        signed = names.split(";")
        if signed != sorted(signed) or not {"host", "x-amz-date", "x-amz-target", "content-type"} <= set(signed):
            return "signed headers"
        lines = [asked.method, quote(asked.path, safe="/-_.~"), ""]
        lines += [f"{name}:{asked.headers[name].strip()}" for name in signed]
        lines += ["", names, hashlib.sha256(asked.body).hexdigest()]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{day}/{region}/{service}/aws4_request\n{digest}"
        secret = ("AWS4" + key.secret).encode()
        for part in (day, region, service, "aws4_request", text):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        return "" if secret.hex() == signature else "The request signature we calculated does not match"

    def _credentials(self, asked: Asked) -> Reply:
        key = ROLE_KEY
        answer = {"AccessKeyId": key.key_id, "SecretAccessKey": key.secret, "Token": key.token, "Code": "Success"}
        if asked.path == "/ecs":
            known = asked.headers.get("authorization") == "container-token"
            return Reply(content=answer) if known else Reply(401)
        if asked.path == "/latest/api/token":
            lifetime = asked.headers.get("x-aws-ec2-metadata-token-ttl-seconds")
            return Reply(content=b"imds-token", kind="text/plain") if asked.method == "PUT" and lifetime else Reply(400)
        if asked.headers.get("x-aws-ec2-metadata-token") != "imds-token":
            return Reply(401)
        roles = "/latest/meta-data/iam/security-credentials/"
        if asked.path == roles:
            return Reply(content=b"runner-role", kind="text/plain")
        return Reply(content=answer) if asked.path == f"{roles}runner-role" else Reply(404)


def _sts_error(status: int, code: str, message: str) -> Reply:
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    text = f"<ErrorResponse>{error}</ErrorResponse>"
    return Reply(status, text.encode(), kind="text/xml")


Expand = Callable[[str], str]


def unchanged(text: str) -> str:
    """Expansion for specs without variables."""
    return text
