"""Changes of config.toml: what a user wrote stays, two writers lose nothing, a reader never sees half a file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.errors import ConfigError
from pyrunner.config.edit import ConfigEditor, edit_config, write_atomically
from pyrunner.config.load import load_config, parse_config
from pyrunner.config.model import (
    Config,
    CustomConfig,
    DockerConfig,
    KubernetesConfig,
    MachineConfig,
    RunnerConfig,
    ServiceConfig,
)
from pyrunner.config.save import config_text, runner_text

FRESH = """\
concurrent = 1
check_interval = 0
shutdown_timeout = 0

[session_server]
  session_timeout = 1800

[[runners]]
  name = "host1"
  url = "https://gitlab.example.com"
  id = 42
  token = "glrt-xxxxxxxxxxxxxxxxxxxx"
  token_obtained_at = 2026-01-01T00:00:00Z
  token_expires_at = 0001-01-01T00:00:00Z
  executor = "docker"
  [runners.cache]
    MaxUploadedArchiveSize = 0
    [runners.cache.s3]
      AssumeRoleMaxConcurrency = 0
    [runners.cache.gcs]
    [runners.cache.azure]
  [runners.docker]
    tls_verify = false
    image = "alpine"
    privileged = false
    disable_entrypoint_overwrite = false
    oom_kill_disable = false
    disable_cache = false
    volumes = ["/cache"]
    volume_keep = false
    shm_size = 0
    network_mtu = 0
"""

OLD = """\
# The runners of the build farm.
concurrent = 4   # one per core
my_own_key = "kept"

# first
[[runners]]
  name = "a" # the first
  token = "glrt-a"
  [runners.docker]
    image = "x"
    # remember: no privileged here
    my_key = 1

# second: do not touch
[[runners]]
  name = "b"
  pre_build_script = \"\"\"
limit = 99
[[runners]]
\"\"\"
  token = 'glrt-b'

# sessions
[session_server]
  session_timeout = 5

[[runners]]
  name = "c\""""


def docker_runner() -> RunnerConfig:
    return RunnerConfig(
        name="host1",
        url="https://gitlab.example.com",
        id=42,
        token="glrt-xxxxxxxxxxxxxxxxxxxx",
        token_obtained_at=datetime(2026, 1, 1, tzinfo=UTC),
        executor="docker",
        docker=DockerConfig(image="alpine", volumes=["/cache"]),
    )


def test_a_fresh_file_has_gitlab_runners_form_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "etc" / "config.toml"
    with edit_config(str(path)) as editor:
        assert not editor.existed
        editor.append_runner(docker_runner())
    assert path.read_text() == FRESH
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["config.toml"]


def test_empty_tables_maps_and_arrays_of_tables_are_written_as_the_reference_says() -> None:
    runner = RunnerConfig(
        name='quo"te\nline',
        unhealthy_interval=90.0,
        clean_git_config=False,
        feature_flags={"FF_B": True, "FF A": False},
        custom=CustomConfig(config_exec_timeout=0),
        machine=MachineConfig(machine_options=["a=b"]),
        docker=DockerConfig(tmpfs={"/a": "rw"}, pull_policy=["always", "never"], services=[ServiceConfig(name="r")]),
    )
    text = runner_text(runner)
    assert '  name = "quo\\"te\\nline"\n' in text
    assert '  unhealthy_interval = "1m30s"\n' in text
    assert "  clean_git_config = false\n" in text
    assert '  [runners.feature_flags]\n    "FF A" = false\n    FF_B = true\n' in text
    assert '    config_exec_timeout = 0\n    run_exec = ""\n' in text
    assert '    pull_policy = ["always", "never"]\n' in text
    assert "    IdleScaleFactor = 0.0\n" in text
    assert '\n\n    [[runners.docker.services]]\n      name = "r"\n' in text
    assert '    [runners.docker.tmpfs]\n      "/a" = "rw"\n' in text


@pytest.mark.parametrize("runner", [docker_runner(), RunnerConfig(name="k", kubernetes=KubernetesConfig())])
def test_what_is_written_reads_back(runner: RunnerConfig) -> None:
    written = Config(runners=[runner], connection_max_age=900.0, labels={"team": "x"})
    assert parse_config(config_text(written), environment={}) == written


def test_every_comment_and_unknown_key_survives_all_changes(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD)
    with edit_config(str(path)) as editor:
        editor.set_runner(0, "token", "glrt-new")
        editor.set_runner(1, "limit", 3)
        editor.set_runner(2, "tls_ca_file", "/ca")
        editor.append_runner(RunnerConfig(name="d"))
    text = path.read_text()
    for line in OLD.splitlines():
        assert line.replace('"glrt-a"', '"glrt-new"') in text.splitlines()
    config = load_config(str(path))
    assert [runner.name for runner in config.runners] == ["a", "b", "c", "d"]
    assert (config.runners[0].token, config.runners[1].limit) == ("glrt-new", 3)
    assert config.runners[2].tls_ca_file == "/ca"


def test_removing_an_entry_takes_its_comment_and_leaves_the_next_ones(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD)
    with edit_config(str(path)) as editor:
        editor.remove_runner(0)
    text = path.read_text()
    assert "# first" not in text
    assert "# second: do not touch\n[[runners]]" in text
    assert "# sessions\n[session_server]" in text
    assert "# The runners of the build farm." in text
    with edit_config(str(path)) as editor:
        editor.remove_runner(1)
        editor.remove_runner(0)
    assert load_config(str(path)).runners == []
    assert "session_timeout = 5" in path.read_text()


def test_an_entry_whose_tables_are_scattered_is_removed_whole() -> None:
    text = "[[runners]]\nname = 'a'\n[labels]\nteam = 'x'\n[runners.docker]\nimage = 'y'\n[[runners]]\nname = 'b'\n"
    editor = ConfigEditor(text, "config.toml", existed=True)
    editor.remove_runner(0)
    assert editor.text == "[labels]\nteam = 'x'\n[[runners]]\nname = 'b'\n"


def test_setting_a_key_to_nothing_removes_its_line_unless_it_is_always_written() -> None:
    editor = ConfigEditor("[[runners]]\n  name = 'a'\n  limit = 3\n  id = 7\n", "config.toml", existed=True)
    editor.set_runner(0, "limit", 0)
    editor.set_runner(0, "id", 0)
    assert editor.text == "[[runners]]\n  name = 'a'\n  id = 0\n"


def test_times_are_written_as_toml_times() -> None:
    editor = ConfigEditor("[[runners]]\n  token_expires_at = 0001-01-01T00:00:00Z\n", "config.toml", existed=True)
    editor.set_runner(0, "token_expires_at", datetime(2027, 2, 3, 4, 5, 6, 789, tzinfo=UTC))
    assert "token_expires_at = 2027-02-03T04:05:06Z" in editor.text
    assert editor.config.runners[0].token_expires_at == datetime(2027, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_windows_line_ends_survive() -> None:
    editor = ConfigEditor("[[runners]]\r\n  name = 'a'\r\n  # c\r\n", "config.toml", existed=True)
    editor.set_runner(0, "limit", 3)
    editor.append_runner(RunnerConfig(name="b"))
    assert tomllib.loads(editor.text)["runners"][0] == {"name": "a", "limit": 3}
    assert "  # c\r\n" in editor.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runners = [{ name = 'a' }]", "inline"),
        ("runners = []", "edit it by hand|inline"),
        ("[[Runners]]\nname = 'a'", "must be spelled"),
    ],
)
def test_a_form_that_cannot_be_changed_safely_is_refused_and_untouched(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words), edit_config(str(path)) as editor:
        editor.append_runner(RunnerConfig(name="b"))
    assert path.read_text() == text


def test_an_error_in_the_block_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD)
    with pytest.raises(RuntimeError), edit_config(str(path)) as editor:
        editor.remove_runner(0)
        raise RuntimeError
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["config.toml"]


def test_mode_and_link_of_an_existing_file_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    real.write_text(OLD)
    real.chmod(0o640)
    link.symlink_to(real)
    with edit_config(str(link)) as editor:
        editor.set_runner(0, "limit", 5)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "limit = 5" in real.read_text()


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD)
    before = path.stat()
    with edit_config(str(path)) as editor:
        assert len(editor.config.runners) == 3
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_variable_in_a_token_is_not_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "expanded")
    path = tmp_path / "config.toml"
    path.write_text("[[runners]]\n  token = '$SECRET'\n")
    with edit_config(str(path)) as editor:
        assert editor.config.runners[0].token == "expanded"
        editor.set_runner(0, "limit", 1)
    assert "expanded" not in path.read_text()


def test_a_directory_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="its directory cannot be used"), edit_config(f"{tmp_path}/file/config.toml"):
        pass


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("old")
    with pytest.raises(ConfigError, match="cannot be written: "):
        write_atomically("/proc/self/config.toml", b"new")
    script = (
        "import resource, signal, sys\n"
        "from pyrunner.config.edit import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "write_atomically(sys.argv[1], b'x' * 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert "cannot be written: File too large" in done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["config.toml"]


WRITER = """
import sys
from pyrunner.config.edit import edit_config
from pyrunner.config.model import RunnerConfig
for number in range(int(sys.argv[3])):
    with edit_config(sys.argv[1]) as editor:
        editor.append_runner(RunnerConfig(name=f"{sys.argv[2]}-{number}"))
"""


def test_two_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, "10"]) for name in ("a", "b", "c")]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        # a reader at any moment finds a whole file
        now = len(load_config(str(path)).runners)
        assert now >= seen
        seen = now
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    names = {runner.name for runner in load_config(str(path)).runners}
    assert names == {f"{name}-{number}" for name in "abc" for number in range(10)}


_COMMENTS = st.sampled_from(["", "# note\n", "\n# [[runners]]\n\n", "  # 'quote\n"])
_LINES = st.sampled_from(
    [
        "limit = 1 # [[runners]]\n",
        "token = 'x'\n",
        "environment = [\n 'A=1', # c\n]\n",
        'pre_build_script = """\n[[runners]]\nlimit = 9\n"""\n',
        "unknown = { a = 1 }\n",
        "[runners.docker]\n  image = 'i'\n",
        "[[runners.docker.services]]\nname = 's'\n",
        "[labels]\nteam = 'x'\n",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    text = draw(_COMMENTS) + "concurrent = 2\n"
    for index in range(draw(st.integers(1, 4))):
        text += draw(_COMMENTS) + f"[[runners]]\nname = 'n{index}'\n"
        for line in draw(st.lists(_LINES, max_size=4, unique=True)):
            text += draw(_COMMENTS) + line
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return draw(st.just("[[runners]]\nname = 'n0'\n"))
    return text


@given(documents(), st.data())
def test_changes_do_what_they_say_and_nothing_else(text: str, data: st.DataObject) -> None:
    editor = ConfigEditor(text, "config.toml", existed=True)
    runners = tomllib.loads(text)["runners"]
    index = data.draw(st.integers(0, len(runners) - 1))
    if data.draw(st.booleans()):
        editor.remove_runner(index)
        del runners[index]
    else:
        key = data.draw(st.sampled_from(["limit", "token", "clone_url"]))
        value = 7 if key == "limit" else "new"
        editor.set_runner(index, key, value)
        runners[index][key] = value
        assert set(text.splitlines()) - set(editor.text.splitlines()) <= {"limit = 1 # [[runners]]", "token = 'x'"}
    before, after = tomllib.loads(text), tomllib.loads(editor.text)
    assert after.pop("runners", []) == runners
    del before["runners"]
    assert after == before
