"""Reading config.toml: every mistake is said with its place, and nothing is ever a traceback."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pyrunner.base.errors import ConfigError
from pyrunner.config.load import default_config_path, expand, load_config, parse_config


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, path="config.toml", environment={})
    return caught.value


def test_a_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    config = load_config(str(tmp_path / "config.toml"))
    assert (config.concurrent, config.runners, config.mtime) == (1, [], 0.0)
    assert config.session_server.session_timeout == 1800
    assert config.connection_max_age is None


def test_an_empty_file_is_valid_and_gets_the_connection_age(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    config = load_config(str(path))
    assert config.connection_max_age == 900
    assert config.mtime == path.stat().st_mtime
    assert config.path == str(path)


def test_a_whole_entry() -> None:
    config = parse_config(
        """
        concurrent = 4
        connection_max_age = "1h30m"
        [session_server]
          listen_address = "[::]:8093"
        [[runners]]
          name = "host1"
          url = "https://gitlab.example.com"
          token = "glrt-x"
          token_obtained_at = 2026-01-01T02:00:00+02:00
          token_expires_at = 0001-01-01T00:00:00Z
          executor = "docker"
          tls-ca-file = "/ca.pem"
          unhealthy_interval = 90000000000
          environment = ["A=1", "B=2"]
          clean_git_config = false
          [runners.feature_flags]
            FF_TIMESTAMPS = false
          [runners.cache]
            Type = "s3"
            [runners.cache.s3]
              BucketName = "caches"
              PathStyle = true
          [runners.docker]
            image = "alpine"
            pull_policy = "always"
            services_devices = { "alpine:*" = ["/dev/a"] }
            [[runners.docker.services]]
              name = "redis"
        """
    )
    runner = config.runners[0]
    assert (config.concurrent, config.connection_max_age) == (4, 5400)
    assert runner.token_obtained_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert runner.token_expires_at is None
    assert runner.unhealthy_interval == 90
    assert runner.clean_git_config is False
    assert runner.strict_check_interval is None
    assert runner.feature_flags == {"FF_TIMESTAMPS": False}
    assert (runner.cache.type, runner.cache.s3.bucket_name, runner.cache.s3.path_style) == ("s3", "caches", True)
    assert runner.docker is not None
    assert runner.docker.pull_policy == ["always"]
    assert runner.docker.services_devices == {"alpine:*": ["/dev/a"]}
    assert runner.docker.services[0].name == "redis"
    assert runner.tls_ca_file == "/ca.pem"
    assert runner.kubernetes is None


def test_an_integer_for_a_float_key_is_an_error_that_shows_line_and_fix() -> None:
    error = refused('[[runners]]\n  name = "a"\n  [runners.machine]\n    IdleScaleFactor = 1 # why not\n')
    assert "toml: cannot load TOML value of type int64 into a Go float" in str(error)
    assert str(error).startswith("config.toml:4:5: ")
    assert "IdleScaleFactor = 1 # why not" in error.hint
    assert "IdleScaleFactor = 1.0" in error.hint


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (
            'concurrent = "a"',
            "1:1",
            'toml: line 1 (last key "concurrent"): incompatible types: '
            "TOML value has type string; destination has type integer",
        ),
        ("\n\nlimit = ", "3:8", "decoding configuration file: toml: line 3"),
        ("[runners]\nname = 'a'", "1:1", "TOML value has type map; destination has type slice"),
        ("[[runners]]\n[[runners.docker]]\n", "2:1", "TOML value has type slice; destination has type map"),
        ("[[runners]]\nname='a'\n[[runners]]\nlimit = 1.5", "4:1", "destination has type integer"),
        ('connection_max_age = "1x"', "1:1", 'invalid duration: "1x"'),
        (f'connection_max_age = "{"9" * 400}h"', "1:1", "invalid duration: "),
        ("connection_max_age = true", "1:1", "TOML value has type boolean; destination has type string"),
        ("concurrent = 9223372036854775808", "1:1", "out of range for int64"),
        ("[[runners]]\nenvironment = 'A=1'", "2:1", "destination has type slice"),
        ("[[runners]]\nenvironment = ['A=1', 2]", "2:23", "destination has type string"),
        ("[[runners]]\n[runners.docker]\npull_policy = 3", "3:1", "of type int64 into a StringOrArray"),
        ("[[runners]]\n[runners.feature_flags]\nFF_X = 'true'", "3:1", "destination has type boolean"),
        ("[[runners]]\n[runners.autoscaler]\npolicy = [1]", "3:11", "destination has type map"),
        ("runners = [{limit = 1, id = 'x'}]", "1:24", "destination has type integer"),
        ("[labels]\nok = 'x'", "2:1", "invalid config: validating global labels: invalid label key, doesn't match"),
        ("[labels]\nteam = ''", "2:1", "invalid label value, doesn't match"),
        (
            "[[runners]]\nname = 'r'\n[runners.labels]\n'team\\n' = 'x'".replace("'team\\n'", '"team\\n"'),
            "4:1",
            "invalid config: validating runner r: validating labels: invalid label key",
        ),
        (
            "[labels]\n" + "\n".join(f"label{index} = 'x'" for index in range(33)) + "\n[[runners]]\nname = 'r'",
            "35:1",
            "validating runner r: validating computed labels: exceeded maximum computed labels number of 32",
        ),
        (
            "[[runners]]\n[runners.machine]\nMachineOptionsWithName = ['a=%s', 'b']",
            "3:35",
            'machine option with name "b" must contain %s placeholder',
        ),
        (
            "[[runners]]\n[[runners.kubernetes.volumes.nfs]]\nname = 'a'\npath = '/'",
            "2:1",
            "nfs volume: missing required fields: mount_path, server",
        ),
        (
            "[[runners]]\nname = 'm'\n[[runners.machine.autoscaling]]\nPeriods = ['* * 25 * * * *']",
            "4:1",
            "loading configuration for m runner: compiling docker machine autoscaling periods: "
            "invalid time periods [* * 25 * * * *], caused by: ",
        ),
        (
            "[[runners]]\n[[runners.monitoring.job_queuing_durations]]\njobs_running_for_project = '('",
            "3:1",
            "entry 0: jobs_running_for_project: ",
        ),
    ],
)
def test_a_mistake_is_said_with_its_place(text: str, place: str, words: str) -> None:
    error = refused(text)
    assert str(error).startswith(f"config.toml:{place}: ")
    assert words in str(error)
    assert "\n" not in str(error)


def test_the_first_mistake_in_the_file_is_the_one_reported() -> None:
    assert refused('log_level = 1\nconcurrent = "x"\n').line == 1


@pytest.mark.parametrize(
    "text",
    ["[[runners]]\ntoken = 31337\n", "runners = [{ token = 'tok31337', limit = 'x' }]"],
)
def test_a_line_with_a_token_is_not_quoted(text: str) -> None:
    error = refused(text)
    assert "31337" not in f"{error} {error.hint}"


def test_invalid_utf8_is_located(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'concurrent = 1\nuser = "\xff"\n')
    with pytest.raises(ConfigError, match="invalid UTF-8") as caught:
        load_config(str(path))
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_a_directory_in_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(str(tmp_path))


def test_a_file_that_may_not_be_read_is_one_line(as_plain_user: Path) -> None:
    path = as_plain_user / "config.toml"
    path.touch(mode=0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        load_config(str(path))


def test_keys_match_in_any_case_and_the_exact_one_wins() -> None:
    config = parse_config("Concurrent = 3\n[[runners]]\n[runners.machine]\nidlecount = 2\nidle_count = 9\n")
    assert config.concurrent == 3
    assert config.runners[0].machine is not None
    assert config.runners[0].machine.idle_count == 2
    assert parse_config("concurrent = 2\nCONCURRENT = 7").concurrent == 2
    assert parse_config("CONCURRENT = 7\nconcurrent = 2").concurrent == 2


def test_unknown_keys_are_ignored() -> None:
    assert parse_config("concurrent = 2\nfoo = 1\n[bar.baz]\nx = 1\n").concurrent == 2


def test_url_and_token_are_expanded_and_unset_variables_are_empty() -> None:
    text = '[[runners]]\nurl = "https://$HOST/${PATH_}"\ntoken = "glrt-${TOKEN}$UNSET"\nname = "$HOST"\n'
    runner = parse_config(text, environment={"HOST": "h", "PATH_": "p", "TOKEN": "t"}).runners[0]
    assert (runner.url, runner.token, runner.name) == ("https://h/p", "glrt-t", "$HOST")


def test_expansion_leaves_lone_dollars() -> None:
    assert expand("a$ $$ $1 b", {"1": "no"}) == "a$ $$ $1 b"


def test_the_sentry_variable_counts_only_when_the_key_is_absent() -> None:
    environment = {"SENTRY_DSN": "from-env"}
    assert parse_config("", environment=environment).sentry_dsn == "from-env"
    assert parse_config("sentry_dsn = ''", environment=environment).sentry_dsn == ""


def test_the_default_path_is_that_of_gitlab_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_config_path() == "/etc/gitlab-runner/config.toml"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_config_path() == "/home/someone/.gitlab-runner/config.toml"


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("* * 9-17 * * mon-fri *", True),
        ("* 9-17 * * mon-fri 2026-2030", True),
        ("*/5 0 1,15 * sun", True),
        ("0 0 L * *", True),
        ("@daily", True),
        ("* * * *", False),
        ("* * * * * * * *", False),
        ("60 * * * *", False),
        ("* * * foo *", False),
        ("* * */0 * *", False),
        ("", False),
    ],
)
def test_cron_expressions(expression: str, fine: bool) -> None:
    text = f"[[runners]]\n[[runners.machine.autoscaling]]\nPeriods = ['{expression}']"
    if fine:
        parse_config(text)
    else:
        assert "invalid time periods" in str(refused(text))


TOML_1_1 = r"""
[[runners]]
  name = "a\e[1m\x41"
  docker = { # comment, with } and "
    image = "alpine", # { [
    volumes = [
      "/cache", # kept, }
    ],
    tmpfs = { "/a" = "rw", },
  }
  limit = 3
"""


def test_newer_toml_is_read_as_gitlab_runner_does() -> None:
    runner = parse_config(TOML_1_1).runners[0]
    assert (runner.name, runner.limit) == ("a\x1b[1mA", 3)
    assert runner.docker is not None
    assert (runner.docker.image, runner.docker.volumes) == ("alpine", ["/cache"])
    assert runner.docker.tmpfs == {"/a": "rw"}


def test_errors_in_newer_toml_speak_of_the_file_as_it_is() -> None:
    assert refused(TOML_1_1.replace("limit = 3", "limit = '3'")).line == 11
    assert refused(TOML_1_1.replace("rw", "rw\\q")).path == "config.toml"


@pytest.mark.parametrize("text", ['a = 1"', "a = 1'", "a = {", "a = { b = 1,, }", "a = [1,,]", 'a = "\\q"', "a = }"])
def test_what_is_toml_in_no_version_stays_refused(text: str) -> None:
    assert "toml: line 1" in str(refused(text))
