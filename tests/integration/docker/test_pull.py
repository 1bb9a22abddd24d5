"""Pulls by a real engine from a registry on loopback, and from one that misbehaves."""

from __future__ import annotations

import io
import json
import lzma
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobTimeout, SystemFailure
from pyrunner.executors.docker.auth.book import CredentialBook, Offer, RegistryCredentials
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.engine.errors import EngineUnreachableError, NotFoundError
from pyrunner.executors.docker.images.helper_image import REPOSITORY, HelperImage
from pyrunner.executors.docker.images.policies import PullPolicy
from pyrunner.executors.docker.images.prebuilt import load_prebuilt
from pyrunner.executors.docker.images.pull import Puller
from pyrunner.executors.docker.images.store import ImageStore
from pyrunner.testing.docker_rootfs import RootFs
from pyrunner.testing.executor_contract import RecordingTrace
from pyrunner.testing.registry import Auth, StandInRegistry

ALWAYS, IF_NOT_PRESENT, NEVER = PullPolicy.ALWAYS, PullPolicy.IF_NOT_PRESENT, PullPolicy.NEVER
EXTERNAL, CONFIGURATION, UNCLASSIFIED = (
    "runner_external_dependency_failure",
    "runner_configuration_error",
    "image_pull_failure",
)
StoreOf = Callable[..., ImageStore]


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The real one."""
    with opened(EngineAddress()) as engine:
        yield engine


@pytest.fixture
def registry() -> Iterator[StandInRegistry]:
    """Without a password."""
    with StandInRegistry() as registry:
        yield registry


@pytest.fixture
def trace() -> RecordingTrace:
    """What the job's log gets."""
    return RecordingTrace()


@pytest.fixture
def token() -> Iterator[CancelToken]:
    """Of the job."""
    token = CancelToken()
    yield token
    token.close()


@pytest.fixture
def store_of(engine: Engine, trace: RecordingTrace, token: CancelToken) -> StoreOf:
    """Stores whose tries follow each other at once."""

    def make(*credentials: RegistryCredentials) -> ImageStore:
        offers = [Offer(registry=one.registry, source=one.source, take=lambda one=one: one) for one in credentials]  # type: ignore[misc]
        return ImageStore(
            engine, CredentialBook([lambda: offers]), trace, token, Puller(engine, trace, token, lambda attempt: 0.0)
        )

    return make


def test_pulled_image_is_told_with_id_and_digest(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace
) -> None:
    digest = registry.add_image("group/app", "1")
    name = f"{registry.host}/group/app:1"
    image = store_of().obtain(name, [ALWAYS])
    pinned = f"{registry.host}/group/app@{digest}"
    assert image.runnable == pinned
    assert trace.text == (
        f"Using effective pull policy of [always] for container {name}\n"
        f"Pulling docker image {name} ...\n"
        f"Using docker image {image.facts.id} for {name} with digest {pinned} ...\n"
    )


def test_name_without_tag_pulls_latest_only(registry: StandInRegistry, store_of: StoreOf, engine: Engine) -> None:
    registry.add_image("app", "latest")
    registry.add_image("app", "other")
    store_of().obtain(f"{registry.host}/app", [ALWAYS])
    engine.image(f"{registry.host}/app:latest")
    with pytest.raises(NotFoundError):
        engine.image(f"{registry.host}/app:other")


@pytest.mark.parametrize("tag", ["", ":1"])
def test_digest_pins_the_image_whatever_the_tag_has_become(
    registry: StandInRegistry, store_of: StoreOf, tag: str
) -> None:
    digest = registry.add_image("app", "1")
    registry.add_image("app", "1")
    image = store_of().obtain(f"{registry.host}/app{tag}@{digest}", [ALWAYS])
    assert image.runnable == f"{registry.host}/app@{digest}"


def test_image_used_by_this_job_is_not_pulled_again(registry: StandInRegistry, store_of: StoreOf) -> None:
    registry.add_image("app", "1")
    name, store = f"{registry.host}/app:1", store_of()
    store.obtain(name, [ALWAYS])
    before = registry.count("manifests")
    store.obtain(name, [ALWAYS])
    assert registry.count("manifests") == before
    # another job asks again, which costs no blobs
    blobs = registry.count("blobs")
    store_of().obtain(name, [ALWAYS])
    assert registry.count("manifests") > before
    assert registry.count("blobs") == blobs


def test_present_image_is_used_without_the_registry(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace
) -> None:
    registry.add_image("app", "1")
    name = f"{registry.host}/app:1"
    image = store_of().obtain(name, [IF_NOT_PRESENT])
    requests = len(registry.requests)
    assert store_of().obtain(name, [IF_NOT_PRESENT]).facts.id == image.facts.id
    assert store_of().obtain(name, [NEVER]).facts.id == image.facts.id
    by_id = store_of().obtain(image.facts.id, [ALWAYS])
    assert by_id.facts.id == image.facts.id
    assert len(registry.requests) == requests
    assert 'Using locally found image version due to "if-not-present" pull policy\n' in trace.text
    assert f"Using docker image {image.facts.id} for {image.facts.id}" not in trace.text


def test_policies_are_tried_in_order_until_one_works(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace
) -> None:
    registry.add_image("app", "1")
    name = f"{registry.host}/app:1"
    first = store_of().obtain(name, [ALWAYS])
    registry.fail("manifests", status=404, body=b"{}")
    assert store_of().obtain(name, [ALWAYS, IF_NOT_PRESENT]).facts.id == first.facts.id
    log = trace.text.partition("Using effective pull policy of [always if-not-present]")[2]
    assert 'WARNING: Failed to pull image with policy "always": ' in log
    assert 'Attempt #2: Trying "if-not-present" pull policy\nUsing locally found image version' in log


def test_image_that_is_not_there_fails_by_policy_and_is_not_tried_again(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace
) -> None:
    name = f"{registry.host}/absent:1"
    with pytest.raises(SystemFailure) as caught:
        store_of().obtain(name, [NEVER, ALWAYS])
    assert caught.value.reason == CONFIGURATION
    assert str(caught.value).startswith(f'failed to pull image "{name}" with specified policies [never always]: ')
    assert "manifest unknown" in str(caught.value)
    assert 'failed to pull image with policy "never": no such image' in trace.text.lower()
    assert "will be retried" not in trace.text


def test_platform_is_pulled_and_told(registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace) -> None:
    digests = registry.add_index("app", "1", ["amd64", "arm64"])
    name = f"{registry.host}/app:1"
    image = store_of().obtain(name, [ALWAYS], "linux/arm64")
    assert f"Pulling docker image {name} for platform linux/arm64 ...\n" in trace.text
    assert registry.count(f"manifests/{digests['arm64']}")
    assert not registry.count(f"manifests/{digests['amd64']}")
    assert store_of().obtain(name, [ALWAYS], "linux/amd64").facts.id != image.facts.id


def test_platform_that_the_image_does_not_have_is_told(registry: StandInRegistry, store_of: StoreOf) -> None:
    registry.add_index("app", "1", ["amd64"])
    with pytest.raises(SystemFailure, match="no matching manifest for linux/s390x") as caught:
        store_of().obtain(f"{registry.host}/app:1", [ALWAYS], "linux/s390x")
    assert caught.value.reason == UNCLASSIFIED


@pytest.mark.parametrize(
    "name", ["../../containers/json", "a b", "UPPER", "x\r\nHost: y", "x?a=b#c", "x/../y", "-", "é"]
)
@pytest.mark.parametrize("policy", list(PullPolicy))
def test_name_that_is_none_fails_and_does_nothing_else(store_of: StoreOf, name: str, policy: PullPolicy) -> None:
    with pytest.raises(SystemFailure) as caught:
        store_of().obtain(name, [policy])
    assert not caught.value.retriable
    assert str(caught.value).startswith(f'failed to pull image "{name}" with specified policies [{policy}]: ')


# --- authentication -----------------------------------------------------------------------------------------------


def credentials(registry: StandInRegistry, **values: str) -> RegistryCredentials:
    return RegistryCredentials(registry=registry.host, source="$DOCKER_AUTH_CONFIG", **values)


@pytest.mark.parametrize("bearer", [False, True])
def test_user_and_password_open_the_registry(store_of: StoreOf, trace: RecordingTrace, bearer: bool) -> None:
    with StandInRegistry(Auth(username="u", password="p", bearer=bearer)) as registry:
        registry.add_image("app", "1")
        name = f"{registry.host}/app:1"
        store_of(credentials(registry, username="u", password="p")).obtain(name, [ALWAYS])
        assert (
            f"Authenticating with credentials from $DOCKER_AUTH_CONFIG\nPulling docker image {name} ...\n" in trace.text
        )


def test_identity_token_is_exchanged_at_the_token_server(store_of: StoreOf) -> None:
    with StandInRegistry(Auth(username="u", password="p", bearer=True, identity_token="refresh")) as registry:
        registry.add_image("app", "1")
        store_of(credentials(registry, identity_token="refresh")).obtain(f"{registry.host}/app:1", [ALWAYS])
        assert registry.count("POST /token")


@pytest.mark.parametrize("bearer", [False, True])
@pytest.mark.parametrize("values", [{}, {"username": "u", "password": "wrong"}])
def test_missing_or_wrong_credentials_are_an_error_of_the_configuration(
    store_of: StoreOf, trace: RecordingTrace, bearer: bool, values: dict[str, str]
) -> None:
    with StandInRegistry(Auth(username="u", password="p", bearer=bearer)) as registry:
        registry.add_image("app", "1")
        given = [credentials(registry, **values)] if values else []
        with pytest.raises(SystemFailure) as caught:
            store_of(*given).obtain(f"{registry.host}/app:1", [ALWAYS])
        assert caught.value.reason == CONFIGURATION
        assert "will be retried" not in trace.text


# --- faults -------------------------------------------------------------------------------------------------------


def test_refused_connection_is_tried_three_times(store_of: StoreOf, trace: RecordingTrace) -> None:
    name = "127.0.0.1:1/app:1"
    with pytest.raises(SystemFailure) as caught:
        store_of().obtain(name, [ALWAYS])
    assert caught.value.reason == EXTERNAL
    assert "connection refused" in str(caught.value)
    assert trace.text.count("WARNING: Pulling failed, will be retried in 0s") == 2
    assert "(2/3)" in trace.text
    assert "(3/3)" in trace.text
    assert not caught.value.retriable


@pytest.mark.parametrize(
    ("status", "headers"), [(429, {"Retry-After": "1"}), (500, {}), (502, {}), (503, {"Retry-After": "1"})]
)
def test_busy_registry_is_tried_again_and_then_works(
    registry: StandInRegistry,
    engine: Engine,
    trace: RecordingTrace,
    token: CancelToken,
    status: int,
    headers: dict[str, str],
) -> None:
    registry.add_image("app", "1")
    registry.fail("/manifests/", status=status, headers=headers, body=b"busy")

    def recover(attempt: int) -> float:
        registry.faults.clear()
        return 0.0

    Puller(engine, trace, token, recover).pull(f"{registry.host}/app:1", None)
    assert trace.text.count("WARNING: Pulling failed, will be retried in 0s (2/3): ") == 1


def test_rate_limit_that_stays_fails_with_the_registrys_words(registry: StandInRegistry, store_of: StoreOf) -> None:
    body = b'{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit","detail":""}]}'
    registry.add_image("app", "1")
    registry.fail("/manifests/", status=429, headers={"Retry-After": "1"}, body=body)
    with pytest.raises(SystemFailure, match="pull rate limit") as caught:
        store_of().obtain(f"{registry.host}/app:1", [ALWAYS])
    assert caught.value.reason == UNCLASSIFIED


@pytest.mark.parametrize("status", [403, 401])
def test_denied_image_is_an_error_of_the_configuration(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace, status: int
) -> None:
    code = {401: b"UNAUTHORIZED", 403: b"DENIED"}[status]
    body = b'{"errors":[{"code":"%b","message":"requested access to the resource is denied","detail":[]}]}' % code
    registry.add_image("app", "1")
    registry.fail("/manifests/", status=status, body=body)
    with pytest.raises(SystemFailure) as caught:
        store_of().obtain(f"{registry.host}/app:1", [ALWAYS])
    assert caught.value.reason == CONFIGURATION
    assert "will be retried" not in trace.text


def test_words_of_a_hostile_registry_are_one_short_line(registry: StandInRegistry, store_of: StoreOf) -> None:
    message = "first\r\n\x1b[2Jsection_start:1:x\r" + "y" * 100_000
    body = json.dumps({"errors": [{"code": "UNKNOWN", "message": message, "detail": "z"}]}).encode()
    registry.add_image("app", "1")
    registry.fail("/manifests/", status=404, body=body)
    with pytest.raises(SystemFailure, match=r"first \[2Jsection_start:1:x y+\.\.\.$") as caught:
        store_of().obtain(f"{registry.host}/app:1", [ALWAYS])
    assert len(str(caught.value)) < 1200
    assert str(caught.value).isprintable()


def test_manifest_cut_in_the_middle_is_tried_again(
    registry: StandInRegistry, store_of: StoreOf, trace: RecordingTrace
) -> None:
    registry.add_image("app", "1")
    registry.fail("GET .*/manifests/", times=1, cut=True)
    store_of().obtain(f"{registry.host}/app:1", [ALWAYS])
    assert "will be retried" in trace.text


def test_blob_cut_in_the_middle_is_fetched_to_its_end(registry: StandInRegistry, store_of: StoreOf) -> None:
    registry.add_image("app", "1")
    fault = registry.fail("/blobs/", times=1, cut=True)
    store_of().obtain(f"{registry.host}/app:1", [ALWAYS])
    assert fault.times == 0


@pytest.mark.parametrize("where", ["GET /v2/$", "/manifests/", "/blobs/"])
def test_registry_that_never_answers_does_not_outlive_the_job(
    registry: StandInRegistry, store_of: StoreOf, token: CancelToken, where: str
) -> None:
    registry.add_image("app", "1")
    registry.fail(where, hang=True)
    token.expire_in(1.0, JobTimeout("execution took too long"))
    begun = time.monotonic()
    with pytest.raises(JobTimeout):
        store_of().obtain(f"{registry.host}/app:1", [ALWAYS, IF_NOT_PRESENT])
    assert time.monotonic() - begun < 5


def test_cancel_ends_the_pause_before_the_next_try(engine: Engine, trace: RecordingTrace, token: CancelToken) -> None:
    puller = Puller(engine, trace, token, lambda attempt: 60.0)
    token.expire_in(0.5, JobTimeout("execution took too long"))
    begun = time.monotonic()
    with pytest.raises(JobTimeout):
        puller.pull("127.0.0.1:1/app:1", None)
    assert time.monotonic() - begun < 10


def test_engine_that_goes_away_is_no_fault_of_the_registry(
    trace: RecordingTrace, token: CancelToken, engine: Engine, tmp_path: Path
) -> None:
    gone = Engine(EngineAddress(host=f"unix://{tmp_path}/none.sock"), engine.facts)
    store = ImageStore(gone, CredentialBook([]), trace, token)
    with pytest.raises(EngineUnreachableError) as caught:
        store.obtain("127.0.0.1:1/app:1", [ALWAYS, IF_NOT_PRESENT])
    assert caught.value.retriable
    assert trace.text.count("\n") == 1


# --- prebuilt helper images ---------------------------------------------------------------------------------------


def root_file_system() -> bytes:
    root = RootFs()
    root.text("/marker", b"helper")
    return root.data()


def saved_image(engine: Engine) -> bytes:
    """What ``docker save`` writes, of an image that is only in it."""
    engine.import_image(io.BytesIO(root_file_system()), "pyrunner-test/saved", "1", ["LABEL pyrunner.test=saved"])
    try:
        return subprocess.run(["docker", "save", "pyrunner-test/saved:1"], check=True, capture_output=True).stdout
    finally:
        engine.remove_image("pyrunner-test/saved:1")


def prebuilt(tag: str) -> HelperImage:
    return HelperImage(tag=tag, archive="prebuilt-alpine-x86_64")


@pytest.fixture
def helper_tag(engine: Engine, scope: object) -> Iterator[str]:
    """A tag of the official repository that nobody else uses."""
    tag = f"test-{time.time_ns()}"
    yield tag
    engine.remove_image(f"{REPOSITORY}:{tag}")


def test_archive_of_a_file_system_becomes_the_helper_image(engine: Engine, helper_tag: str, tmp_path: Path) -> None:
    (tmp_path / "prebuilt-alpine-x86_64.tar.xz").write_bytes(lzma.compress(root_file_system(), preset=0))
    assert load_prebuilt(engine, prebuilt(helper_tag), [tmp_path / "none", tmp_path])
    image = engine.image(f"{REPOSITORY}:{helper_tag}")
    assert list(image.entrypoint) == ["/usr/bin/dumb-init", "/entrypoint"]


def test_saved_image_is_loaded_and_named_and_goes_before_the_other_kind(
    engine: Engine, helper_tag: str, tmp_path: Path
) -> None:
    packed = zstandard.ZstdCompressor().compress(saved_image(engine))
    (tmp_path / "prebuilt-alpine-x86_64.docker.tar.zst").write_bytes(packed)
    (tmp_path / "prebuilt-alpine-x86_64.tar.xz").write_bytes(b"not looked at")
    try:
        assert load_prebuilt(engine, prebuilt(helper_tag), [tmp_path])
        assert not engine.image(f"{REPOSITORY}:{helper_tag}").entrypoint
    finally:
        engine.remove_image("pyrunner-test/saved:1")


@pytest.mark.parametrize("suffix", [".tar.xz", ".docker.tar.zst"])
@pytest.mark.parametrize("content", [b"", b"no archive at all" * 100])
def test_broken_archive_is_passed_over(
    engine: Engine, helper_tag: str, tmp_path: Path, suffix: str, content: bytes
) -> None:
    (tmp_path / f"prebuilt-alpine-x86_64{suffix}").write_bytes(content)
    assert not load_prebuilt(engine, prebuilt(helper_tag), [tmp_path])


def test_no_archive_is_no_error(engine: Engine, helper_tag: str, tmp_path: Path) -> None:
    assert not load_prebuilt(engine, prebuilt(helper_tag), [tmp_path])
