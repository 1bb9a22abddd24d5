"""Why a secret could not be had, and who must act (facts/runner-api.md section 7).

Messages name servers, paths and fields. They never hold a value, a token or a key.
"""

from __future__ import annotations

from pyrunner.base.errors import JobError


class SecretError(JobError):
    """A secret could not be had for a reason that has no class of its own: a cloud refused the runner's login."""

    retriable = True


class SecretConfigError(SecretError):
    """The job or its store is not set up right: a field is missing, or the secret may not be read."""

    reason = "runner_configuration_error"
    retriable = False


class SecretMissingError(SecretConfigError):
    """The store has no such secret, version or field."""


class SecretOutageError(SecretError):
    """The provider did not give a usable answer: no connection, a timeout, a server error, no JSON."""

    reason = "runner_external_dependency_failure"
