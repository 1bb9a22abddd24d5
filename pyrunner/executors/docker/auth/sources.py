"""Where credentials come from, in order; a source that fails only warns (facts/executors.md 6.9)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from pyrunner.api.wire import Credentials
from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.auth.book import (
    CredentialBook,
    CredentialError,
    Offer,
    RegistryCredentials,
    registry_key,
)
from pyrunner.executors.docker.auth.config_file import offers_of_config
from pyrunner.executors.docker.auth.helper_program import HelperProgram
from pyrunner.executors.docker.context import DockerJob

VARIABLE = "DOCKER_AUTH_CONFIG"
PAYLOAD = "job payload (GitLab Registry)"
_FILES = (".docker/config.json", ".dockercfg")


def credential_book(job: DockerJob) -> CredentialBook:
    """The credentials that `job` has."""
    return CredentialBook(
        [
            partial(_of_variable, job.variables.get(VARIABLE), job.token),
            partial(_of_home, job.os_user, job.token),
            partial(_of_payload, job.job.credentials),
        ],
        warn=job.trace.warning,
    )


def _of_variable(text: str, token: CancelToken) -> Iterator[Offer]:
    if text.strip():
        yield from offers_of_config(text, f"${VARIABLE}", partial(HelperProgram, token=token))


def _of_home(user: str, token: CancelToken) -> Iterator[Offer]:
    """Of the first file that the runner's user (or the one of ``run --user``) has."""
    home = os.path.expanduser(f"~{user}")
    for name in _FILES if os.path.isabs(home) else ():
        path = Path(home, name)
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise CredentialError(f"{path}: cannot be read: {_reason(error)}") from error
        yield from offers_of_config(text, str(path), partial(HelperProgram, token=token))
        return


def _of_payload(credentials: Iterable[Credentials]) -> Iterator[Offer]:
    for entry in credentials:
        if entry.type == "registry":
            found = RegistryCredentials(
                registry=registry_key(entry.url), username=entry.username, password=entry.password, source=PAYLOAD
            )
            yield Offer(registry=found.registry, source=PAYLOAD, take=partial(_itself, found))


def _itself(found: RegistryCredentials) -> RegistryCredentials:
    return found


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or "unknown" if isinstance(error, OSError) else "it is no text"
