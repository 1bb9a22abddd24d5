"""Where credentials come from, in order; a source that fails only warns (facts/executors.md 6.9)."""

from __future__ import annotations

from pyrunner.executors.docker.auth.book import CredentialBook, RegistryCredentials, registry_key
from pyrunner.executors.docker.context import DockerJob

PAYLOAD = "job payload (GitLab Registry)"


def credential_book(job: DockerJob) -> CredentialBook:
    """The credentials that `job` has."""
    return CredentialBook([*_of_payload(job)])


def _of_payload(job: DockerJob) -> list[RegistryCredentials]:
    return [
        RegistryCredentials(
            registry=registry_key(entry.url), username=entry.username, password=entry.password, source=PAYLOAD
        )
        for entry in job.job.credentials
        if entry.type == "registry"
    ]
