"""The runner's own credentials for AWS, for jobs that bring no token.

The places are those of AWS's own tools, in their order: environment, web identity (EKS), shared credentials file,
container service (ECS, EKS), instance metadata (EC2). Each is one or two plain requests, so no SDK is needed.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.aws_endpoints import endpoint
from pyrunner.secrets.errors import SecretConfigError, SecretError
from pyrunner.secrets.exchange import Caller, Request, unproxied_client
from pyrunner.secrets.sigv4 import Credentials
from pyrunner.secrets.sts import WebIdentity, assume_role

_CONTAINER_HOST = "http://169.254.170.2"
_INSTANCE_HOST = "http://169.254.169.254"
_ROLE_PATH = "latest/meta-data/iam/security-credentials"


class _Temporary(msgspec.Struct, rename="pascal"):
    access_key_id: str
    secret_access_key: str
    token: str = ""

    def __repr__(self) -> str:
        return "_Temporary(…)"


class OwnCredentials:
    """Finds the credentials of this machine or process."""

    def __init__(self, caller: Caller, environment: Mapping[str, str]) -> None:
        self._caller = caller
        self._environment = environment
        self._machine = Caller(unproxied_client, timeout=5.0)

    def find(self, region: str, cancel: CancelToken) -> Credentials:
        """The first credentials there are.

        Raises:
            SecretError: there are none, or their service refused.
        """
        places: tuple[Callable[[], Credentials | None], ...] = (
            self._of_environment,
            lambda: self._of_web_identity(region, cancel),
            self._of_file,
            lambda: self._of_container(cancel),
            lambda: self._of_instance(cancel),
        )
        for place in places:
            credentials = place()
            if credentials is not None:
                return credentials
        raise SecretConfigError(
            "no AWS credentials: the job has no id token with a role_arn, and the runner has no credentials of its own"
        )

    def close(self) -> None:
        """Close the connections."""
        self._machine.close()

    def _of_environment(self) -> Credentials | None:
        key_id = self._environment.get("AWS_ACCESS_KEY_ID", "")
        secret = self._environment.get("AWS_SECRET_ACCESS_KEY", "")
        if not key_id or not secret:
            return None
        return Credentials(key_id=key_id, secret=secret, session_token=self._environment.get("AWS_SESSION_TOKEN", ""))

    def _of_web_identity(self, region: str, cancel: CancelToken) -> Credentials | None:
        file = self._environment.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")
        role = self._environment.get("AWS_ROLE_ARN", "")
        if not file or not role:
            return None
        identity = WebIdentity(
            role_arn=role,
            session_name=self._environment.get("AWS_ROLE_SESSION_NAME") or "pyrunner",
            token=_read(file).strip(),
        )
        return assume_role(self._caller, endpoint("sts", region, self._environment), identity, cancel)

    def _of_file(self) -> Credentials | None:
        path = self._environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.path.expanduser(path), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # without its text: it quotes the line
            raise SecretConfigError(f"{path} is not a valid AWS credentials file") from None
        profile = self._environment.get("AWS_PROFILE") or "default"
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        key_id, secret, token = (parser.get(profile, name, fallback="") for name in names)
        return Credentials(key_id=key_id, secret=secret, session_token=token) if key_id and secret else None

    def _of_container(self, cancel: CancelToken) -> Credentials | None:
        relative = self._environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
        url = f"{_CONTAINER_HOST}{relative}" if relative else ""
        url = url or self._environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
        if not url:
            return None
        file = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
        token = _read(file).strip() if file else self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        return self._temporary(url, {"Authorization": token} if token else {}, cancel)

    def _of_instance(self, cancel: CancelToken) -> Credentials | None:
        if self._environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        base = (self._environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _INSTANCE_HOST).rstrip("/")
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
        try:
            answer = self._machine.call(Request(method="PUT", url=f"{base}/latest/api/token", headers=lifetime), cancel)
        except SecretError:
            # most machines are no EC2 instances
            return None
        if answer.status != 200:
            return None
        headers = {"X-aws-ec2-metadata-token": answer.body.decode("latin-1")}
        roles = self._machine.call(Request(method="GET", url=f"{base}/{_ROLE_PATH}/", headers=headers), cancel)
        if roles.status != 200 or not roles.body.strip():
            return None
        role = roles.body.decode("utf-8", "replace").split()[0]
        return self._temporary(f"{base}/{_ROLE_PATH}/{role}", headers, cancel)

    def _temporary(self, url: str, headers: Mapping[str, str], cancel: CancelToken) -> Credentials:
        response = self._machine.call(Request(method="GET", url=url, headers=headers), cancel)
        if response.status != 200:
            raise SecretError(self._machine.failure(response))
        found = self._machine.read(response, _Temporary)
        return Credentials(key_id=found.access_key_id, secret=found.secret_access_key, session_token=found.token)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SecretConfigError(f"cannot read {path}: {error.strerror}") from None
