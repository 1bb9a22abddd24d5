"""``list``: the runners of a config file (facts/commands.md 8)."""

from __future__ import annotations

import logging
import sys

from pyrunner.base.errors import ConfigError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.config.model import Config

_LOG = logging.getLogger(__name__)


def run(call: Invocation) -> int:
    """One log line per runner, or a JSON document on stdout; a broken config is a warning only."""
    from pyrunner.cli.notice import runtime_platform
    from pyrunner.config.load import default_config_path, load_config

    runtime_platform()
    path = call.text("config") or default_config_path()
    as_json = call.text("output") == "json"
    if not as_json:
        _LOG.info("Listing configured runners", extra={"ConfigFile": path})
    try:
        config = load_config(path)
    except ConfigError as error:
        if as_json:
            # a program that reads the document must not take a broken file for an empty one
            raise
        _LOG.warning(str(error))
        return 0
    if as_json:
        _print_json(config)
        return 0
    for runner in config.runners:
        fields = {"Executor": runner.executor, "Token": runner.token, "URL": runner.url}
        _LOG.info("%s", runner.name, extra=fields)
    return 0


def _print_json(config: Config) -> None:
    import json

    runners = [
        {
            "name": runner.name,
            "id": runner.id,
            "url": runner.url,
            "executor": runner.executor,
            "short_token": runner.short_token,
            "limit": runner.limit,
        }
        for runner in config.runners
    ]
    json.dump({"config": config.path, "runners": runners}, sys.stdout, indent=2)
    sys.stdout.write("\n")


COMMAND = Command(
    "list",
    "List all configured runners",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag(
            "output",
            help="text: log lines; json: a document on stdout, with short tokens only",
            choices=["text", "json"],
            strict_choices=True,
            default="text",
        ),
    ],
    description=(
        "Names every runner of the config file with its executor, token and URL on stderr, as GitLab Runner does. "
        "With --output json the document on stdout shows only the part of a token that logs show."
    ),
    examples=[
        ("pyrunner list", "the runners of the default config file"),
        ("pyrunner list --config ci/config.toml --output json", "for programs"),
    ],
)
