"""``aws_secrets_manager``: AWS Secrets Manager (facts/runner-api.md 5.7).

The job's JWT is exchanged for credentials of a role (`sts`), which then sign the read (`sigv4`): two plain HTTPS
requests, made with the project's own client instead of boto3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from pyrunner.api.exchange import Response
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.aws_credentials import OwnCredentials
from pyrunner.secrets.aws_endpoints import endpoint
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from pyrunner.secrets.exchange import Caller, Request
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.sigv4 import Credentials, Scope, signed
from pyrunner.secrets.spec import AwsSpec, read_spec
from pyrunner.secrets.sts import WebIdentity, assume_role
from pyrunner.secrets.values import field_of, from_base64, text_of

_SERVICE = "secretsmanager"
_SESSION_NAME = "${CI_JOB_ID}-${CI_PROJECT_ID}-${CI_SERVER_HOST}"
_SESSION_NAME_LIMIT = 64


class _Problem(msgspec.Struct):
    kind: str = msgspec.field(name="__type", default="")


class _Value(msgspec.Struct):
    text: str | None = msgspec.field(name="SecretString", default=None)
    binary: str | None = msgspec.field(name="SecretBinary", default=None)


class AwsSource:
    """Reads secrets, or fields of those that are JSON objects.

    Args:
        environment: of the runner, never of the job: endpoints, default region, the runner's own credentials.
        now: the clock of signatures.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        caller: Caller | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._environment = environment
        self._caller = caller or Caller()
        self._now = now
        self._own = OwnCredentials(self._caller, environment)
        self._credentials: dict[tuple[str, ...], Credentials] = {}

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """See `SecretSource.resolve`."""
        secret = read_spec(AwsSpec, spec, expand)
        secret.require("secret_id")
        region = self._region(secret)
        url = endpoint(_SERVICE, region, self._environment)
        wanted = {
            "SecretId": secret.secret_id,
            "VersionId": secret.version_id,
            "VersionStage": secret.version_stage,
        }
        request = Request(
            method="POST",
            url=url,
            headers={
                "Content-Type": "application/x-amz-json-1.1",
                "X-Amz-Target": f"{_SERVICE}.GetSecretValue",
            },
            body=msgspec.json.encode({name: value for name, value in wanted.items() if value}),
        )
        credentials = self._credentials_for(secret, region, expand, cancel)
        scope = Scope(region=region, service=_SERVICE)
        response = self._caller.call(signed(request, credentials, scope, self._now()), cancel)
        return self._value(response, secret)

    def close(self) -> None:
        """Close the connections; temporary credentials expire by themselves."""
        self._own.close()
        self._caller.close()

    def _region(self, secret: AwsSpec) -> str:
        names = ("AWS_REGION", "AWS_DEFAULT_REGION")
        known = (secret.region, secret.server.region, *(self._environment.get(name, "") for name in names))
        region = next((region for region in known if region), "")
        if not region:
            raise SecretConfigError("no AWS region: set the variable AWS_REGION or `region` of the secret")
        return region

    def _credentials_for(self, secret: AwsSpec, region: str, expand: Expand, cancel: CancelToken) -> Credentials:
        server = secret.server
        role = secret.role_arn or server.role_arn
        name = secret.role_session_name or server.role_session_name
        name = name or expand(_SESSION_NAME)[:_SESSION_NAME_LIMIT]
        if bool(role) != bool(server.jwt):
            lacking = "an id token" if role else "a role_arn (variable AWS_ROLE_ARN)"
            raise SecretConfigError(f"logging in to AWS takes an id token and a role_arn: the job has not {lacking}")
        key = (region, role, name, server.jwt)
        if key not in self._credentials:
            if role:
                identity = WebIdentity(role_arn=role, session_name=name, token=server.jwt)
                url = endpoint("sts", region, self._environment)
                self._credentials[key] = assume_role(self._caller, url, identity, cancel)
            else:
                self._credentials[key] = self._own.find(region, cancel)
        return self._credentials[key]

    def _value(self, response: Response, secret: AwsSpec) -> str:
        place = f'secret "{secret.secret_id}"'
        if response.status != 200:
            raise self._refusal(response, place)
        value = self._caller.read(response, _Value)
        text = value.text
        if text is None:
            data = from_base64(value.binary or "")
            if data is None:
                raise SecretOutageError(f"{self._caller.failure(response)}: {place} arrived damaged")
            text = text_of(data, place)
        if not secret.field:
            return text
        try:
            fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            raise SecretConfigError(f'{place} is not a JSON object, so it has no field "{secret.field}"') from None
        return field_of(fields, secret.field, place)

    def _refusal(self, response: Response, place: str) -> SecretError:
        try:
            kind = msgspec.json.decode(response.body, type=_Problem).kind.rpartition("#")[2]
        except msgspec.DecodeError:
            kind = ""
        text = f"{place}: {self._caller.failure(response)}"
        if kind == "ResourceNotFoundException":
            return SecretMissingError(text)
        return SecretConfigError(text) if kind == "AccessDeniedException" else SecretError(text)
