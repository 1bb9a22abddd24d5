"""Calls that manage a runner: register, verify, unregister, reset its token (facts/runner-api.md section 3)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from pyrunner.api.calls import JSON, Api, Call, Result, encode
from pyrunner.api.outcomes import (
    CLIENT_ERROR,
    CredentialsAnswer,
    UnregisterAnswer,
    Verification,
    VerifyAnswer,
)
from pyrunner.api.tokens import is_authentication_token
from pyrunner.api.wire import Info, RegisterRequest, RunnerCredentials, VerifyRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)


class Management:
    """The management half of `pyrunner.api.client.RunnerClient`."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def register(self, request: RegisterRequest) -> CredentialsAnswer:
        """Register with the registration token that is the endpoint's token (3.1)."""
        token = self._api.endpoint.token
        result = self._call("POST", "runners", msgspec.structs.replace(request, token=token))
        credentials = _read_credentials(result) if result.status == 201 else None
        if credentials is not None:
            log.info("Registering runner... succeeded", extra=self._fields(result))
            return CredentialsAnswer(credentials=credentials, status=result.status)
        reason = "forbidden (check registration token)" if result.status == 403 else _failure(result)
        return self._no_credentials(f"Registering runner... {reason}", result)

    def verify(self, info: Info | None = None, system_id: str = "") -> VerifyAnswer:
        """Ask whether the server still knows the runner; only a 403 says that it does not (3.2).

        A 200 is enough: very old servers send no JSON with it.
        """
        token = self._api.endpoint.token
        request = VerifyRequest(info=info, token=token, system_id=system_id)
        result = self._call("POST", "runners/verify", request)
        created = is_authentication_token(token)
        if result.status == 200:
            log.info(f"Verifying runner... {'is valid' if created else 'is alive'}", extra=self._fields(result))
            return VerifyAnswer(
                verification=Verification.VALID, credentials=_read_credentials(result), status=result.status
            )
        if result.status == 403:
            level, word = (logging.INFO, "is not valid") if created else (logging.ERROR, "is removed")
            log.log(level, f"Verifying runner... {word}", extra=self._failure_fields(result))
            return VerifyAnswer(verification=Verification.REMOVED, status=result.status, failure=result.text)
        log.error(f"Verifying runner... {_failure(result)}", extra=self._failure_fields(result))
        return VerifyAnswer(verification=Verification.UNKNOWN, status=result.status, failure=result.text)

    def unregister(self) -> UnregisterAnswer:
        """Remove a runner that has a legacy token."""
        request = VerifyRequest(token=self._api.endpoint.token)
        return self._remove("runners", request, "Unregistering runner from GitLab")

    def unregister_manager(self, system_id: str) -> UnregisterAnswer:
        """Remove this runner manager of a runner that was created in the UI or the API."""
        request = VerifyRequest(token=self._api.endpoint.token, system_id=system_id)
        return self._remove("runners/managers", request, "Unregistering runner manager from GitLab")

    def _remove(self, path: str, request: VerifyRequest, action: str) -> UnregisterAnswer:
        result = self._call("DELETE", path, request)
        if result.status == 204:
            log.info(f"{action} succeeded", extra=self._fields(result))
            return UnregisterAnswer(done=True, status=result.status)
        reason = "forbidden" if result.status == 403 else _failure(result)
        log.error(f"{action} {reason}", extra=self._failure_fields(result))
        return UnregisterAnswer(done=False, status=result.status, failure=result.text)

    def reset_token(self) -> CredentialsAnswer:
        """Replace the runner's token, which authorizes this itself."""
        body = VerifyRequest(token=self._api.endpoint.token)
        path = "runners/reset_authentication_token"
        return self._reset(self._call("POST", path, body, headers={}, name="reset_token"))

    def reset_token_with_pat(self, runner_id: int, pat: str) -> CredentialsAnswer:
        """Replace the token of runner `runner_id`, authorized by a personal access token."""
        path = f"runners/{runner_id}/reset_authentication_token"
        return self._reset(self._call("POST", path, None, headers={"PRIVATE-TOKEN": pat}, name="reset_token"))

    def _reset(self, result: Result) -> CredentialsAnswer:
        action = "Resetting runner authentication token..."
        credentials = _read_credentials(result) if result.status == 201 else None
        if credentials is not None:
            log.info(f"{action} succeeded", extra=self._fields(result))
            return CredentialsAnswer(credentials=credentials, status=result.status)
        reason = "failed (check used token)" if result.status == 403 else _failure(result)
        return self._no_credentials(f"{action} {reason}", result)

    def _no_credentials(self, message: str, result: Result) -> CredentialsAnswer:
        log.error(message, extra=self._failure_fields(result))
        return CredentialsAnswer(status=result.status, failure=result.text)

    def _call(
        self,
        method: str,
        path: str,
        body: object,
        headers: Mapping[str, str] | None = None,
        name: str = "",
    ) -> Result:
        authorization = {"RUNNER-TOKEN": self._api.endpoint.token} if headers is None else headers
        return self._api.make(
            Call(method=method, path=path, headers={**JSON, **authorization}, body=encode(body), name=name)
        )

    def _fields(self, result: Result) -> dict[str, object]:
        return self._api.endpoint.log_fields | result.fields

    def _failure_fields(self, result: Result) -> dict[str, object]:
        return self._api.endpoint.log_fields | result.failure_fields


def _failure(result: Result) -> str:
    return "client error" if result.status == CLIENT_ERROR else "failed"


def _read_credentials(result: Result) -> RunnerCredentials | None:
    """The body of a success; None when it is not what was expected (very old servers send none)."""
    if result.response is None or not result.response.is_json:
        return None
    try:
        return msgspec.json.decode(result.response.body, type=RunnerCredentials)
    except msgspec.DecodeError:
        return None
