"""Secrets in the life of a job: facts/job-lifecycle.md 1 (step 5), 3 (row 0), 3.1, 4.1 (8) and runner-api.md 5.7, 7."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyrunner.testing.faults import status
from pyrunner.testing.job_checks import Result, check
from pyrunner.testing.job_life import Expect, Row, Strike, job, show
from tests.unit.secrets.stores import HANG, Asked, Reply, Vault, make_jwt

SECRET = "value-of-$SECRET"
SECTIONS = (
    "resolve_secrets",
    "prepare_executor",
    "prepare_script",
    "get_sources",
    "step_script",
    "cleanup_file_variables",
)
FAST = {"FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY": "false"}


class Stumbling(Vault):
    """Has a secret that is late, and one that fails the first time it is asked for in a job."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets["kv-v2/data/good"] = {"field": SECRET}
        self.secrets["kv-v2/data/late"] = {"field": SECRET}
        self.secrets["kv-v2/data/flaky"] = {"field": SECRET}
        self.stumbles = 2

    def answer(self, asked: Asked) -> Reply:
        if asked.path.endswith("/late"):
            time.sleep(3.5)
        if asked.path.endswith("/never"):
            return HANG
        if asked.path.endswith("/down"):
            return Reply(500, {"errors": ["out of order"]})
        if asked.path.endswith("/flaky") and self.stumbles > 0:
            self.stumbles -= 1
            return Reply(200, b"no JSON")
        return super().answer(asked)


@contextmanager
def surroundings() -> Iterator[Mapping[str, str]]:
    with Stumbling() as vault:
        yield {"@VAULT@": vault.url, "@JWT@": make_jwt(vault.audience)}


def secret(path: str = "good", **fields: Any) -> dict[str, Any]:
    """A secret of the vault."""
    server = {
        "url": "@VAULT@",
        "auth": {"name": "jwt", "path": "jwt", "data": {"jwt": "$ID_TOKEN", "role": "deployer"}},
    }
    spec = {"server": server, "engine": {"name": "kv-v2", "path": "kv-v2"}, "path": path, "field": "field"}
    return {"vault": spec, **fields}


def row(id: str, *script: str, secrets: dict[str, Any], expect: Expect, **fields: Any) -> Row:  # noqa: A002
    """A row whose job has an identity token."""
    variables = {"ID_TOKEN": {"value": "@JWT@", "masked": True}, **fields.pop("variables", {})}
    return Row(
        id=id,
        job=job(*script, secrets=secrets, variables=variables, **fields),
        expect=expect,
        server=fields.pop("server", ()),
    )


def failed(reason: str, *has: str, **fields: Any) -> Expect:
    sections = ["resolve_secrets"]
    return Expect(state="failed", reason=reason, has=has, sections=sections, raw_lacks=[b"eyJ"], **fields)


ROWS = [
    row(
        "3.0-stage-comes-first",
        secrets={"PASSWORD": secret()},
        expect=Expect(
            sections=SECTIONS,
            order=[
                "  on runner-",
                "Resolving secrets\n",
                'Resolving secret "PASSWORD"...',
                'Using "vault" secret',
                "Preparing",
            ],
        ),
    ),
    Row(id="3.0-no-stage-without-secrets", job=job(), expect=Expect(lacks=["Resolving secrets"])),
    row(
        "4.1.8-a-file-unless-told",
        show("PASSWORD"),
        'printf "length %s\\n" $(wc -c < "$PASSWORD")',
        secrets={"PASSWORD": secret()},
        expect=Expect(
            variables={"PASSWORD": "@PROJECT@.tmp/PASSWORD"},
            has=[f"\nlength {len(SECRET)}\n"],
            files=["!@PROJECT@.tmp/PASSWORD"],
        ),
    ),
    row(
        "4.1.8-a-value-is-raw-and-masked",
        'echo "<$PASSWORD>"',
        'echo "length ${#PASSWORD}"',
        secrets={"PASSWORD": secret(file=False)},
        expect=Expect(has=["\n<[MASKED]>\n", f"\nlength {len(SECRET)}\n"], raw_lacks=[SECRET.encode(), b"eyJ"]),
    ),
    row(
        "4.1.8-beats-the-job",
        'echo "length ${#PASSWORD}"',
        'echo "${#REFERENCE}"',
        secrets={"PASSWORD": secret(file=False)},
        variables={"PASSWORD": "of job", "REFERENCE": "$PASSWORD"},
        expect=Expect(has=[f"\nlength {len(SECRET)}\n", f"\n{len(SECRET)}\n"]),
    ),
    row(
        "5.7-missing-fails",
        secrets={"PASSWORD": secret("nowhere")},
        expect=failed("runner_configuration_error", "secret not found: PASSWORD"),
    ),
    row(
        "5.7-missing-is-empty-when-allowed",
        show("PASSWORD"),
        secrets={"PASSWORD": secret("nowhere", file=False)},
        variables={"FF_SECRET_RESOLVING_FAILS_IF_MISSING": "false"},
        expect=Expect(variables={"PASSWORD": ""}),
    ),
    row(
        "5.7-unknown-provider-is-left-out",
        show("PASSWORD"),
        secrets={"PASSWORD": {"akeyless": {}}},
        expect=Expect(has=["Not resolved: "], variables={"PASSWORD": None}),
    ),
    row(
        "5.7-incomplete-spec",
        secrets={"PASSWORD": {"vault": {"server": {"url": "@VAULT@"}}}},
        expect=failed("runner_configuration_error", 'resolving secrets: "PASSWORD"'),
    ),
    row(
        "7-outage-of-the-store",
        secrets={"PASSWORD": secret("down")},
        expect=failed("runner_external_dependency_failure"),
    ),
    row(
        "3.1-attempts",
        'echo "length ${#PASSWORD}"',
        secrets={"PASSWORD": secret("flaky", file=False)},
        variables={"SECRETS_RETRIEVAL_ATTEMPTS": "3", **FAST},
        expect=Expect(has=["WARNING: Retrying...", f"length {len(SECRET)}\n"]),
    ),
    row(
        "1-not-under-the-time-limit-of-the-job",
        secrets={"PASSWORD": secret("late")},
        runner_info={"timeout": 3},
        expect=Expect(sections=SECTIONS),
    ),
    Row(
        id="3.3-cancel-while-secrets-are-resolved",
        job=job(secrets={"PASSWORD": secret("never")}, variables={"ID_TOKEN": {"value": "@JWT@", "masked": True}}),
        server=[
            Strike(
                method="PATCH",
                path="/jobs/@ID@/trace",
                fault=status(202, {"Job-Status": "canceling"}, handled=True),
            )
        ],
        expect=Expect(
            state="failed", reason="job_canceled", sections=["resolve_secrets"], last="ERROR: Job failed: canceled"
        ),
    ),
]


def test_row(row: Row, result: Result) -> None:
    check(row, result)
