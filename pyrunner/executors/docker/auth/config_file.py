"""The credentials in a Docker config: ``config.json``, the older ``.dockercfg``, ``DOCKER_AUTH_CONFIG``."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pyrunner.executors.docker.auth.book import CredentialError, Offer, RegistryCredentials, registry_key
from pyrunner.executors.docker.auth.helper_program import HelperProgram, Secret

#: Makes the helper program of a name.
Programs = Callable[[str], HelperProgram]


def offers_of_config(text: str, source: str, programs: Programs) -> Iterator[Offer]:
    """What a config offers: its entries, its store, its helpers, in this order (facts/executors.md 6.9).

    Raises:
        CredentialError: it is no config.
        SystemFailure: a helper's name holds a path separator.
    """
    config = _object(text, source)
    legacy = not ({"auths", "credsStore", "credHelpers"} & config.keys())
    entries = _table(config if legacy else config.get("auths"), source)
    for key, entry in entries.items():
        # An entry without content is what a config with a credential store has: it must not hide the store's.
        if isinstance(entry, dict) and any(entry.get(name) for name in _CONTENT):
            yield Offer(registry=registry_key(key), source=source, take=partial(_of_entry, key, entry, source))
    if legacy:
        return
    yield from _of_store(config.get("credsStore"), source, programs)
    for key, name in _table(config.get("credHelpers"), source).items():
        if not isinstance(name, str):
            raise CredentialError(f"{source}: credHelpers: {key}: expected the name of a helper")
        take = partial(_of_helper, programs(name), key, source)
        yield Offer(registry=registry_key(key), source=source, take=take)


_CONTENT = ("auth", "username", "password", "identitytoken", "registrytoken")


def _of_store(name: object, source: str, programs: Programs) -> Iterator[Offer]:
    if not name:
        return
    if not isinstance(name, str):
        raise CredentialError(f"{source}: credsStore: expected the name of a helper")
    program = programs(name)
    for key in program.servers():
        yield Offer(registry=registry_key(key), source=source, take=partial(_of_helper, program, key, source))


def _of_helper(program: HelperProgram, key: str, source: str) -> RegistryCredentials | None:
    secret: Secret | None = program.get(key)
    if secret is None:
        return None
    registry = registry_key(key)
    if secret.is_token:
        return RegistryCredentials(registry=registry, source=source, identity_token=secret.secret)
    return RegistryCredentials(registry=registry, source=source, username=secret.username, password=secret.secret)


def _of_entry(key: str, entry: Mapping[str, Any], source: str) -> RegistryCredentials:
    values = {name: entry.get(name) or "" for name in _CONTENT}
    if not all(isinstance(value, str) for value in values.values()):
        raise CredentialError(f"{source}: auths: {key}: expected texts")
    if values["auth"]:
        values["username"], values["password"] = _decoded(values["auth"], f"{source}: auths: {key}")
    return RegistryCredentials(
        registry=registry_key(key),
        source=source,
        username=values["username"],
        password=values["password"],
        identity_token=values["identitytoken"],
        registry_token=values["registrytoken"],
    )


def _decoded(auth: str, where: str) -> tuple[str, str]:
    try:
        text = base64.b64decode("".join(auth.split()), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise CredentialError(f"{where}: auth is not base64 of user:password") from error
    username, colon, password = text.partition(":")
    if not colon:
        raise CredentialError(f"{where}: auth is not base64 of user:password")
    # Old clients padded the password.
    return username, password.strip("\0")


def _object(text: str, source: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CredentialError(f"{source}: no valid JSON{_place(error)}") from error
    if not isinstance(config, dict):
        raise CredentialError(f"{source}: expected a JSON object")
    return config


def _place(error: BaseException) -> str:
    """Line and column only: the message itself would quote what may be a password."""
    return f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""


def _table(value: object, source: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CredentialError(f"{source}: expected auths and credHelpers to be objects")
    return value
