"""The stage: order, files, missing secrets, tries, unknown providers; its sources are a third party's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled
from pyrunner.secrets import loader
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from pyrunner.secrets.protocol import Expand
from pyrunner.secrets.resolve import resolve_secrets

MISSING = "FF_SECRET_RESOLVING_FAILS_IF_MISSING"
EXPONENTIAL = "FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY"


class Log:
    """The job's log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def plain(self, text: str) -> None:
        self.lines.append(text)

    def warning(self, text: str) -> None:
        self.lines.append(f"WARNING: {text}")


class NoPauses(CancelToken):
    """Remembers the pauses instead of making them."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        return self.cancelled


class Source:
    """Answers with what a spec says: a value, or one failure after the other."""

    made: list[Source]
    failures: list[BaseException]

    def __init__(self) -> None:
        self.closed = 0
        self.asked: list[Mapping[str, Any]] = []
        Source.made.append(self)

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        self.asked.append(spec)
        if spec.get("fails") and Source.failures:
            raise Source.failures.pop(0)
        return expand(spec["value"])

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with sources in the entry point group."""
    info = tmp_path / "acme_secrets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-secrets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[pyrunner.secrets]\nacme = {__name__}:Source\ngone = acme_gone:Source\nvault = acme_gone:Source\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(Source, "made", [], raising=False)
    monkeypatch.setattr(Source, "failures", [], raising=False)
    assert __name__ in sys.modules


def resolve(
    secrets: dict[str, Any], *, log: Log | None = None, cancel: CancelToken | None = None, **options: Any
) -> list[JobVariable]:
    variables = Variables([JobVariable(key="WHO", value="world")])
    flags = options.pop("flags", {})
    return resolve_secrets(secrets, variables, flags, cancel or CancelToken(), log or Log(), **options)


def test_secrets_become_masked_raw_variables_in_order() -> None:
    log = Log()
    found = resolve(
        {
            "B": {"acme": {"value": "hello $WHO"}},
            "A": {"file": False, "vault": None, "acme": {"value": "$$x"}},
            "C": {"acme": {"value": "c"}, "file": None},
        },
        log=log,
    )
    assert found == [
        JobVariable(key="B", value="hello world", file=True, masked=True, raw=True),
        JobVariable(key="A", value="$x", file=False, masked=True, raw=True),
        JobVariable(key="C", value="c", file=True, masked=True, raw=True),
    ]
    assert log.lines == [
        'Resolving secret "B"...',
        'Using "acme" secret resolver...',
        'Resolving secret "A"...',
        'Using "acme" secret resolver...',
        'Resolving secret "C"...',
        'Using "acme" secret resolver...',
    ]


def test_one_source_serves_a_job_and_is_closed_once() -> None:
    resolve({"A": {"acme": {"value": "1"}}, "B": {"acme": {"value": "2"}}})
    assert [(len(source.asked), source.closed) for source in Source.made] == [(2, 1)]


def test_no_secrets_do_nothing() -> None:
    log = Log()
    assert resolve({}, log=log) == []
    assert log.lines == []
    assert Source.made == []


def test_unknown_provider_is_left_out_with_a_warning() -> None:
    log = Log()
    found = resolve({"A": {"akeyless": {"x": 1}, "file": True}, "B": {}, "C": {"acme": {"value": "c"}}}, log=log)
    assert [variable.key for variable in found] == ["C"]
    warnings = [line for line in log.lines if line.startswith("WARNING")]
    assert len(warnings) == 2
    assert warnings[0].startswith('WARNING: Not resolved: no known provider for the secret "A": "akeyless"; known are:')
    assert "acme" in warnings[0]
    assert "vault" in warnings[0]
    assert 'for the secret "B": none;' in warnings[1]


def test_missing_secret_fails_the_job() -> None:
    Source.failures = [SecretMissingError("404")]
    with pytest.raises(SecretMissingError) as caught:
        resolve({"DB": {"acme": {"fails": True, "value": ""}}}, flags={MISSING: True}, attempts=3)
    assert str(caught.value) == "resolving secrets: secret not found: DB (404)"
    assert caught.value.reason == "runner_configuration_error"
    assert Source.made[0].closed == 1


def test_missing_secret_is_empty_when_the_flag_is_off() -> None:
    Source.failures = [SecretMissingError("404")]
    log = Log()
    found = resolve(
        {"DB": {"acme": {"fails": True, "value": ""}}, "B": {"acme": {"value": "b"}}}, flags={MISSING: False}, log=log
    )
    assert [(variable.key, variable.value) for variable in found] == [("DB", ""), ("B", "b")]
    assert any("Secret not found: DB (404)" in line for line in log.lines)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (SecretError("refused"), "runner_system_failure"),
        (SecretConfigError("forbidden"), "runner_configuration_error"),
        (SecretOutageError("503"), "runner_external_dependency_failure"),
    ],
)
def test_failures_say_which_secret_and_whose_matter_it_is(failure: SecretError, reason: str) -> None:
    Source.failures = [failure]
    with pytest.raises(type(failure), match=f'^resolving secrets: "DB": {failure}$') as caught:
        resolve({"DB": {"acme": {"fails": True, "value": ""}}}, flags={MISSING: False})
    assert caught.value.reason == reason
    assert caught.value.job_exit_code == 0


def test_tries_go_on_where_they_failed() -> None:
    Source.failures = [SecretOutageError("503"), SecretError("401")]
    log, cancel = Log(), NoPauses()
    secrets = {"A": {"acme": {"value": "a"}}, "B": {"acme": {"fails": True, "value": "b"}}}
    found = resolve(secrets, log=log, cancel=cancel, attempts=3)
    assert [variable.value for variable in found] == ["a", "b"]
    assert log.lines.count('Resolving secret "A"...') == 1
    assert log.lines.count('Resolving secret "B"...') == 3
    assert log.lines.count("WARNING: Retrying...") == 2
    assert 'WARNING: resolving secrets: "B": 503' in log.lines
    assert cancel.pauses == [5, 10]
    assert secrets.keys() == {"A", "B"}


@pytest.mark.parametrize(
    ("flags", "pauses"),
    [
        ({}, [5, 10, 20, 40, 80, 160, 300, 300, 300]),
        ({EXPONENTIAL: False}, [1, 2, 4, 5, 5, 5, 5, 5, 5]),
    ],
)
def test_pauses_between_tries(flags: dict[str, bool], pauses: list[float]) -> None:
    Source.failures = [SecretOutageError("503") for _ in range(10)]
    cancel = NoPauses()
    with pytest.raises(SecretOutageError):
        resolve({"A": {"acme": {"fails": True, "value": ""}}}, flags=flags, cancel=cancel, attempts=10)
    assert cancel.pauses == pauses
    assert Source.made[0].closed == 1


def test_wrong_settings_are_not_tried_again() -> None:
    Source.failures = [SecretConfigError("forbidden")]
    log = Log()
    with pytest.raises(SecretConfigError):
        resolve({"A": {"acme": {"fails": True, "value": ""}}}, log=log, attempts=10)
    assert "WARNING: Retrying..." not in log.lines


def test_cancel_ends_the_pause_and_what_follows() -> None:
    Source.failures = [SecretOutageError("503")]
    cancel = CancelToken()

    class Cancelling(Log):
        def warning(self, text: str) -> None:
            cancel.cancel(JobCanceled())

    with pytest.raises(JobCanceled):
        resolve({"A": {"acme": {"fails": True, "value": ""}}}, log=Cancelling(), cancel=cancel, attempts=2)
    with pytest.raises(JobCanceled):
        resolve({"A": {"acme": {"value": ""}}}, cancel=cancel)
    assert [source.closed for source in Source.made] == [1]


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("x", 'resolving secrets: "A": the definition of the secret is not an object'),
        ({"acme": "topsecret"}, 'resolving secrets: "A": "acme" is not an object'),
        ({"acme": {"value": ""}, "file": "yes"}, 'resolving secrets: "A": "file" must be true or false'),
        (
            {"gone": {}},
            'resolving secrets: "A": the secret source "gone" cannot be loaded from acme_gone:Source: No mod',
        ),
    ],
)
def test_malformed_definitions(secret: Any, words: str) -> None:
    with pytest.raises(SecretConfigError) as caught:
        resolve({"A": secret})
    assert str(caught.value).startswith(words)
    assert "topsecret" not in str(caught.value)


def test_a_third_party_cannot_replace_our_own() -> None:
    assert type(loader.open_source("vault")).__module__ == "pyrunner.secrets.vault"
    assert loader.find_provider(["x", "acme", "vault"]) == "vault"
    assert loader.find_provider(["x", "acme"]) == "acme"
    assert loader.find_provider([]) == ""


@pytest.mark.parametrize("provider", loader.BUILT_IN)
def test_our_own_sources_load_and_refuse_an_empty_spec(provider: str) -> None:
    source = loader.open_source(provider)
    with pytest.raises(SecretConfigError, match="is empty in the definition of the secret"):
        source.resolve({}, str, CancelToken())
    source.close()


def test_variables_survive_a_saved_job() -> None:
    found = resolve({"A": {"acme": {"value": "é\n"}}})
    assert msgspec.json.decode(msgspec.json.encode(found), type=list[JobVariable]) == found
