"""``lint``: everything that is wrong or doubtful in a config file (facts/config-toml.md 2)."""

from __future__ import annotations

import logging
import sys

from pyrunner.base.errors import PyrunnerError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.config.lint import Finding, Report

_LOG = logging.getLogger(__name__)


def run(call: Invocation) -> int:
    """Findings on stdout; exit 1 when one of them is an error.

    Raises:
        PyrunnerError: the file is missing or has errors.
    """
    from pyrunner.cli.notice import runtime_platform
    from pyrunner.config.lint import lint_file
    from pyrunner.config.load import default_config_path

    runtime_platform()
    report = lint_file(call.text("config") or default_config_path())
    as_json = call.text("output") == "json"
    _print_json(report) if as_json else _print_text(report)
    sys.stdout.flush()
    if errors := report.count("error"):
        raise PyrunnerError(_summary(report, errors))
    if not as_json:
        _LOG.info("Configuration file is valid.")
    return 0


def _summary(report: Report, errors: int) -> str:
    unknown = [finding for finding in report.findings if finding.message.startswith("unknown key: ")]
    if len(unknown) == errors:
        lines = "".join(f"\n  {finding.message}" for finding in unknown)
        return f"{errors} unknown key(s) found in {report.path}:{lines}"
    return f"{errors} error(s) found in {report.path}"


def _print_text(report: Report) -> None:
    for finding in report.findings:
        sys.stdout.write(f"{report.path}{_place(finding)}: {finding.severity}: {finding.message}\n")
        if finding.source:
            sys.stdout.write(f"    {finding.source}\n")
        if finding.fix:
            sys.stdout.write(f"    fix: {finding.fix}\n")


def _place(finding: Finding) -> str:
    return "".join(f":{number}" for number in (finding.line, finding.column) if number)


def _print_json(report: Report) -> None:
    import json

    findings = [
        {
            "severity": finding.severity,
            "key": finding.key,
            "line": finding.line,
            "column": finding.column,
            "message": finding.message,
            "fix": finding.fix,
        }
        for finding in report.findings
    ]
    document = {"path": report.path, "valid": not report.count("error"), "findings": findings}
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


COMMAND = Command(
    "lint",
    "Check a config.toml",
    run,
    flags=[
        Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
        Flag(
            "output",
            help="format of the findings",
            choices=["text", "json"],
            strict_choices=True,
            default="text",
        ),
    ],
    description=(
        "Reports syntax errors, wrong types, unknown keys and settings that do not fit together, each with file, line "
        "and column. Warnings do not fail it, errors end it with exit code 1."
    ),
    examples=[
        ("pyrunner lint --config config.toml", "findings as file:line:column"),
        ("pyrunner lint --output json | jq .findings", "for programs"),
    ],
)
