"""``verify``: does the server still know the runners of config.toml? (facts/commands.md 6)"""

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
    """Verify all or the selected runners; only the server's "forbidden" counts against one."""
    from pyrunner.cli.credentials import identity, remove_entries
    from pyrunner.cli.notice import runtime_platform, user_mode
    from pyrunner.config.load import default_config_path, load_config

    runtime_platform()
    user_mode(hint=True)
    config = load_config(call.text("config") or default_config_path())
    selected = [runner for runner in config.runners if _is_selected(call, runner)]
    if not selected and _has_selector(call):
        raise PyrunnerError("no runner matches the filtering parameters")
    removed = {identity(runner) for runner in selected if not _is_alive(config, runner)}
    if removed and not call.flag("delete"):
        raise PyrunnerError("Failed to verify runners")
    remove_entries(config.path, removed)
    return 0


def _has_selector(call: Invocation) -> bool:
    return any(call.text(name) for name in ("name", "url", "token"))


def _is_selected(call: Invocation, runner: RunnerConfig) -> bool:
    name, url, token = (call.text(flag) for flag in ("name", "url", "token"))
    if not _has_selector(call) or (name and runner.name == name):
        return True
    if not token and (not url or name):
        return False
    return (not token or runner.token == token) and (url in ("", "*") or runner.url == url)


def _is_alive(config: Config, runner: RunnerConfig) -> bool:
    from pyrunner.api.outcomes import Verification
    from pyrunner.cli.credentials import client_of, info_of
    from pyrunner.config.system_id import system_id

    answer = client_of(runner).verify(info_of(config, runner), system_id(config.path))
    return answer.verification is not Verification.REMOVED


COMMAND = Command(
    "verify",
    "Verify all registered runners",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag("name", help="only the runner of this name", aliases=["n"], complete="runner"),
        Flag("url", help="only runners of this server", aliases=["u"], metavar="URL"),
        Flag("token", help="only the runner with this token", aliases=["t"], metavar="TOKEN"),
        Flag("delete", "bool", "remove runners that the server does not know from the config file"),
    ],
    description=(
        "Asks the server of each runner whether it is still registered. Exits with 1 when one is not, unless --delete. "
        "A server that cannot be reached, or fails, says nothing about its runners: they are kept."
    ),
    examples=[
        ("pyrunner verify", "all runners"),
        ("pyrunner verify --delete", "and forget those that are gone"),
    ],
)
