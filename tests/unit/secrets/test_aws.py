"""``aws_secrets_manager`` against STS and Secrets Manager that check tokens and signatures."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.aws import AwsSource
from pyrunner.secrets.aws_endpoints import endpoint
from pyrunner.secrets.errors import SecretConfigError, SecretError, SecretMissingError, SecretOutageError
from tests.unit.secrets.stores import DROP, HANG, ROLE_KEY, Aws, AwsKey, Reply, make_jwt, quick_caller, unchanged


def make_source(aws: Aws, **environment: str) -> AwsSource:
    return AwsSource({**aws.environment, **environment}, quick_caller())


@pytest.fixture
def source(aws: Aws) -> Iterator[AwsSource]:
    with closing(make_source(aws)) as source:
        yield source


def spec(aws: Aws, **changes: Any) -> dict[str, Any]:
    server = {"region": aws.region, "jwt": make_jwt(aws.audience), "role_arn": aws.role, "role_session_name": ""}
    return {"secret_id": "app/db", "server": server, **changes}


def own_spec(aws: Aws) -> dict[str, Any]:
    """Of a job that brings no token."""
    return {"secret_id": "app/db", "server": {"region": aws.region}}


def resolve(source: AwsSource, payload: Mapping[str, Any]) -> str:
    return source.resolve(payload, unchanged, CancelToken())


def test_secret_is_read_as_the_role_of_the_job(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "p4ss"}
    assert resolve(source, spec(aws)) == "p4ss"
    assert len(aws.asked) == 2
    assert ROLE_KEY.secret not in str(aws.asked[1])


def test_one_role_serves_all_secrets_of_a_job(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": '{"user": "u", "pass": "p"}'}
    payload = spec(aws)
    assert [resolve(source, payload | {"field": field}) for field in ("user", "pass")] == ["u", "p"]
    assert len(aws.sessions) == 1
    resolve(source, payload | {"role_session_name": "another"})
    assert aws.sessions[1:] == ["another"]


@pytest.mark.parametrize(
    ("change", "version"), [({"version_id": "v7"}, "v7"), ({"version_stage": "AWSPREVIOUS"}, "AWSPREVIOUS")]
)
def test_versions(aws: Aws, source: AwsSource, change: dict[str, str], version: str) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "new"}
    aws.secrets["app/db", version] = {"SecretString": "old"}
    assert resolve(source, spec(aws, **change)) == "old"


def test_own_settings_of_a_secret_come_first(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "x"}
    payload = spec(aws, region=aws.region, role_arn=aws.role, role_session_name="mine")
    payload["server"] |= {"region": "us-east-1", "role_arn": "arn:other", "role_session_name": "other"}
    assert resolve(source, payload) == "x"
    assert aws.sessions == ["mine"]


def test_session_name_is_made_of_the_job_and_cut(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "x"}
    values = {"CI_JOB_ID": "77", "CI_PROJECT_ID": "5", "CI_SERVER_HOST": "gitlab." + "long." * 20}
    variables = Variables(JobVariable(key=key, value=value) for key, value in values.items())
    source.resolve(spec(aws), variables.expand, CancelToken())
    assert aws.sessions == [f"77-5-gitlab.{'long.' * 20}"[:64]]


def test_region_of_the_runner_is_the_last_resort(aws: Aws) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "x"}
    payload = spec(aws)
    payload["server"]["region"] = ""
    with closing(make_source(aws, AWS_DEFAULT_REGION=aws.region)) as source:
        assert resolve(source, payload) == "x"
    with closing(make_source(aws)) as source, pytest.raises(SecretConfigError, match="no AWS region"):
        resolve(source, payload)


@pytest.mark.parametrize(
    ("stored", "field", "text"),
    [
        ('{"port": 5432}', "port", "5432"),
        ('{"on": true}', "on", "true"),
        ('{"hosts": ["a", "b"]}', "hosts", '["a", "b"]'),
        ('{"x": "line\\n\\u00e9"}', "x", "line\né"),
        ('{"x": ""}', "x", ""),
    ],
)
def test_fields(aws: Aws, source: AwsSource, stored: str, field: str, text: str) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": stored}
    assert resolve(source, spec(aws, field=field)) == text


def test_field_that_is_not_there(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": '{"a": 1}'}
    with pytest.raises(SecretMissingError, match='^there is no field "b" at secret "app/db"$'):
        resolve(source, spec(aws, field="b"))


@pytest.mark.parametrize("stored", ["topsecret", '["topsecret"]', '{"a": topsecret}'])
def test_field_of_something_else_than_an_object(aws: Aws, source: AwsSource, stored: str) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": stored}
    with pytest.raises(SecretConfigError, match='is not a JSON object, so it has no field "b"') as caught:
        resolve(source, spec(aws, field="b"))
    assert "topsecret" not in str(caught.value)


def test_binary_secret_that_is_text(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretBinary": base64.b64encode("schlüssel".encode()).decode()}
    assert resolve(source, spec(aws)) == "schlüssel"


def test_binary_secret_that_is_none(aws: Aws, source: AwsSource) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretBinary": base64.b64encode(b"\xff\x00").decode()}
    with pytest.raises(SecretConfigError, match="is binary"):
        resolve(source, spec(aws))


def test_missing_secret(aws: Aws, source: AwsSource) -> None:
    words = r'^secret "app/db": POST http://.*: 400 Bad Request \(com.amazonaws#ResourceNotFoundException: .* specified'
    with pytest.raises(SecretMissingError, match=words):
        resolve(source, spec(aws))


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"role_arn": ""}, "has not a role_arn"),
        ({"jwt": ""}, "has not an id token"),
        ({"region": "x.evil.test/#"}, '"x.evil.test/#" is not an AWS region'),
    ],
)
def test_incomplete_login_is_a_configuration_error(
    aws: Aws, source: AwsSource, server: dict[str, str], words: str
) -> None:
    payload = spec(aws)
    payload["server"] |= server
    with pytest.raises(SecretConfigError, match=words):
        resolve(source, payload)
    assert aws.asked == []


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"jwt": make_jwt("another", lifetime=3600)}, r"400 .* \(InvalidIdentityToken: invalid audience"),
        ({"role_arn": "arn:aws:iam::1:role/other"}, r"403 Forbidden \(AccessDenied: Not authorized"),
    ],
)
def test_refused_login_has_no_reason_of_its_own(
    aws: Aws, source: AwsSource, server: dict[str, str], words: str
) -> None:
    payload = spec(aws)
    payload["server"] |= server
    with pytest.raises(SecretError, match=words) as caught:
        resolve(source, payload)
    assert caught.value.reason == "runner_system_failure"


def test_wrong_key_is_noticed_by_the_server(aws: Aws) -> None:
    aws.keys["AKIA"] = AwsKey("AKIA", "right")
    with (
        closing(make_source(aws, AWS_ACCESS_KEY_ID="AKIA", AWS_SECRET_ACCESS_KEY="wrong")) as source,
        pytest.raises(SecretError, match="InvalidSignatureException"),
    ):
        resolve(source, own_spec(aws))


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(400, {"__type": "AccessDeniedException", "Message": "no"}), SecretConfigError, "AccessDeniedException"),
        (Reply(400, {"__type": "ThrottlingException"}), SecretError, "ThrottlingException"),
        (Reply(403, b"<html>", kind="text/html"), SecretError, "403"),
        (Reply(500, {"__type": "InternalServiceError"}), SecretOutageError, "500"),
        (Reply(200, b"{"), SecretOutageError, "no credentials|not valid JSON"),
        (DROP, SecretOutageError, "POST"),
    ],
)
@pytest.mark.parametrize("calls_before", [0, 1])
def test_failing_server(
    aws: Aws, source: AwsSource, calls_before: int, reply: Reply, kind: type[SecretError], words: str
) -> None:
    aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "x"}
    if calls_before:
        resolve(source, spec(aws))
    aws.fail("", reply)
    with pytest.raises(SecretError, match=words) as caught:
        resolve(source, spec(aws))
    # only Secrets Manager tells by name what the job has to mend
    assert type(caught.value) in (kind, SecretError if kind is SecretConfigError else kind)
    assert "\n" not in str(caught.value)


def test_silent_server_is_an_outage(aws: Aws) -> None:
    aws.fail("", HANG)
    with (
        closing(AwsSource(aws.environment, quick_caller(timeout=0.2))) as source,
        pytest.raises(SecretOutageError, match="no answer within"),
    ):
        resolve(source, spec(aws))


class TestOwnCredentials:
    @pytest.fixture(autouse=True)
    def secret(self, aws: Aws) -> None:
        aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": "x"}
        aws.keys["AKIA"] = AwsKey("AKIA", "s3cret/key+")

    def test_of_the_environment(self, aws: Aws) -> None:
        key = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s3cret/key+"}
        with closing(make_source(aws, **key)) as source:
            assert resolve(source, own_spec(aws)) == "x"

    @pytest.mark.parametrize("profile", ["default", "ci"])
    def test_of_the_shared_file(self, aws: Aws, tmp_path: Path, profile: str) -> None:
        file = tmp_path / "credentials"
        file.write_text(f"[{profile}]\naws_access_key_id = AKIA\naws_secret_access_key = s3cret/key+\n")
        environment = {"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": profile}
        with closing(make_source(aws, **environment)) as source:
            assert resolve(source, own_spec(aws)) == "x"

    def test_damaged_shared_file_is_not_quoted(self, aws: Aws, tmp_path: Path) -> None:
        file = tmp_path / "credentials"
        file.write_text("aws_secret_access_key topsecret\n")
        with (
            closing(make_source(aws, AWS_SHARED_CREDENTIALS_FILE=str(file))) as source,
            pytest.raises(SecretConfigError, match=r"credentials is not a valid AWS credentials file$") as caught,
        ):
            resolve(source, own_spec(aws))
        assert caught.value.__cause__ is None

    def test_of_a_web_identity(self, aws: Aws, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text(make_jwt(aws.audience) + "\n")
        environment = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_ROLE_ARN": aws.role}
        with closing(make_source(aws, **environment)) as source:
            assert resolve(source, own_spec(aws)) == "x"

    def test_of_a_container(self, aws: Aws, tmp_path: Path) -> None:
        url = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/ecs"}
        with closing(make_source(aws, **url, AWS_CONTAINER_AUTHORIZATION_TOKEN="container-token")) as source:
            assert resolve(source, own_spec(aws)) == "x"
        file = tmp_path / "token"
        file.write_text("container-token\n")
        with closing(make_source(aws, **url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(file))) as source:
            assert resolve(source, own_spec(aws)) == "x"
        with closing(make_source(aws, **url)) as source, pytest.raises(SecretError, match="401"):
            resolve(source, own_spec(aws))

    def test_of_an_instance(self, aws: Aws) -> None:
        place = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{aws.url}/"}
        with closing(make_source(aws, **place)) as source:
            assert resolve(source, own_spec(aws)) == "x"

    @pytest.mark.parametrize("fault", [("/token", Reply(404)), ("/token", DROP), ("credentials/$", Reply(404))])
    def test_machine_without_a_role(self, aws: Aws, fault: tuple[str, Reply]) -> None:
        place = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url}
        aws.fail(*fault)
        with closing(make_source(aws, **place)) as source, pytest.raises(SecretConfigError, match="no AWS credentials"):
            resolve(source, own_spec(aws))

    def test_unreadable_token_file(self, aws: Aws, tmp_path: Path) -> None:
        environment = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "none"), "AWS_ROLE_ARN": aws.role}
        with (
            closing(make_source(aws, **environment)) as source,
            pytest.raises(SecretConfigError, match="cannot read .*none: No such file"),
        ):
            resolve(source, own_spec(aws))


@pytest.mark.parametrize(
    ("region", "environment", "url"),
    [
        ("eu-central-1", {}, "https://secretsmanager.eu-central-1.amazonaws.com/"),
        ("cn-north-1", {}, "https://secretsmanager.cn-north-1.amazonaws.com.cn/"),
        ("us-iso-east-1", {}, "https://secretsmanager.us-iso-east-1.c2s.ic.gov/"),
        ("eu-central-1", {"AWS_ENDPOINT_URL": "http://x:1"}, "http://x:1/"),
        (
            "eu-central-1",
            {"AWS_ENDPOINT_URL": "http://x:1", "AWS_ENDPOINT_URL_SECRETS_MANAGER": "http://y/z/"},
            "http://y/z/",
        ),
    ],
)
def test_endpoints(region: str, environment: dict[str, str], url: str) -> None:
    assert endpoint("secretsmanager", region, environment) == url
