"""Readers of the keywords that say what a job does and when: scripts, variables, conditions, order."""

from __future__ import annotations

import re

from pyrunner.pipeline.job import AllowFailure, Need, Retry, Variable, When
from pyrunner.pipeline.spot import Spot
from pyrunner.pipeline.yaml_source import Items, Table

RETRY_REASONS = (
    "always",
    "unknown_failure",
    "script_failure",
    "api_failure",
    "stuck_or_timeout_failure",
    "runner_system_failure",
    "runner_unsupported",
    "stale_schedule",
    "job_execution_timeout",
    "archived_failure",
    "unmet_prerequisites",
    "scheduler_failure",
    "data_integrity_failure",
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOREIGN_NEEDS = ("project", "ref", "pipeline", "parallel")


def read_script(spot: Spot) -> tuple[str, ...]:
    """``script``: at least one command."""
    commands = spot.commands()
    if not any(command.strip() for command in commands):
        raise spot.error("has no command")
    return commands


def read_commands(spot: Spot) -> tuple[str, ...]:
    """``before_script``, ``after_script``: may be empty."""
    return spot.commands()


def read_variables(spot: Spot) -> dict[str, Variable]:
    """``variables``: names to texts or numbers, or to mappings with ``value``."""
    table = spot.table("a mapping of names to values")
    found = {}
    for key, value in table.items():
        child = Spot(value=value, place=table.places[key], name=f"{spot.name}:{key}")
        if not _NAME.fullmatch(key):
            raise child.error("a variable name has letters, digits and _ and does not begin with a digit")
        found[key] = _variable(child)
    return found


def _variable(spot: Spot) -> Variable:
    if not isinstance(spot.value, Table):
        return Variable(value=_scalar(spot))
    fields = spot.fields(("value", "description", "expand", "options"))
    if "value" not in fields and "options" in fields:
        raise spot.error("options need a value, which is their default")
    options = fields["options"].texts() if "options" in fields else ()
    value = _scalar(fields["value"]) if "value" in fields else ""
    if options and value not in options:
        raise fields["value"].error(f"must be one of its options: {', '.join(options)}")
    return Variable(
        value=value,
        raw="expand" in fields and not fields["expand"].flag(),
        description=fields["description"].text() if "description" in fields else "",
    )


def _scalar(spot: Spot) -> str:
    value = spot.value
    if isinstance(value, bool):
        raise spot.wrong("a text or a number", hint=f'quote it: "{str(value).lower()}"')
    if isinstance(value, (str, int, float)):
        return str(value)
    if value is None:
        return ""
    raise spot.wrong("a text or a number")


def read_when(spot: Spot) -> When:
    """``when``; ``delayed`` is refused."""
    if spot.value == "delayed":
        raise spot.error("the value delayed is not supported in this version")
    return When(spot.one_of([item.value for item in When]))


def read_allow_failure(spot: Spot) -> AllowFailure:
    """``allow_failure``: a boolean, or ``exit_codes``."""
    if not isinstance(spot.value, Table):
        if not isinstance(spot.value, bool):
            raise spot.wrong("true, false or a mapping with exit_codes")
        return AllowFailure(always=spot.flag())
    fields = spot.fields(("exit_codes",))
    if "exit_codes" not in fields:
        raise spot.error("exit_codes is missing")
    return AllowFailure(exit_codes=frozenset(fields["exit_codes"].numbers(0, 2**31 - 1)))


def read_retry(spot: Spot) -> Retry:
    """``retry``: 0 to 2, or a mapping with ``max``, ``when``, ``exit_codes``."""
    if not isinstance(spot.value, Table):
        return Retry(times=spot.number(0, 2))
    fields = spot.fields(("max", "when", "exit_codes"))
    codes = frozenset(fields["exit_codes"].numbers(0, 2**31 - 1)) if "exit_codes" in fields else frozenset()
    reasons = frozenset() if codes else frozenset({"always"})
    if "when" in fields:
        when = fields["when"]
        items = when.items("a list") if isinstance(when.value, Items) else [when]
        reasons = frozenset(item.one_of(RETRY_REASONS) for item in items)
    return Retry(times=fields["max"].number(0, 2) if "max" in fields else 2, reasons=reasons, exit_codes=codes)


def read_timeout(spot: Spot) -> int:
    """``timeout`` in seconds."""
    seconds = spot.seconds()
    if seconds < 1:
        raise spot.error("must be longer than a second")
    return seconds


def read_tags(spot: Spot) -> tuple[str, ...]:
    """``tags``."""
    return spot.texts()


def read_names(spot: Spot) -> tuple[str, ...]:
    """``stages``, ``dependencies``: a list of names."""
    return tuple(item.text() for item in spot.items("a list of names"))


def read_stage(spot: Spot) -> str:
    """``stage``."""
    return spot.text()


def read_needs(spot: Spot) -> tuple[Need, ...]:
    """``needs``: a list of job names or of mappings with ``job``, ``artifacts``, ``optional``."""
    found: dict[str, Need] = {}
    for item in spot.items("a list of jobs"):
        need = _need(item)
        if need.job in found:
            raise item.error(f"{need.job} is listed twice")
        found[need.job] = need
    return tuple(found.values())


def _need(spot: Spot) -> Need:
    if not isinstance(spot.value, Table):
        return Need(job=spot.text(), place=spot.place)
    fields = spot.fields(("job", "artifacts", "optional"), refused=_FOREIGN_NEEDS)
    if "job" not in fields:
        raise spot.error("job is missing")
    return Need(
        job=fields["job"].text(),
        artifacts="artifacts" not in fields or fields["artifacts"].flag(),
        optional="optional" in fields and fields["optional"].flag(),
        place=fields["job"].place,
    )
