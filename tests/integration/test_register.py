"""The commands that make runners known and forget them, against the fake GitLab on a real socket."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.cli.main import main
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.faults import drop, status

Run = Callable[..., "Outcome"]


class Outcome:
    """Exit code and stderr of a command, without colours."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text

    @property
    def errors(self) -> list[str]:
        return [line.strip() for line in self.text.splitlines() if line.startswith(("ERROR", "FATAL"))]

    def has(self, line: str) -> bool:
        """Whether a log line, information or warning, has exactly this message."""
        shown = (entry.removeprefix("WARNING: ").split("  ")[0].strip() for entry in self.text.splitlines())
        return line in shown


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab(long_poll=0.1) as server:
        yield server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


@pytest.fixture
def run(config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on `config` with the given lines as terminal input."""
    monkeypatch.setenv("NO_COLOR", "1")

    def call(command: str, *words: str, answers: str = "") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        code = main([command, "--config", str(config), *words])
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        return Outcome(code, captured.err)

    return call


def entries(config: Path) -> list[dict[str, Any]]:
    return tomllib.loads(config.read_text()).get("runners", []) if config.exists() else []


def test_registering_with_an_authentication_token(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    token = gitlab.add_runner("made in the UI")
    outcome = run("register", "-n", "--url", gitlab.url, "--token", token, "--executor", "shell", "--limit", "2")
    assert outcome.code == 0, outcome.text
    assert outcome.has("Verifying runner... is valid")
    assert outcome.has(
        "Runner registered successfully. "
        "Feel free to start it, but if it's running already the config should be automatically reloaded!"
    )
    assert outcome.has(f'Configuration (with the authentication token) was saved in "{config}"')
    (entry,) = entries(config)
    assert entry.items() >= {"url": gitlab.url, "token": token, "executor": "shell", "limit": 2}.items()
    assert entry["name"] == socket.gethostname()
    assert entry["id"] > 0
    assert entry["token_obtained_at"].year > 2000
    assert entry["token_expires_at"].year == 1
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    (request,) = gitlab.requests_to("POST", "/runners/verify$")
    assert request.json["system_id"] == (config.parent / ".runner_system_id").read_text()
    assert request.json["info"]["features"]["cancel_gracefully"] is True
    assert outcome.has(
        "The specified runner job concurrency limit (2) is larger than current global concurrency limit (1). "
        "The global concurrent limit will not be increased and takes precedence."
    )
    assert token not in outcome.text


def test_registering_with_a_registration_token(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    outcome = run(
        "register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell",
        "--name", "old style", "--tag-list", "a,b", "--maximum-timeout", "600", "--locked=false",
        "--maintenance-note", "note",
    )  # fmt: skip
    assert outcome.code == 0, outcome.text
    assert outcome.has("Registering runner... succeeded")
    assert "Support for registration tokens and runner parameters in the 'register' command has been" in outcome.text
    (request,) = gitlab.requests_to("POST", "/runners$")
    assert request.json.items() >= {
        "token": gitlab.registration_token, "description": "old style", "tag_list": "a,b", "maximum_timeout": 600,
        "locked": False, "run_untagged": False, "paused": False, "maintenance_note": "note",
    }.items()  # fmt: skip
    assert "access_level" not in request.json
    (entry,) = entries(config)
    assert entry["name"] == "old style"
    assert entry["token"] != gitlab.registration_token


def test_without_tags_untagged_jobs_are_taken(gitlab: FakeGitLab, run: Run) -> None:
    run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    assert gitlab.requests_to("POST", "/runners$")[0].json["run_untagged"] is True


def test_asking_for_everything(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    answers = f"\n{gitlab.url}\n{gitlab.registration_token}\nmy runner\n\n\nkubernets\nshell\n"
    outcome = run("register", answers=answers)
    assert outcome.code == 0, outcome.text
    questions = re.findall(r"Enter [^\n]+:(?=\n)", outcome.text)
    assert questions == [
        "Enter the GitLab instance URL (for example, https://gitlab.com/):",
        "Enter the GitLab instance URL (for example, https://gitlab.com/):",
        "Enter the registration token:",
        "Enter a description for the runner:",
        "Enter tags for the runner (comma-separated):",
        "Enter optional maintenance note for the runner:",
        "Enter an executor: docker, shell:",
        "Enter an executor: docker, shell:",
    ]
    assert outcome.errors[0].startswith("ERROR: Invalid executor specified")
    assert f"[{socket.gethostname()}]: " in outcome.text
    assert entries(config)[0]["name"] == "my runner"


def test_an_authentication_token_at_the_prompt(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    token = gitlab.add_runner()
    outcome = run("register", "--url", gitlab.url, "--executor", "shell", answers=f"\n{token}\nlocal name\n\n")
    assert outcome.code == 0, outcome.text
    assert "Enter a name for the runner. This is stored only in the local config.toml file:" in outcome.text
    assert "Enter tags" not in outcome.text
    assert f"[{gitlab.url}]: " in outcome.text
    assert entries(config)[0].items() >= {"name": "local name", "token": token}.items()


def test_end_of_input_takes_the_runner_back(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    answers = f"{gitlab.url}\n{gitlab.registration_token}\n\n\n\n"
    outcome = run("register", answers=answers)
    assert outcome.code == 1
    assert outcome.errors == ["FATAL: Unexpected EOF. Did you mean to use --non-interactive?"]
    assert outcome.has("Unregistering runner from GitLab succeeded")
    assert gitlab.runners() == []
    assert entries(config) == []


def test_a_runner_is_left_when_asked_to(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    answers = f"{gitlab.url}\n{gitlab.registration_token}\n\n\n\n"
    assert run("register", "--leave-runner", answers=answers).code == 1
    assert len(gitlab.runners()) == 1
    assert entries(config) == []


def test_a_config_that_cannot_be_written_takes_the_runner_back(
    gitlab: FakeGitLab, config: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_keywords: object) -> None:
        raise OSError(28, "No space left on device")

    run("register", "-n", "--url", gitlab.url, "--token", gitlab.add_runner(), "--executor", "shell")
    before = config.read_bytes()
    monkeypatch.setattr("pyrunner.config.edit.os.replace", full)
    outcome = run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    assert outcome.code == 1
    assert outcome.errors == [f"FATAL: {config}: cannot be written: No space left on device"]
    assert len(gitlab.runners()) == 1
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "interrupt"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "hangup")]
)
def test_a_stop_signal_at_a_prompt_takes_the_runner_back(
    gitlab: FakeGitLab, config: Path, number: signal.Signals, name: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrunner", "register", "--config", str(config)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(f"{gitlab.url}\n{gitlab.registration_token}\n\n\n\n")
    process.stdin.flush()
    shown = ""
    while "Enter an executor" not in shown:
        shown = process.stderr.readline()
        assert shown
    process.send_signal(number)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"FATAL: RECEIVED SIGNAL: {name}" in rest
    assert "Traceback" not in rest
    assert gitlab.runners() == []
    assert entries(config) == []


def test_a_second_entry_is_appended_and_the_rest_of_the_file_stays(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    token = gitlab.add_runner()
    config.parent.mkdir()
    text = (
        f'# mine\nconcurrent = 4 # four\nunknown_key = "kept"\n\n[[runners]]\n  name = "a" # old\n  token = "{token}"\n'
    )
    config.write_text(text)
    outcome = run("register", "-n", "--url", gitlab.url, "--token", token, "--executor", "shell")
    assert outcome.code == 0, outcome.text
    assert outcome.has("A runner with this system ID and token has already been registered.")
    assert config.read_text().startswith(text)
    assert len(entries(config)) == 2


def test_a_template_fills_in_what_is_not_given(gitlab: FakeGitLab, config: Path, run: Run, tmp_path: Path) -> None:
    template = tmp_path / "template.toml"
    template.write_text(
        f'[[runners]]\n  name = "not taken"\n  token = "not taken"\n  url = "{gitlab.url}"\n  limit = 7\n'
        '  executor = "shell"\n  environment = ["A=1"]\n  [runners.feature_flags]\n    FF_TIMESTAMPS = true\n'
    )
    token = gitlab.add_runner()
    outcome = run("register", "-n", "--template-config", str(template), "--token", token, "--limit", "3")
    assert outcome.code == 0, outcome.text
    assert outcome.has(f'Merging configuration from template file "{template}"')
    (entry,) = entries(config)
    assert entry.items() >= {"url": gitlab.url, "limit": 3, "environment": ["A=1"], "executor": "shell"}.items()
    assert entry["feature_flags"] == {"FF_TIMESTAMPS": True}
    assert entry["name"] == socket.gethostname()


def test_a_template_of_two_runners_is_refused(gitlab: FakeGitLab, run: Run, tmp_path: Path) -> None:
    template = tmp_path / "template.toml"
    template.write_text("[[runners]]\n[[runners]]\n")
    outcome = run("register", "-n", "--template-config", str(template), "--url", gitlab.url, "--token", "glrt-x")
    assert outcome.code == 1
    assert len(outcome.errors) == 1
    assert outcome.errors[0].startswith("FATAL: Could not handle configuration merging from template file: ")
    assert "configuration template must contain exactly one [[runners]] entry" in outcome.errors[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--token", "glrt-x", "--executor", "shell"], "The url needs to be entered"),
        (["--url", "http://h", "--executor", "shell"], "The registration-token needs to be entered"),
        (["--url", "http://h", "--token", "glrt-x"], "Invalid executor specified: no executor is configured"),
        (["--url", "http://h", "--token", "glrt-x", "--executor", "nope"],
         'Invalid executor specified: unknown executor "nope"'),
        (["--url", "http://h", "--token", "glrt-x", "--executor", "shell", "--access-level", "all"],
         "Given access-level is not valid. Refer to gitlab-runner register -h for the correct options."),
        (["--url", "http://h", "--token", "glrt-x", "--executor", "shell", "--tag-list", "a"],
         "Runner configuration other than name and executor configuration is reserved (specifically --locked"),
        (["--url", "http://h", "--token", "glrt-x", "--executor", "shell", "--locked=false"],
         "Runner configuration other than name and executor configuration is reserved (specifically --locked"),
        (["--limit", "many"], 'Incorrect Usage: invalid value "many" for flag -limit'),
    ],
)  # fmt: skip
def test_what_is_wrong_on_the_command_line_is_one_line(config: Path, run: Run, words: list[str], message: str) -> None:
    outcome = run("register", "-n", *words)
    assert outcome.code == 1
    assert len(outcome.errors) == 1
    assert outcome.errors[0].startswith(f"FATAL: {message}")
    assert not config.exists()


def test_server_options_next_to_an_authentication_token_given_the_old_way_are_ignored(
    gitlab: FakeGitLab, config: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNER_TAG_LIST", "from,environment")
    token = gitlab.add_runner()
    outcome = run("register", "-n", "--url", gitlab.url, "-r", token, "--executor", "shell")
    assert outcome.code == 0, outcome.text
    assert "WARNING: You have specified an authentication token in the legacy parameter" in outcome.text
    assert entries(config)[0]["token"] == token


@pytest.mark.parametrize(("code", "hint"), [(401, "token"), (403, "token"), (404, "--url"), (500, ""), (502, "")])
@pytest.mark.parametrize("kind", ["glrt", "legacy", "registration"])
def test_a_server_that_refuses(  # noqa: PLR0913
    gitlab: FakeGitLab, config: Path, run: Run, code: int, hint: str, kind: str
) -> None:
    gitlab.inject("POST", "/runners", status(code), times=None)
    token = {"glrt": ["--token", "glrt-x"], "legacy": ["--token", "old"], "registration": ["-r", "reg"]}[kind]
    outcome = run("register", "-n", "--url", gitlab.url, *token, "--executor", "shell")
    assert outcome.code == 1
    fatal = {
        "glrt": "FATAL: Failed to verify the runner.",
        "legacy": "FATAL: Failed to verify the runner. You may be having network problems.",
        "registration": "FATAL: Failed to register the runner.",
    }[kind]
    assert outcome.errors[-1] == fatal
    assert f": {code} " in outcome.text
    assert hint in outcome.text
    assert not config.exists()
    assert gitlab.requests_to("DELETE", "/runners") == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "cannot connect to 127.0.0.1:1: connection refused"),
        ("http://host.invalid", "cannot resolve the host name"),
        ("gitlab.example.com", "it must start with http:// or https://"),
        ("ftp://gitlab.example.com", "it must start with http:// or https://"),
    ],
)
def test_a_server_that_cannot_be_reached(config: Path, run: Run, url: str, said: str) -> None:
    for token in (["--token", "glrt-x"], ["--token", "old"], ["-r", "reg"]):
        outcome = run("register", "-n", "--url", url, *token, "--executor", "shell")
        assert outcome.code == 1
        assert said in outcome.text
        assert not config.exists()


def test_a_server_that_redirects_says_so(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    gitlab.inject("POST", "/runners", status(301, headers={"location": "/somewhere"}))
    outcome = run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    assert outcome.code == 1
    assert "the server redirects: give the URL that it redirects to as --url" in outcome.text
    assert not config.exists()


def test_an_answer_without_a_runner_id_is_refused(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    gitlab.inject("POST", "/runners", status(200, body=b'{"id": 0}'))
    outcome = run("register", "-n", "--url", gitlab.url, "--token", "glrt-x", "--executor", "shell")
    assert outcome.errors == ["FATAL: Failed to verify the runner."]
    assert not config.exists()


def test_a_dropped_answer_is_refused(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    gitlab.inject("POST", "/runners", drop(), times=None)
    outcome = run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    assert outcome.code == 1
    assert not config.exists()


def test_a_broken_config_is_not_registered_into(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    config.parent.mkdir()
    config.write_text("concurrent = ")
    outcome = run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    assert outcome.code == 1
    assert str(config) in outcome.errors[0]
    assert config.read_text() == "concurrent = "
    assert gitlab.requests == []


# --- verify -------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(gitlab: FakeGitLab, config: Path, run: Run) -> tuple[str, str]:
    """Two registered runners, `one` and `two`, and their tokens."""
    tokens = gitlab.add_runner(), gitlab.add_runner()
    for name, token in zip(("one", "two"), tokens, strict=True):
        code = run("register", "-n", "--url", gitlab.url, "--token", token, "--executor", "shell", "--name", name).code
        assert code == 0
    return tokens


def test_verifying_all(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    before = config.read_bytes()
    outcome = run("verify")
    assert outcome.code == 0
    assert outcome.text.count("Verifying runner... is valid") == 2
    assert config.read_bytes() == before


def test_verifying_a_runner_that_is_gone(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    gitlab.inject("POST", "/runners/verify", status(403), skip=1, times=None)
    outcome = run("verify")
    assert outcome.code == 1
    assert outcome.errors == ["FATAL: Failed to verify runners"]
    assert len(entries(config)) == 2
    gitlab.clear_faults()
    gitlab.inject("POST", "/runners/verify", status(403), skip=1, times=None)
    outcome = run("verify", "--delete")
    assert outcome.code == 0
    assert outcome.has(f"Updated {config}")
    assert [entry["name"] for entry in entries(config)] == ["one"]


@pytest.mark.parametrize("code", [401, 404, 500, 502])
def test_verifying_at_a_server_in_trouble_forgets_nobody(  # noqa: PLR0913
    gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str], code: int
) -> None:
    gitlab.inject("POST", "/runners/verify", status(code), times=None)
    outcome = run("verify", "--delete", "--name", "one")
    assert outcome.code == 0
    assert len(entries(config)) == 2


def test_verifying_some(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    for words in (["-n", "two"], ["-t", two[1]], ["-t", two[1], "-u", gitlab.url], ["-t", two[1], "-u", "*"]):
        count = len(gitlab.requests_to("POST", "/verify"))
        assert run("verify", *words).code == 0
        seen = gitlab.requests_to("POST", "/verify")[count:]
        assert [request.json["token"] for request in seen] == [two[1]]
    for words in (["-n", "three"], ["-t", "nope"], ["-t", two[1], "-u", "http://other"]):
        outcome = run("verify", *words)
        assert outcome.code == 1
        assert outcome.errors == ["FATAL: no runner matches the filtering parameters"]


# --- unregister ---------------------------------------------------------------------------------------------------


def test_unregistering_one(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    config.write_text(f"# kept\n{config.read_text()}")
    outcome = run("unregister", "--name", "one")
    assert outcome.code == 0, outcome.text
    assert outcome.has("Unregistering runner manager from GitLab succeeded")
    assert outcome.has(f"Updated {config}")
    assert [entry["name"] for entry in entries(config)] == ["two"]
    assert config.read_text().startswith("# kept\n")
    (request,) = gitlab.requests_to("DELETE", "/runners/managers")
    assert request.json == {"token": two[0], "system_id": (config.parent / ".runner_system_id").read_text()}


def test_unregistering_a_legacy_runner(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    outcome = run("unregister", "--token", entries(config)[0]["token"])
    assert outcome.code == 0, outcome.text
    assert outcome.has("Unregistering runner from GitLab succeeded")
    assert entries(config) == []
    assert gitlab.runners() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "at least one of --name or --token must be specified"),
        (["--name", "x"], "could not find a runner with the name 'x'"),
        (["--token", "glrt-0123456789abc"], "could not find a runner with the token '012345678'"),
    ],
)
def test_unregistering_nobody(run: Run, two: tuple[str, str], words: list[str], message: str) -> None:
    outcome = run("unregister", *words)
    assert outcome.code == 1
    assert outcome.errors == [f"FATAL: failed to unregister runner: {message}"]


def test_unregistering_a_runner_that_is_not_in_the_file(gitlab: FakeGitLab, config: Path, run: Run) -> None:
    run("register", "-n", "--url", gitlab.url, "-r", gitlab.registration_token, "--executor", "shell")
    token = entries(config)[0]["token"]
    config.unlink()
    outcome = run("unregister", "--url", gitlab.url, "--token", token)
    assert outcome.code == 0, outcome.text
    assert gitlab.runners() == []
    assert not config.exists()


def test_a_refused_unregistration_keeps_the_entry(
    gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]
) -> None:
    gitlab.inject("DELETE", "/runners", status(403))
    outcome = run("unregister", "--name", "one")
    assert outcome.code == 1
    assert outcome.errors[-1] == 'FATAL: failed to unregister runner "one"'
    assert "Unregistering runner manager from GitLab forbidden" in outcome.errors[0]
    assert len(entries(config)) == 2


def test_unregistering_all_keeps_those_that_fail(
    gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]
) -> None:
    gitlab.inject("DELETE", "/runners", status(500), times=5)
    outcome = run("unregister", "--all-runners")
    assert outcome.code == 0
    assert "WARNING: Unregistering all runners" in outcome.text
    assert outcome.errors[-1] == "ERROR: Failed to unregister runners"
    assert [entry["name"] for entry in entries(config)] == ["one"]


# --- reset-token --------------------------------------------------------------------------------------------------


def test_resetting_a_token(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    config.write_text(config.read_text().replace('name = "one"', 'name = "one" # comment'))
    outcome = run("reset-token", "--name", "one")
    assert outcome.code == 0, outcome.text
    assert outcome.has("Resetting runner authentication token... succeeded")
    assert outcome.has("Updated")
    one, other = entries(config)
    assert one["token"] != two[0]
    assert one["token"].startswith("glrt-")
    assert other["token"] == two[1]
    assert "# comment" in config.read_text()
    assert one["token"] not in outcome.text
    assert run("verify").code == 0


def test_resetting_with_url_id_and_a_personal_access_token(
    gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]
) -> None:
    number = entries(config)[1]["id"]
    body = b'{"token": "glrt-fresh", "token_expires_at": "2031-02-03T04:05:06.789Z"}'
    gitlab.inject("POST", "/reset", status(201, body=body))
    outcome = run("reset-token", "--url", gitlab.url, "--id", str(number), "--pat", "glpat-secret")
    assert outcome.code == 0, outcome.text
    (request,) = gitlab.requests_to("POST", f"/runners/{number}/reset_authentication_token")
    assert request.headers["private-token"] == "glpat-secret"
    assert entries(config)[1]["token"] == "glrt-fresh"
    assert entries(config)[1]["token_expires_at"].isoformat() == "2031-02-03T04:05:06+00:00"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "x"], "could not find a runner with the name 'x'"),
        (["--url", "http://h", "--id", "3"], 'could not find a runner with the URL "http://h" and ID 3'),
    ],
)
def test_resetting_nobody(run: Run, two: tuple[str, str], words: list[str], message: str) -> None:
    outcome = run("reset-token", *words)
    assert outcome.code == 1
    assert outcome.errors == [f"FATAL: Couldn't get runner credentials: {message}"]


def test_a_refused_reset_changes_nothing(gitlab: FakeGitLab, config: Path, run: Run, two: tuple[str, str]) -> None:
    before = config.read_bytes()
    gitlab.inject("POST", "/reset", status(403), times=None)
    outcome = run("reset-token", "--name", "one")
    assert outcome.code == 1
    assert outcome.errors[-1] == "FATAL: Failed to reset runner authentication token"
    assert config.read_bytes() == before
    gitlab.clear_faults()
    gitlab.inject("POST", "/reset", status(403))
    outcome = run("reset-token", "--all-runners")
    assert outcome.code == 0
    assert "WARNING: Resetting all runner authentication tokens" in outcome.text
    one, other = entries(config)
    assert one["token"] == two[0]
    assert other["token"] != two[1]
