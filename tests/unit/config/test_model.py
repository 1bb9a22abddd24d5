"""The declaration of all keys: nothing forgotten, nothing told twice, no secret shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrunner.config.keys import KINDS, Field, fields_of, names_of
from pyrunner.config.model import (
    Config,
    DockerConfig,
    KubernetesConfig,
    RunnerConfig,
    S3Config,
)
from pyrunner.config.table import Table


def tables(table: type[Table] = Config, seen: set[type[Table]] | None = None) -> Iterator[type[Table]]:
    """Every structure of the model once."""
    seen = set() if seen is None else seen
    if table in seen:
        return
    seen.add(table)
    yield table
    for field in fields_of(table):
        if field.table is not None:
            yield from tables(field.table, seen)


ALL = list(tables())


def every_key() -> list[tuple[type[Table], Field]]:
    return [(table, field) for table in ALL for field in fields_of(table)]


def test_the_model_is_as_large_as_the_reference() -> None:
    assert len(ALL) >= 55
    assert len(every_key()) >= 480


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.__name__)
def test_every_attribute_has_a_known_kind_and_a_fitting_default(table: type[Table]) -> None:
    made = table()
    for field in fields_of(table):
        assert field.kind in KINDS
        assert field.key.help
        value = getattr(made, field.attribute)
        if field.optional:
            assert value is None
        elif field.kind.startswith(("map", "free")):
            assert value == {}
        elif field.kind.startswith(("list", "policies", "tables")):
            assert value == []
        elif field.kind == "table":
            assert isinstance(value, Table)


def test_two_tables_never_share_a_list_or_a_table() -> None:
    first, second = RunnerConfig(), RunnerConfig()
    first.environment.append("A=1")
    first.feature_flags["FF_X"] = True
    first.cache.s3.bucket_name = "b"
    assert second == RunnerConfig()


def test_a_misspelled_attribute_is_refused() -> None:
    with pytest.raises(TypeError, match="RunnerConfig has no limitt"):
        RunnerConfig(limitt=1)  # type: ignore[call-arg]


def test_toml_names_of_the_camel_case_and_dashed_tables() -> None:
    assert names_of(S3Config)["ServerSideEncryptionKeyID"] == "server_side_encryption_key_id"
    assert names_of(S3Config)["RoleARN"] == "role_arn"
    assert names_of(RunnerConfig)["tls-ca-file"] == "tls_ca_file"


def test_no_secret_is_in_the_repr() -> None:
    runner = RunnerConfig(name="visible", token="glrt-secret", environment=["KEY=secret"])
    runner.cache.s3.secret_key = "secret"
    runner.kubernetes = KubernetesConfig(bearer_token="secret")
    text = repr(Config(runners=[runner], sentry_dsn="secret"))
    assert "secret" not in text.replace("secret_key", "")
    assert "visible" in text


def test_keys_that_are_secret_by_their_name_are_declared_so() -> None:
    suspicious = ("password", "secret_key", "access_key", "private_key", "account_key", "bearer_token", "session_token")
    for table, field in every_key():
        if field.attribute in suspicious or field.attribute == "token":
            assert field.key.secret, f"{table.__name__}.{field.attribute}"


@pytest.mark.parametrize(
    ("token", "short"),
    [
        ("glrt-abcdefghijkl", "abcdefghi"),
        ("glrt-t1_abcdefghijkl", "abcdefghi"),
        ("t3_abcdefghijkl", "abcdefghi"),
        ("glrtr-abcdefghijkl", "abcdefghi"),
        ("glcbt-abcdefghijkl", "abcdefghi"),
        ("GR1348941abcdefghijkl", "abcdefghi"),
        ("glrt-abc", "abc"),
        ("", ""),
    ],
)
def test_the_short_token(token: str, short: str) -> None:
    assert RunnerConfig(token=token).short_token == short


def test_effective_values_of_zero_and_absent_keys() -> None:
    runner, config = RunnerConfig(url="https://gitlab.example.com/ci/"), Config()
    assert runner.effective_request_concurrency == 1
    assert runner.effective_unhealthy_requests_limit == 3
    assert runner.effective_unhealthy_interval == 3600
    assert runner.effective_final_update_retry_limit == 10
    assert runner.effective_output_limit == 4096 * 1024
    assert runner.artifact.effective_upload_timeout == 3600
    assert runner.artifact.effective_response_header_timeout == 600
    assert runner.api_url == "https://gitlab.example.com"
    assert (config.effective_check_interval, config.effective_shutdown_timeout) == (3, 30)
    assert config.effective_connection_max_age == 900
    assert Config(connection_max_age=0.0).effective_connection_max_age == 0


def test_labels_of_a_runner_win_over_global_ones() -> None:
    config = Config(labels={"team": "all", "zone": "a"}, runners=[RunnerConfig(labels={"team": "mine"})])
    assert config.labels_of(config.runners[0]) == {"team": "mine", "zone": "a"}


def test_tables_compare_by_value() -> None:
    assert DockerConfig(image="a") == DockerConfig(image="a")
    assert DockerConfig(image="a") != DockerConfig(image="b")
