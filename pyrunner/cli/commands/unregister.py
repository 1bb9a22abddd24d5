"""``unregister``: remove runners from the server and from config.toml (facts/commands.md 7)."""

from __future__ import annotations

import logging

from pyrunner.base.errors import PyrunnerError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.config.model import Config, RunnerConfig

log = logging.getLogger(__name__)


def run(call: Invocation) -> int:
    """Unregister one runner, or all."""
    from pyrunner.cli.notice import runtime_platform, user_mode
    from pyrunner.config.load import default_config_path, load_config

    runtime_platform()
    user_mode(hint=False)
    config = load_config(call.text("config") or default_config_path())
    if call.flag("all-runners"):
        _unregister_all(config)
    else:
        _unregister_one(config, _selected(call, config))
    return 0


def _unregister_all(config: Config) -> None:
    from pyrunner.cli.credentials import identity, remove_entries

    log.warning("Unregistering all runners")
    done = {identity(runner): _unregistered(config, runner) for runner in _distinct(config.runners)}
    if not all(done.values()):
        log.error("Failed to unregister runners")
    remove_entries(config.path, {runner for runner, gone in done.items() if gone})


def _unregister_one(config: Config, runner: RunnerConfig) -> None:
    from pyrunner.cli.credentials import identity, remove_entries

    if not _unregistered(config, runner):
        raise PyrunnerError(f'failed to unregister runner "{runner.name or runner.short_token}"')
    remove_entries(config.path, {identity(runner)})


def _unregistered(config: Config, runner: RunnerConfig) -> bool:
    from pyrunner.cli.credentials import unregister
    from pyrunner.config.system_id import system_id

    return unregister(runner, lambda: system_id(config.path))


def _distinct(runners: list[RunnerConfig]) -> list[RunnerConfig]:
    """One of each: entries with equal credentials are one runner for the server."""
    from pyrunner.cli.credentials import identity

    return list({identity(runner): runner for runner in runners}.values())


def _selected(call: Invocation, config: Config) -> RunnerConfig:
    name, url, token = (call.text(flag) for flag in ("name", "url", "token"))
    if not name and not token:
        raise PyrunnerError(
            "failed to unregister runner: at least one of --name or --token must be specified",
            hint="or --all-runners for all of them",
        )
    for runner in config.runners:
        if (not name or runner.name == name) and (not token or runner.token == token):
            return runner
    if name:
        raise PyrunnerError(f"failed to unregister runner: could not find a runner with the name '{name}'")
    if not url:
        from pyrunner.api.tokens import short_token

        raise PyrunnerError(
            f"failed to unregister runner: could not find a runner with the token '{short_token(token)}'",
            hint=f"it is not in {config.path}; give --url to remove it from the server alone",
        )
    return _unsaved(call)


def _unsaved(call: Invocation) -> RunnerConfig:
    """A runner that is not in the file: what the flags say of it."""
    from pyrunner.config.model import RunnerConfig

    return RunnerConfig(
        url=call.text("url"),
        token=call.text("token"),
        tls_ca_file=call.text("tls-ca-file"),
        tls_cert_file=call.text("tls-cert-file"),
        tls_key_file=call.text("tls-key-file"),
    )


COMMAND = Command(
    "unregister",
    "Unregister runners",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag("name", help="the runner of this name", aliases=["n"], complete="runner"),
        Flag("url", help="its server", env=["CI_SERVER_URL"], aliases=["u"], metavar="URL"),
        Flag("token", help="the runner with this token", env=["CI_SERVER_TOKEN"], aliases=["t"], metavar="TOKEN"),
        Flag("tls-ca-file", help="CA bundle of the server", env=["CI_SERVER_TLS_CA_FILE"], complete="file"),
        Flag("tls-cert-file", help="client certificate", env=["CI_SERVER_TLS_CERT_FILE"], complete="file"),
        Flag("tls-key-file", help="client key", env=["CI_SERVER_TLS_KEY_FILE"], complete="file"),
        Flag("all-runners", "bool", "all runners of the config file"),
    ],
    description=(
        "Removes a runner from its server and, when the server agrees, from the config file. Of a runner that was "
        "created in GitLab's UI or API only this machine's part (the runner manager) is removed. With --all-runners, "
        "entries whose server refuses stay, and the exit code is 0."
    ),
    examples=[
        ("pyrunner unregister --name build-1", "one runner"),
        ("pyrunner unregister --all-runners", "every runner of the default config file"),
    ],
)
