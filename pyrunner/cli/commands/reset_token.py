"""``reset-token``: replace the authentication tokens of runners (facts/commands.md 9)."""

from __future__ import annotations

import logging
import os

from pyrunner.base.errors import ConfigError, PyrunnerError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.api.wire import RunnerCredentials
    from pyrunner.cli.parse import Invocation
    from pyrunner.config.edit import ConfigEditor
    from pyrunner.config.model import Config, RunnerConfig

log = logging.getLogger(__name__)

_FAILED = "Failed to reset runner authentication token"


def run(call: Invocation) -> int:
    """Reset one token, or all; each is saved as soon as the server gave it."""
    from pyrunner.cli.notice import runtime_platform, user_mode
    from pyrunner.config.load import default_config_path, load_config

    runtime_platform()
    user_mode(hint=True)
    config = load_config(call.text("config") or default_config_path())
    _refuse_unwritable(config.path)
    if call.flag("all-runners"):
        log.warning("Resetting all runner authentication tokens")
        for runner in config.runners:
            try:
                _reset(config, runner, call.text("pat"))
            except PyrunnerError as error:
                log.error("%s", error, extra={"runner": runner.short_token, "runner_name": runner.name})  # noqa: TRY400
    else:
        _reset(config, _selected(call, config), call.text("pat"))
    log.info("Updated")
    return 0


def _reset(config: Config, runner: RunnerConfig, pat: str) -> None:
    from pyrunner.cli.credentials import change_entries, client_of, expiry, identity, now

    client = client_of(runner)
    answer = client.reset_token_with_pat(runner.id, pat) if pat else client.reset_token()
    if answer.credentials is None or not answer.credentials.token:
        raise PyrunnerError(_FAILED, hint=answer.failure)
    credentials: RunnerCredentials = answer.credentials

    def save(editor: ConfigEditor, index: int, _runner: RunnerConfig) -> None:
        editor.set_runner(index, "token", credentials.token)
        editor.set_runner(index, "token_obtained_at", now())
        editor.set_runner(index, "token_expires_at", expiry(credentials))

    try:
        change_entries(config.path, {identity(runner)}, save)
    except ConfigError as error:
        raise PyrunnerError(
            f"the server has a new token for this runner that could not be saved: {error}",
            hint="reset it again with --pat once the file can be written",
        ) from error


def _refuse_unwritable(path: str) -> None:
    """A new token that cannot be saved is a lost runner: better not to ask for it."""
    directory = os.path.dirname(os.path.realpath(path))
    if not os.access(directory, os.W_OK) or (os.path.exists(path) and not os.access(path, os.W_OK)):
        raise ConfigError("cannot be written, so no token is reset", path=path)


def _selected(call: Invocation, config: Config) -> RunnerConfig:
    name, url, number = call.text("name"), call.text("url"), call.number("id")
    for runner in config.runners:
        if runner.name == name if name else (runner.url == url and runner.id == number):
            return runner
    missing = f"with the name '{name}'" if name else f'with the URL "{url}" and ID {number}'
    raise PyrunnerError(
        f"Couldn't get runner credentials: could not find a runner {missing}",
        hint="" if name or url else "give --name, or --url and --id, or --all-runners",
    )


COMMAND = Command(
    "reset-token",
    "Reset a runner's authentication token",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag("name", help="the runner of this name", aliases=["n"], complete="runner"),
        Flag("url", help="its server, together with --id", aliases=["u"], metavar="URL"),
        Flag("id", "int", "its id at the server", aliases=["i"], metavar="ID"),
        Flag("all-runners", "bool", "all runners of the config file"),
        Flag("pat", help="personal access token that authorizes the reset", metavar="TOKEN"),
    ],
    description=(
        "Has the server replace a runner's authentication token and saves the new one. The old token authorizes this "
        "itself; when it is lost or expired, a personal access token does."
    ),
    examples=[
        ("pyrunner reset-token --name build-1", "one runner"),
        ("pyrunner reset-token --name build-1 --pat glpat-…", "when its token does not work any more"),
    ],
)
