"""Which credentials an image gets, from books, configs and helper programs; no engine needed."""

from __future__ import annotations

import base64
import json
import os
import stat
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobTimeout, SystemFailure
from pyrunner.executors.docker.auth.book import (
    CredentialBook,
    CredentialError,
    Offer,
    RegistryCredentials,
    registry_key,
    registry_path,
)
from pyrunner.executors.docker.auth.config_file import offers_of_config
from pyrunner.executors.docker.auth.helper_program import HelperProgram

HELPER = """#!/bin/sh
echo "$0 $1" >> "{log}"
case $1 in
list) echo '{listed}' ;;
get)
    read -r server || [ -n "$server" ]
    echo "$server" >> "{log}"
    {get}
    ;;
esac
"""


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory at the front of the search path."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", f"{path}:{os.environ['PATH']}")
    return path


def install(bin_dir: Path, name: str, get: str, listed: str = "{}") -> Path:
    """A credential helper; the file where it notes its questions."""
    program, log = bin_dir / f"docker-credential-{name}", bin_dir / f"{name}.log"
    program.write_text(HELPER.format(log=log, get=get, listed=listed))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return log


def answer(username: str, secret: str) -> str:
    return "echo '" + json.dumps({"ServerURL": "x", "Username": username, "Secret": secret}) + "'"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def book_of(config: object, warnings: list[str] | None = None) -> CredentialBook:
    """A book over one config."""
    text = config if isinstance(config, str) else json.dumps(config)
    source = partial(offers_of_config, text, "$CONFIG", partial(HelperProgram, token=CancelToken()))
    return CredentialBook([source], warn=(warnings if warnings is not None else []).append)


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("ruby", "docker.io/ruby"),
        ("ruby:3.3", "docker.io/ruby"),
        ("group/ruby:3.3", "docker.io/group/ruby"),
        ("index.docker.io/group/ruby", "docker.io/group/ruby"),
        ("Registry.Example/Group/app:1", "registry.example/Group/app"),
        ("registry.example:5000/app", "registry.example:5000/app"),
        ("registry.example:5000/app:1@sha256:abc", "registry.example:5000/app"),
        ("localhost/app", "localhost/app"),
        ("localhost:5000/a/b/c@sha256:abc", "localhost:5000/a/b/c"),
    ],
)
def test_image_name_becomes_registry_path(reference: str, path: str) -> None:
    assert registry_path(reference) == path


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("https://Registry.Example/v1/", "registry.example"),
        ("https://registry.example/v2/", "registry.example"),
        ("http://registry.example:5000", "registry.example:5000"),
        ("registry.example/", "registry.example"),
        ("registry.example/group", "registry.example/group"),
        ("https://registry.example/group/", "registry.example/group"),
        ("docker.io", "docker.io"),
    ],
)
def test_key_of_a_config_becomes_registry_path(key: str, path: str) -> None:
    assert registry_key(key) == path


HOSTS = st.from_regex(r"[A-Za-z0-9]{1,8}\.[A-Za-z0-9-]{1,8}(:[0-9]{1,5})?", fullmatch=True)


@given(HOSTS, st.sampled_from(["{}", "https://{}", "http://{}/", "https://{}/v1/", "{}/v2"]), st.text(max_size=20))
def test_whatever_a_host_is_spelled_like_its_key_is_found(host: str, spelling: str, rest: str) -> None:
    book = CredentialBook([lambda: [fixed(registry_key(spelling.format(host)), "u")]])
    assert book.for_image(f"{host.swapcase()}/app/{rest}") is not None


def fixed(registry: str, username: str) -> Offer:
    found = RegistryCredentials(registry=registry, source="s", username=username, password="p")
    return Offer(registry=registry, source="s", take=lambda: found)


@pytest.mark.parametrize(
    ("image", "username"),
    [
        ("reg.example/a/b/app:1", "deep"),
        ("reg.example/a/b:1", "deep"),
        ("reg.example/a/bc:1", "middle"),
        ("reg.example/ab/b:1", "host"),
        ("reg.example.org/a/b:1", None),
        ("reg.example:5000/a/b:1", None),
        ("ruby", None),
    ],
)
def test_longest_path_wins_and_ends_at_a_slash(image: str, username: str | None) -> None:
    offers = [fixed("reg.example", "host"), fixed("reg.example/a", "middle"), fixed("reg.example/a/b", "deep")]
    found = CredentialBook([lambda: offers]).for_image(image)
    assert (found.username if found else None) == username


def test_first_source_wins_for_one_path_and_a_longer_path_of_a_later_one_before_it() -> None:
    book = CredentialBook(
        [lambda: [fixed("reg.example", "first")], lambda: [fixed("reg.example", "2"), fixed("reg.example/a", "later")]]
    )
    first, later = book.for_image("reg.example/b"), book.for_image("reg.example/a/b")
    assert first is not None
    assert later is not None
    assert (first.username, later.username) == ("first", "later")


def test_source_that_fails_warns_once_and_the_next_one_is_used() -> None:
    asked: list[str] = []

    def broken() -> list[Offer]:
        asked.append("x")
        raise CredentialError("cannot read")

    warnings: list[str] = []
    book = CredentialBook([broken, lambda: [fixed("reg.example", "next")]], warn=warnings.append)
    assert asked == []
    for _ in range(2):
        found = book.for_image("reg.example/a")
        assert found is not None
        assert found.username == "next"
    assert (asked, warnings) == (["x"], ["cannot read"])


def test_entry_of_every_kind() -> None:
    config = {
        "auths": {
            "auth.example": {"auth": encoded("user:pass:word")},
            "plain.example": {"username": "u", "password": "p"},
            "identity.example": {"auth": encoded("u:"), "identitytoken": "refresh"},
            "bearer.example": {"registrytoken": "direct"},
            "padded.example": {"auth": encoded("u:p\0\0")},
            "https://index.docker.io/v1/": {"auth": encoded("hub:h")},
        }
    }
    book = book_of(config)

    def auth(image: str) -> dict[str, str]:
        found = book.for_image(image)
        assert found is not None
        return found.auth()

    assert auth("auth.example/a") == {"username": "user", "password": "pass:word", "serveraddress": "auth.example"}
    assert auth("plain.example/a") == {"username": "u", "password": "p", "serveraddress": "plain.example"}
    identity = {"username": "u", "identitytoken": "refresh", "serveraddress": "identity.example"}
    assert auth("identity.example/a") == identity
    assert auth("bearer.example/a") == {"registrytoken": "direct", "serveraddress": "bearer.example"}
    assert auth("padded.example/a")["password"] == "p"
    assert auth("ruby:3")["serveraddress"] == "https://index.docker.io/v1/"


def test_secrets_are_not_in_the_repr() -> None:
    found = book_of({"auths": {"reg.example": {"auth": encoded("user:open sesame")}}}).for_image("reg.example/a")
    assert found is not None
    assert found.password == "open sesame"
    assert "sesame" not in repr(found)


def test_old_file_format_is_read() -> None:
    found = book_of({"https://reg.example/v1/": {"auth": encoded("u:p"), "email": "e"}}).for_image("reg.example/a")
    assert found is not None
    assert found.username == "u"


@pytest.mark.parametrize(
    "config",
    [
        "{}",
        '{"auths": {}}',
        '{"auths": {"reg.example": {}}}',
        '{"HttpHeaders": {"X": "y"}, "experimental": "disabled"}',
        '{"auths": null, "credHelpers": null, "credsStore": ""}',
    ],
)
def test_config_without_credentials_is_ignored_in_silence(config: str) -> None:
    warnings: list[str] = []
    assert book_of(config, warnings).for_image("reg.example/a") is None
    assert warnings == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ('{"auths": {"reg.example": {"auth": "cGFzc3dvcmQ6c2VjcmV0"}', "$CONFIG: no valid JSON (line 1, column 59)"),
        ("[1]", "$CONFIG: expected a JSON object"),
        ('{"auths": []}', "$CONFIG: expected auths and credHelpers to be objects"),
        ('{"auths": {"reg.example": {"auth": "!!"}}}', "$CONFIG: auths: reg.example: auth is not base64"),
        ('{"auths": {"reg.example": {"auth": "eHg="}}}', "$CONFIG: auths: reg.example: auth is not base64"),
        ('{"auths": {"reg.example": {"username": 7}}}', "$CONFIG: auths: reg.example: expected texts"),
        ('{"credsStore": 7}', "$CONFIG: credsStore: expected the name of a helper"),
        ('{"credHelpers": {"reg.example": 7}}', "$CONFIG: credHelpers: reg.example: expected the name of a helper"),
        ("[" * 200_000, "$CONFIG: no valid JSON"),
    ],
)
def test_broken_config_warns_without_showing_content(config: str, text: str) -> None:
    warnings: list[str] = []
    assert book_of(config, warnings).for_image("reg.example/a") is None
    assert len(warnings) == 1
    assert warnings[0].startswith(text)
    assert "cGFzc3" not in warnings[0]


KEYS = st.sampled_from(["auths", "reg.example", "auth", "username", "credHelpers"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)


@given(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner)))
def test_any_json_is_credentials_or_a_warning(config: object) -> None:
    book_of(config, []).for_image("reg.example/a")


def test_store_is_asked_for_its_list_and_only_for_the_registry_in_question(bin_dir: Path) -> None:
    log = install(bin_dir, "vault", answer("u", "s"), '{"https://reg.example/v2/":"u","other.example":"v"}')
    found = book_of({"auths": {"reg.example": {}}, "credsStore": "vault"}).for_image("reg.example/a")
    assert found is not None
    assert (found.username, found.password, found.source) == ("u", "s", "$CONFIG")
    assert [line.rpartition("/")[2] if "credential" in line else line for line in log.read_text().splitlines()] == [
        "docker-credential-vault list",
        "docker-credential-vault get",
        "https://reg.example/v2/",
    ]


def test_helper_of_a_registry_is_asked_with_the_key_as_it_stands_and_once(bin_dir: Path) -> None:
    log = install(bin_dir, "cloud", answer("<token>", "refresh"))
    book = book_of({"credHelpers": {"Reg.Example": "cloud", "other.example": "not-installed"}})
    for image in ("reg.example/a", "reg.example/b"):
        found = book.for_image(image)
        assert found is not None
        assert found.auth() == {"identitytoken": "refresh", "serveraddress": "reg.example"}
    assert log.read_text().count("get") == 1
    assert "\nReg.Example\n" in log.read_text()


@pytest.mark.parametrize(
    ("get", "warning"),
    [
        ("echo credentials not found in native keychain; exit 1", ""),
        ("echo oops >&2; exit 3", "docker-credential-bad get: exit code 3: oops"),
        ("exit 3", "docker-credential-bad get: exit code 3: it says nothing"),
        ("echo no json", "docker-credential-bad get: the answer is no JSON"),
        ("echo '[]'", "docker-credential-bad get: the answer is no JSON object"),
        ("echo '{}'", "docker-credential-bad get: the answer has no Username and Secret"),
    ],
)
def test_helper_that_has_nothing_is_silent_and_one_that_fails_warns(bin_dir: Path, get: str, warning: str) -> None:
    install(bin_dir, "bad", get)
    warnings: list[str] = []
    assert book_of({"credHelpers": {"reg.example": "bad"}}, warnings).for_image("reg.example/a") is None
    assert warnings == ([warning] if warning else [])


def test_helper_that_is_not_installed_warns(bin_dir: Path) -> None:
    warnings: list[str] = []
    assert book_of({"credHelpers": {"reg.example": "absent"}}, warnings).for_image("reg.example/a") is None
    assert warnings == ["docker-credential-absent: No such file or directory"]


def test_failing_store_leaves_the_entries_of_its_config(bin_dir: Path) -> None:
    warnings: list[str] = []
    config = {"auths": {"reg.example": {"auth": encoded("u:p")}}, "credsStore": "absent"}
    found = book_of(config, warnings).for_image("reg.example/a")
    assert found is not None
    assert found.username == "u"
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["../../tmp/x", "/bin/sh", "a\\b", "a\0b"])
@pytest.mark.parametrize("key", ["credsStore", "credHelpers"])
def test_helper_name_that_leaves_the_search_path_is_fatal(name: str, key: str) -> None:
    value: object = name if key == "credsStore" else {"other.example": name}
    with pytest.raises(SystemFailure) as caught:
        book_of({key: value}).for_image("reg.example/a")
    assert caught.value.reason == "runner_configuration_error"
    assert "path separator" in str(caught.value)


def test_helper_that_hangs_ends_with_the_job_and_its_children_too(bin_dir: Path) -> None:
    install(bin_dir, "slow", "sleep 1000 & sleep 1000")
    token = CancelToken()
    token.expire_in(0.3, JobTimeout("too long"))
    begun = time.monotonic()
    with pytest.raises(JobTimeout):
        HelperProgram("slow", token).get("reg.example")
    assert time.monotonic() - begun < 10
    token.close()
