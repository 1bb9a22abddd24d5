"""``pyrunner coordinator runner create | list | delete``."""

from __future__ import annotations

import sys

from pyrunner.base.errors import UsageError
from pyrunner.cli.coordinator.client import CoordinatorClient, data_dir_of
from pyrunner.cli.coordinator.table import age, print_json, print_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation


def create(call: Invocation) -> int:
    """Make a runner and print its token."""
    asked = {
        "description": call.text("description"),
        "tags": call.items("tag-list"),
        "run_untagged": call.flag("run-untagged") or not call.items("tag-list"),
        "paused": call.flag("paused"),
        "maximum_timeout": call.number("maximum-timeout"),
    }
    with CoordinatorClient(data_dir_of(call)) as client:
        runner = client.call("POST", "runners", asked)
        url = client.url
    if call.text("output") == "json":
        print_json(runner)
    elif call.flag("quiet"):
        sys.stdout.write(f"{runner['token']}\n")
    else:
        sys.stdout.write(
            f"Runner {runner['id']} with the token {runner['token']}\n"
            f"Register it:\n  {call.program} register --non-interactive --url {url} --executor shell "
            f"--token {runner['token']}\n"
        )
    return 0


def list_runners(call: Invocation) -> int:
    """Print all runners."""
    with CoordinatorClient(data_dir_of(call)) as client:
        runners = client.call("GET", "runners")
    if call.text("output") == "json":
        print_json(runners)
        return 0
    rows = [
        (
            runner["id"],
            runner["description"] or "-",
            ",".join(runner["tags"]) or "-",
            "yes" if runner["run_untagged"] else "no",
            "yes" if runner["paused"] else "no",
            age(max(runner["managers"].values(), default=0.0)),
        )
        for runner in runners
    ]
    print_table(("ID", "DESCRIPTION", "TAGS", "UNTAGGED", "PAUSED", "LAST SEEN"), rows)
    return 0


def delete(call: Invocation) -> int:
    """Forget runners; their tokens are dead."""
    numbers = numbers_of(call, "runner")
    with CoordinatorClient(data_dir_of(call)) as client:
        for number in numbers:
            client.call("DELETE", f"runners/{number}")
    return 0


def numbers_of(call: Invocation, what: str) -> list[int]:
    """The ids given as arguments.

    Raises:
        UsageError: there are none, or one is no number.
    """
    if not call.arguments:
        raise UsageError(f"which {what}? Give its id", hint=f"see: {call.program} coordinator --help")
    for word in call.arguments:
        if not (word.isascii() and word.isdigit()):
            raise UsageError(f'"{word}" is no id of a {what}: expected a number')
    return [int(word) for word in call.arguments]


def number_of(call: Invocation, what: str) -> int:
    """The one id given as argument.

    Raises:
        UsageError: there is none, more than one, or it is no number.
    """
    numbers = numbers_of(call, what)
    if len(numbers) > 1:
        raise UsageError(f"one {what} at a time")
    return numbers[0]
