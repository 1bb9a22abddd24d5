"""The stage ``resolve_secrets`` (facts/job-lifecycle.md sections 1 and 3.1, facts/runner-api.md 5.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError
from pyrunner.secrets.loader import find_provider, open_source, provider_names
from pyrunner.secrets.protocol import Say, SecretSource

_FAILS_IF_MISSING = "FF_SECRET_RESOLVING_FAILS_IF_MISSING"
_EXPONENTIAL = "FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY"
_WHERE = "resolving secrets"


def resolve_secrets(
    secrets: Mapping[str, Any],
    variables: Variables,
    flags: Mapping[str, bool],
    cancel: CancelToken,
    say: Say,
    *,
    attempts: int = 1,
) -> list[JobVariable]:
    """The variables that the payload's `secrets` become: masked, raw, files unless their spec says otherwise.

    A secret of an unknown provider is left out with a warning. Nothing of a value or a token is written to `say`.

    Args:
        secrets: variable name → provider object and ``file``, as the server sent it.
        variables: for references in the specs.
        flags: the job's resolved feature flags.
        cancel: the job's token; not under the job's timeout.
        attempts: ``SECRETS_RETRIEVAL_ATTEMPTS``; how often each failure that another try may cure is met.

    Raises:
        SecretError: a secret cannot be had; the reason says who must act.
        BaseException: the cause of `cancel`.
    """
    stage = _Stage(variables, flags, cancel, say)
    left = dict(secrets)
    found: list[JobVariable] = []
    pauses = _pauses(exponential=flags.get(_EXPONENTIAL, True))
    try:
        for _ in range(attempts - 1):
            try:
                stage.resolve(left, found)
            except SecretError as error:
                if not error.retriable:
                    raise
                # what the log shows of the failure that is tried again
                say.warning(str(error))
                say.warning("Retrying...")
                cancel.wait(next(pauses))
                cancel.raise_if_cancelled()
            else:
                return found
        stage.resolve(left, found)
        return found
    finally:
        stage.close()


class _Stage:
    """The secrets of one job; its sources live as long as it does."""

    def __init__(self, variables: Variables, flags: Mapping[str, bool], cancel: CancelToken, say: Say) -> None:
        self._variables = variables
        self._fails_if_missing = flags.get(_FAILS_IF_MISSING, True)
        self._cancel = cancel
        self._say = say
        self._sources: dict[str, SecretSource] = {}

    def resolve(self, left: dict[str, Any], found: list[JobVariable]) -> None:
        """Move secret after secret from `left` to `found`; what is done stays done when one fails."""
        while left:
            key = next(iter(left))
            self._cancel.raise_if_cancelled()
            variable = self._variable(key, left[key])
            if variable is not None:
                found.append(variable)
            del left[key]

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources.values():
            source.close()

    def _variable(self, key: str, secret: Any) -> JobVariable | None:
        if not isinstance(secret, Mapping):
            raise SecretConfigError(f'{_WHERE}: "{key}": the definition of the secret is not an object')
        named = [name for name, spec in secret.items() if name != "file" and spec is not None]
        provider = find_provider(named)
        self._say.plain(f'Resolving secret "{key}"...')
        if not provider:
            known = ", ".join(provider_names())
            given = ", ".join(f'"{name}"' for name in named) or "none"
            self._say.warning(f'Not resolved: no known provider for the secret "{key}": {given}; known are: {known}')
            return None
        self._say.plain(f'Using "{provider}" secret resolver...')
        file = _is_file(key, secret.get("file"))
        try:
            if not isinstance(secret[provider], Mapping):
                raise SecretConfigError(f'"{provider}" is not an object')
            value = self._source(provider).resolve(secret[provider], self._variables.expand, self._cancel)
        except SecretMissingError as error:
            if self._fails_if_missing:
                raise SecretMissingError(f"{_WHERE}: secret not found: {key} ({error})") from error
            self._say.warning(f"Secret not found: {key} ({error}). The variable is empty: {_FAILS_IF_MISSING} is off")
            value = ""
        except SecretError as error:
            raise type(error)(f'{_WHERE}: "{key}": {error}') from error
        return JobVariable(key=key, value=value, file=file, masked=True, raw=True)

    def _source(self, provider: str) -> SecretSource:
        if provider not in self._sources:
            self._sources[provider] = open_source(provider)
        return self._sources[provider]


def _is_file(key: str, value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, bool):
        raise SecretConfigError(f'{_WHERE}: "{key}": "file" must be true or false')
    return value


def _pauses(*, exponential: bool) -> Iterator[float]:
    """Seconds between tries of a stage."""
    pause, longest = (5.0, 300.0) if exponential else (1.0, 5.0)
    while True:
        yield pause
        pause = min(pause * 2, longest)
