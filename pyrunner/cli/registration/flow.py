"""Registering a runner: which token was given decides the way (facts/commands.md 5, "Token kinds")."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.info import client_info
from pyrunner.api.outcomes import CLIENT_ERROR, NO_ANSWER, Verification, VerifyAnswer
from pyrunner.api.tokens import is_authentication_token
from pyrunner.api.wire import RegisterRequest, RunnerCredentials
from pyrunner.base.errors import ApiError, PyrunnerError
from pyrunner.cli.credentials import info_of, take_credentials, unregister
from pyrunner.cli.registration.prompts import Prompter
from pyrunner.config.system_id import system_id

if TYPE_CHECKING:
    from pyrunner.config.model import Config, RunnerConfig

log = logging.getLogger(__name__)

_RESERVED = "--locked, --access-level, --run-untagged, --maximum-timeout, --paused, --tag-list, and --maintenance-note"
_DEPRECATED = (
    "Support for registration tokens and runner parameters in the 'register' command has been deprecated in "
    "GitLab Runner 15.6 and will be replaced with support for authentication tokens."
)


@dataclass(kw_only=True)
class ServerOptions:
    """What the server keeps of a runner that is registered with a registration token."""

    tag_list: str = ""
    run_untagged: bool = False
    locked: bool = True
    access_level: str = ""
    maximum_timeout: int = 0
    paused: bool = False
    maintenance_note: str = ""

    @property
    def touched(self) -> bool:
        """Whether anything differs from what an untouched command line gives."""
        return self != ServerOptions()


@dataclass(kw_only=True)
class Registration:
    """One run of the command, up to the point where the server knows the runner."""

    runner: RunnerConfig
    config: Config
    prompter: Prompter
    options: ServerOptions
    registration_token: str = field(default="", repr=False)
    #: Whether the server holds something that must be taken back if a later step fails.
    done: bool = False

    def run(self) -> None:
        """Ask what is missing, and make the runner known.

        Raises:
            PyrunnerError: in one line, why not.
        """
        runner = self.runner
        runner.url = self.prompter.ask(
            "url", "Enter the GitLab instance URL (for example, https://gitlab.com/):", runner.url
        )
        if is_authentication_token(runner.token):
            if self.options.touched:
                raise PyrunnerError(_reserved_text())
            self._with_authentication_token()
        elif runner.token:
            self._with_legacy_token()
        else:
            self._with_registration_token()

    def take_back(self) -> None:
        """Remove the runner from the server again."""
        if self.done:
            self.done = False
            unregister(self.runner, self._system_id)

    def _with_registration_token(self) -> None:
        token = self.prompter.ask(
            "registration-token", "Enter the registration token:", self.registration_token, secret=True
        )
        if is_authentication_token(token):
            self.runner.token = token
            if self.options.touched:
                log.warning(
                    "You have specified an authentication token in the legacy parameter --registration-token. "
                    "These parameters are ignored: %s.",
                    _RESERVED,
                )
            self._with_authentication_token()
        else:
            self._register(token)

    def _with_authentication_token(self) -> None:
        if any(known.token == self.runner.token for known in self.config.runners):
            log.warning("A runner with this system ID and token has already been registered.")
        answer = self._verify()
        credentials = answer.credentials
        if credentials is None or not credentials.id:
            failure = answer.failure or "the server gave no runner id"
            raise ApiError("Failed to verify the runner.", status=answer.status, hint=_advice(answer.status, failure))
        self._accepted(credentials)
        self.runner.name = self.prompter.ask(
            "name",
            "Enter a name for the runner. This is stored only in the local config.toml file:",
            self.runner.name,
        )

    def _with_legacy_token(self) -> None:
        log.info("Token specified trying to verify runner...")
        log.warning("If you want to register use the '-r' instead of '-t'.")
        answer = self._verify()
        if answer.verification is not Verification.VALID:
            raise ApiError(
                "Failed to verify the runner. You may be having network problems.",
                status=answer.status,
                hint=_advice(answer.status, answer.failure),
            )
        # the runner was there before: a later failure leaves it there
        take_credentials(self.runner, answer.credentials or RunnerCredentials())

    def _register(self, token: str) -> None:
        log.warning(_DEPRECATED)
        runner, options, ask = self.runner, self.options, self.prompter.ask
        runner.name = ask("name", "Enter a description for the runner:", runner.name)
        tags = ask("tag-list", "Enter tags for the runner (comma-separated):", options.tag_list, optional=True)
        note = ask(
            "maintenance-note",
            "Enter optional maintenance note for the runner:",
            options.maintenance_note,
            optional=True,
        )
        request = RegisterRequest(
            info=client_info(),
            description=runner.name or msgspec.UNSET,
            maintenance_note=note or msgspec.UNSET,
            tag_list=tags or msgspec.UNSET,
            run_untagged=options.run_untagged or not tags,
            locked=options.locked,
            access_level=options.access_level or msgspec.UNSET,
            maximum_timeout=options.maximum_timeout or msgspec.UNSET,
            paused=options.paused,
        )
        answer = self._client(token).register(request)
        if answer.credentials is None or not answer.credentials.token:
            hint = _advice(answer.status, answer.failure or "the server gave no token")
            raise ApiError("Failed to register the runner.", status=answer.status, hint=hint)
        self._accepted(answer.credentials)

    def _verify(self) -> VerifyAnswer:
        return self._client(self.runner.token).verify(info_of(self.config, self.runner), self._system_id())

    def _accepted(self, credentials: RunnerCredentials) -> None:
        take_credentials(self.runner, credentials)
        self.done = True

    def _client(self, token: str) -> RunnerClient:
        runner = self.runner
        return RunnerClient(
            Endpoint(
                url=runner.url,
                token=token,
                tls_ca_file=runner.tls_ca_file,
                tls_cert_file=runner.tls_cert_file,
                tls_key_file=runner.tls_key_file,
            )
        )

    def _system_id(self) -> str:
        return system_id(self.config.path)


def _reserved_text() -> str:
    return (
        f"Runner configuration other than name and executor configuration is reserved (specifically {_RESERVED}) "
        "and cannot be specified when registering with a runner authentication token. "
        "This configuration is specified on the GitLab server. "
        "Please try again without specifying any of those arguments."
    )


def _advice(status: int, failure: str) -> str:
    """What to look at, behind what the server (or the network) said."""
    if status in (CLIENT_ERROR, NO_ANSWER):
        return f"{failure}\n  check --url, the network, proxies in the environment and --tls-ca-file"
    if failure.startswith("GET "):
        # a POST that was answered with 301 or 302 is followed as GET, which no longer says anything
        return f"{failure}\n  the server redirects: give the URL that it redirects to as --url"
    if status in (401, 403):
        return f"{failure}\n  check that the token is of this server, complete, and not expired or revoked"
    if status in (404, 405):
        return f"{failure}\n  check that --url is the base URL of GitLab, with its real scheme and path"
    return failure
