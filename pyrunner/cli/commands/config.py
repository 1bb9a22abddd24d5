"""``config``: the JSON Schema of config.toml and the feature flags."""

from __future__ import annotations

import sys

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def run(call: Invocation) -> int:
    """Called without a subcommand.

    Raises:
        UsageError: always; it names the subcommands.
    """
    raise UsageError(f"{call.program} config: what to show is missing", hint="one of: schema, flags")


def run_schema(_call: Invocation) -> int:
    """The JSON Schema, on stdout."""
    import json

    from pyrunner.config.schema import config_schema

    json.dump(config_schema(), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    return 0


def run_flags(call: Invocation) -> int:
    """All feature flags, on stdout."""
    from pyrunner.config.feature_flags import FEATURE_FLAGS

    flags = list(FEATURE_FLAGS.values())
    if call.text("output") == "json":
        import json

        rows = [
            {"name": flag.name, "default": flag.default, "built": flag.built, "description": flag.description}
            for flag in flags
        ]
        json.dump(rows, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return 0
    width = max(len(flag.name) for flag in flags)
    for flag in flags:
        note = "" if flag.built else " (no effect in this version)"
        default = "true" if flag.default else "false"
        sys.stdout.write(f"{flag.name:<{width}}  {default:<5}  {flag.description}{note}\n")
    return 0


_SCHEMA = Command(
    "schema",
    "Print the JSON Schema of config.toml",
    run_schema,
    description="Editors that know TOML schemas check and complete config.toml with it.",
    examples=[("pyrunner config schema > config.schema.json", "then name the file in the editor's settings")],
)

_FLAGS = Command(
    "flags",
    "List the feature flags",
    run_flags,
    flags=[
        Flag(
            "output",
            help="format of the list",
            choices=["text", "json"],
            strict_choices=True,
            default="text",
        ),
    ],
    description=(
        "Feature flags are set in [runners.feature_flags] or by job variables of the same name; what the config file "
        "says wins."
    ),
    examples=[("pyrunner config flags", "name, default and meaning of each")],
)

COMMAND = Command(
    "config",
    "Show the config schema and the feature flags",
    run,
    subcommands={"schema": _SCHEMA, "flags": _FLAGS},
    examples=[
        ("pyrunner config schema", "JSON Schema of config.toml"),
        ("pyrunner config flags --output json", "feature flags for programs"),
    ],
)
