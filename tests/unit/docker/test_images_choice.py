"""Which images a job may use, when they are pulled, which is the helper's; no engine needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Image, JobVariable
from pyrunner.base.errors import SystemFailure
from pyrunner.config.docker import DockerConfig
from pyrunner.executors.docker.engine.records import EngineFacts
from pyrunner.executors.docker.images.allowed import check_allowed, matches_any
from pyrunner.executors.docker.images.helper_image import REPOSITORY, official_helper_image, revision
from pyrunner.executors.docker.images.options import allowed_user, docker_option
from pyrunner.executors.docker.images.policies import effective_policies
from pyrunner.executors.docker.images.prebuilt import archive_directories
from pyrunner.executors.docker.images.pull import pause_before
from pyrunner.executors.docker.images.pull_errors import failure_reason, may_pass
from pyrunner.executors.docker.images.reference import is_id, with_tag
from pyrunner.testing.executor_contract import RecordingTrace

HINT = "Please check runner's configuration: https://docs.gitlab.com/runner/configuration/advanced-configuration/"


# --- pull policies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configured", "allowed", "requested", "effective"),
    [
        ([], [], [], ["always"]),
        (["never"], [], [], ["never"]),
        (["always", "if-not-present"], [], [], ["always", "if-not-present"]),
        (["always"], ["always", "never"], ["never"], ["never"]),
        (["always", "if-not-present"], [], ["if-not-present"], ["if-not-present"]),
        (["always"], ["never", "if-not-present"], ["if-not-present", "always", "never"], ["if-not-present", "never"]),
    ],
)
def test_requested_policies_that_are_allowed_hold_in_the_order_of_the_request(
    configured: list[str], allowed: list[str], requested: list[str], effective: list[str]
) -> None:
    docker = DockerConfig(pull_policy=configured, allowed_pull_policies=allowed)
    assert effective_policies(docker, "img", requested) == effective


@pytest.mark.parametrize(
    ("configured", "allowed", "requested", "text"),
    [
        (
            [],
            [],
            ["never"],
            'invalid pull policy for image "img": pull_policy ([never]) defined in GitLab pipeline config '
            "is not one of the allowed_pull_policies ([always])",
        ),
        (
            ["if-not-present", "never"],
            ["always"],
            [],
            'invalid pull policy for image "img": pull_policy ([if-not-present never]) defined in Runner config '
            "is not one of the allowed_pull_policies ([always])",
        ),
        (
            [],
            ["never"],
            [],
            'invalid pull policy for image "img": pull_policy ([always]) defined in Runner config (default) '
            "is not one of the allowed_pull_policies ([never])",
        ),
        (["Always"], [], [], 'unsupported pull_policy config: "Always"'),
        ([], [], ["sometimes"], 'unsupported pull_policy config: "sometimes"'),
        (["always"], ["x"], [], 'unsupported allowed_pull_policies config: "x"'),
    ],
)
def test_policy_that_is_not_allowed_or_unknown_is_an_error_of_the_configuration(
    configured: list[str], allowed: list[str], requested: list[str], text: str
) -> None:
    docker = DockerConfig(pull_policy=configured, allowed_pull_policies=allowed)
    with pytest.raises(SystemFailure) as caught:
        effective_policies(docker, "img", requested)
    assert (str(caught.value), caught.value.reason) == (text, "runner_configuration_error")
    assert not caught.value.retriable


# --- allowed images -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "image", "fits"),
    [
        ("ruby:*", "ruby:3.3", True),
        ("ruby:*", "ruby", False),
        ("ruby*", "ruby:3.3", True),
        ("*", "ruby:3.3", True),
        ("*", "group/ruby:3.3", False),
        ("**", "reg.example:5000/a/b/ruby:3.3", True),
        ("**/*", "reg.example:5000/a/b/ruby:3.3", True),
        ("reg.example:5000/*:*", "reg.example:5000/ruby:1", True),
        ("reg.example:5000/*:*", "reg.example:5000/a/ruby:1", False),
        ("reg.example/**/*", "reg.example/ruby", True),
        ("reg.example/**/*", "reg.example/a/b/ruby@sha256:abc", True),
        ("reg.example/**", "other.example/ruby", False),
        ("{ruby,python}:3.?", "python:3.9", True),
        ("{ruby,python}:3.?", "python:3.10", False),
        ("ruby:[1-3].*", "ruby:2.7", True),
        ("ruby:[!1-3].*", "ruby:2.7", False),
        ("Ruby", "ruby", False),
    ],
)
def test_patterns_are_globs_whose_star_ends_at_a_slash(pattern: str, image: str, fits: bool) -> None:
    assert matches_any([pattern], image) is fits


@pytest.mark.parametrize("kind", ["images", "services"])
def test_refusal_lists_what_is_allowed(kind: str) -> None:
    trace = RecordingTrace()
    with pytest.raises(SystemFailure, match="^disallowed image$") as caught:
        check_allowed(kind, "evil:1", ["ruby:*", "python:*"], {"default"}, trace)
    assert caught.value.reason == "runner_configuration_error"
    assert trace.text == (
        f'The "evil:1" image is not present on list of allowed {kind}:\n- ruby:*\n- python:*\n\n{HINT}\n'
    )


def test_what_the_config_names_itself_is_always_allowed() -> None:
    check_allowed("images", "default", ["ruby:*"], {"default"}, RecordingTrace())
    check_allowed("images", "anything", [], set(), RecordingTrace())


def test_broken_pattern_is_an_error_of_the_configuration() -> None:
    with pytest.raises(SystemFailure, match=r"pattern \"\[\"") as caught:
        matches_any(["["], "ruby")
    assert caught.value.reason == "runner_configuration_error"


# --- platform and user --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "user", "platform"),
    [
        ({}, "", ""),
        ({"docker": {}}, "", ""),
        ({"docker": None}, "", ""),
        ({"docker": {"user": 0, "platform": "linux/arm64"}}, "0", "linux/arm64"),
        ({"docker": {"user": "$WHO:100"}}, "tester:100", ""),
        ({"kubernetes": {"user": "x"}}, "", ""),
    ],
)
def test_options_of_the_job(options: dict[str, Any], user: str, platform: str) -> None:
    variables = Variables([JobVariable(key="WHO", value="tester")])
    image = Image(name="x", executor_opts=options)
    assert docker_option(image, "user", variables) == user
    assert docker_option(image, "platform", variables) == platform
    assert docker_option(None, "user", variables) == ""


@pytest.mark.parametrize(
    ("configured", "allowed", "wanted", "user"),
    [
        ("", [], "", ""),
        ("", [], "1000", "1000"),
        ("", ["1000", "ci"], "ci", "ci"),
        ("", ["1000"], "", ""),
        ("ci", [], "", "ci"),
        ("ci", [], "root", "ci"),
        ("ci", ["ci"], "root", "ci"),
    ],
)
def test_user_of_the_config_comes_first(configured: str, allowed: list[str], wanted: str, user: str) -> None:
    assert allowed_user(DockerConfig(user=configured, allowed_users=allowed), wanted) == user


def test_user_that_is_not_allowed_is_named_with_those_that_are() -> None:
    with pytest.raises(SystemFailure) as caught:
        allowed_user(DockerConfig(allowed_users=["1000", "ci"]), "root")
    assert str(caught.value) == 'user "root" is not an allowed user: [1000 ci]'
    assert caught.value.reason == "runner_configuration_error"


# --- helper image -------------------------------------------------------------------------------------------------


def engine(os: str = "linux", arch: str = "amd64", kernel: str = "") -> EngineFacts:
    return EngineFacts(api=(1, 41), version="", os=os, arch=arch, kernel=kernel)


@pytest.mark.parametrize(
    ("arch", "flavor", "pwsh", "tag"),
    [
        ("amd64", "", False, "x86_64-v19.4.0"),
        ("amd64", "alpine", False, "x86_64-v19.4.0"),
        ("amd64", "alpine3.21", False, "alpine3.21-x86_64-v19.4.0"),
        ("amd64", "alpine-latest", True, "alpine-latest-x86_64-v19.4.0-pwsh"),
        ("aarch64", "ubuntu", True, "ubuntu-arm64-v19.4.0-pwsh"),
        ("arm64", "ubi-fips", False, "ubi-fips-arm64-v19.4.0"),
        ("armv7l", "", False, "arm-v19.4.0"),
        ("armv6l", "", False, "arm-v19.4.0"),
        ("s390x", "", False, "s390x-v19.4.0"),
    ],
)
def test_helper_image_of_a_linux_engine(arch: str, flavor: str, pwsh: bool, tag: str) -> None:
    assert official_helper_image(engine(arch=arch), flavor, pwsh=pwsh).name == f"{REPOSITORY}:{tag}"


@pytest.mark.parametrize(
    ("kernel", "arch", "tag", "archive"),
    [
        ("10.0 17763 (17763.1.amd64fre.rs5)", "amd64", "x86_64-v19.4.0-servercore1809", "ltsc2019-x86_64"),
        ("10.0.19045", "amd64", "x86_64-v19.4.0-servercore1809", "ltsc2019-x86_64"),
        ("10.0 20348 (x)", "arm64", "x86_64-v19.4.0-servercore21H2", "ltsc2022-x86_64"),
        ("10.0 22631 (x)", "amd64", "x86_64-v19.4.0-servercore21H2", "ltsc2022-x86_64"),
        ("10.0 26100 (x)", "arm64", "arm64-v19.4.0-servercore24H2", "ltsc2025-arm64"),
        ("10.0 26200 (x)", "amd64", "x86_64-v19.4.0-servercore24H2", "ltsc2025-x86_64"),
    ],
)
def test_helper_image_of_a_windows_engine(kernel: str, arch: str, tag: str, archive: str) -> None:
    image = official_helper_image(engine("windows", arch, kernel))
    assert (image.tag, image.archive) == (tag, f"prebuilt-windows-servercore-{archive}")


@pytest.mark.parametrize("kernel", ["10.0 14393 (x)", "", "6.3"])
def test_unknown_windows_is_an_error_of_the_configuration(kernel: str) -> None:
    with pytest.raises(SystemFailure, match="set helper_image in the config") as caught:
        official_helper_image(engine("windows", "amd64", kernel))
    assert caught.value.reason == "runner_configuration_error"


def test_revision_is_that_of_a_release() -> None:
    assert [revision("19.4.0"), revision("19.4.0-rc1"), revision("development")] == ["v19.4.0", "v19.4.0", "latest"]


def test_archives_lie_near_the_program_and_where_packages_put_them(tmp_path: Path) -> None:
    program = tmp_path / "usr/bin/pyrunner"
    assert archive_directories(str(program)) == [
        tmp_path / "usr/bin",
        tmp_path / "usr/bin/helper-images",
        tmp_path / "usr/lib/gitlab-runner/helper-images",
    ]
    assert official_helper_image(engine(), "ubuntu", pwsh=True).archive == "prebuilt-ubuntu-x86_64-pwsh"
    assert official_helper_image(engine()).archive == "prebuilt-alpine-x86_64"


# --- names and errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("ruby", "ruby:latest"),
        ("ruby:3", "ruby:3"),
        ("reg.example:5000/ruby", "reg.example:5000/ruby:latest"),
        ("reg.example:5000/ruby:3", "reg.example:5000/ruby:3"),
        ("ruby@sha256:" + "a" * 64, "ruby@sha256:" + "a" * 64),
        ("ruby:3@sha256:" + "a" * 64, "ruby:3@sha256:" + "a" * 64),
        ("sha256:" + "a" * 64, "sha256:" + "a" * 64),
        ("a" * 64, "a" * 64),
    ],
)
def test_only_a_name_without_tag_and_digest_gets_a_tag(name: str, reference: str) -> None:
    assert with_tag(name) == reference


def test_id_of_an_image_is_known_by_its_shape() -> None:
    assert is_id("sha256:" + "0" * 64)
    assert is_id("0" * 64)
    assert not is_id("0" * 63)
    assert not is_id("ruby@sha256:" + "0" * 64)


EXTERNAL, CONFIGURATION, UNCLASSIFIED = (
    "runner_external_dependency_failure",
    "runner_configuration_error",
    "image_pull_failure",
)


@pytest.mark.parametrize(
    ("message", "reason", "again"),
    [
        ('Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused', EXTERNAL, True),
        ("dial tcp: lookup reg.example on 10.0.0.1:53: no such host", EXTERNAL, True),
        ("read tcp 10.0.0.1:1->10.0.0.2:443: i/o timeout", EXTERNAL, True),
        ('Get "https://reg.example/v2/": net/http: TLS handshake timeout', EXTERNAL, True),
        ("net/http: request canceled (Client.Timeout exceeded while awaiting headers)", EXTERNAL, True),
        ("read: connection reset by peer", EXTERNAL, True),
        # a network error comes first
        ("unauthorized: dial tcp 10.0.0.1:443", EXTERNAL, True),
        ("manifest for reg.example/a:1 not found: manifest unknown: manifest unknown", CONFIGURATION, False),
        ("pull access denied for a, repository does not exist or may require 'docker login'", CONFIGURATION, False),
        ("denied: requested access to the resource is denied", CONFIGURATION, False),
        ('Get "https://reg.example/v2/a": no basic auth credentials', CONFIGURATION, False),
        ("unauthorized: authentication required", CONFIGURATION, False),
        ("No such image: a:latest", CONFIGURATION, False),
        ("toomanyrequests: You have reached your pull rate limit", UNCLASSIFIED, True),
        ("received unexpected HTTP status: 503 Service Unavailable", UNCLASSIFIED, True),
        ("unexpected EOF", UNCLASSIFIED, True),
        ("no matching manifest for linux/arm64 in the manifest list entries", UNCLASSIFIED, False),
        ("write /var/lib/docker/tmp/x: no space left on device", UNCLASSIFIED, False),
        ("invalid reference format", UNCLASSIFIED, False),
    ],
)
def test_failure_reason_and_whether_another_try_may_help(message: str, reason: str, again: bool) -> None:
    assert failure_reason(message) == reason
    assert may_pass(message) is again
    assert failure_reason(message.upper()) == reason


def test_pauses_grow_within_their_limits() -> None:
    assert all(2 <= pause_before(2) <= 4 and 4 <= pause_before(3) <= 8 for _ in range(100))
    assert all(pause_before(9) <= 10 for _ in range(100))
    assert len({pause_before(3) for _ in range(10)}) > 1
