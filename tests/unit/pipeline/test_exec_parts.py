from __future__ import annotations

from pathlib import Path

import pytest

from pyrunner.base.errors import UsageError
from pyrunner.cli.exec import rooms
from pyrunner.cli.exec.context import file_hasher, project_path
from pyrunner.cli.exec.display import span
from pyrunner.cli.exec.git import Settings
from pyrunner.cli.exec.logs import readable, tail
from pyrunner.cli.exec.plan import read_variables


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("git@gitlab.example:group/sub/proj.git", "group/sub/proj"),
        ("https://user:secret@gitlab.example/group/proj.git/", "group/proj"),
        ("ssh://git@gitlab.example:22/group/proj", "group/proj"),
        ("file:///srv/git/proj.git", "local/my-project"),
        ("/srv/git/proj.git", "local/my-project"),
        ("../elsewhere", "local/my-project"),
        ("https://host/../x/..", "local/my-project"),
        ("https://host/only", "local/my-project"),
        ("", "local/my-project"),
    ],
)
def test_the_project_is_named_after_its_remote(url: str, path: str) -> None:
    assert project_path(Path("/home/me/My Project"), Settings(remotes={"origin": url})) == path


def test_fingerprints_follow_content(tmp_path: Path) -> None:
    fingerprint = file_hasher(tmp_path)
    assert fingerprint(["a"]) == ""
    (tmp_path / "a").write_text("1")
    first = fingerprint(["a", "b"])
    (tmp_path / "a").write_text("2")
    assert len(first) == 40
    assert fingerprint(["a", "b"]) != first


def test_a_trace_is_readable_without_markers_and_control_characters() -> None:
    trace = (
        b"section_start:1:get_sources\r\x1b[0K\x1b[0K\x1b[36;1mGetting source\x1b[0;m\n"
        b"10%\r50%\r100%\r\n\x1b[2Jbell\x07\nsection_end:2:get_sources\r\x1b[0K\xff\n"
    )
    assert readable(trace, color=False) == "Getting source\n100%\n[2Jbell\n\ufffd\n"
    assert "\x1b[36;1mGetting source\x1b[0;m\n" in readable(trace, color=True)


def test_the_end_of_a_log_says_how_much_is_missing() -> None:
    assert tail("1\n2\n3\n", 2) == ("2\n3", 1)
    assert tail("", 2) == ("", 0)


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (0.04, "0.0s"), (99.9, "99.9s"), (185.2, "3m 05s")])
def test_spans(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


def test_variables_of_the_command_line() -> None:
    assert read_variables(["A=1", "B=x=y", "A=", "_c="]) == {"A": "", "B": "x=y", "_c": ""}
    for word in ("A", "=x", "1A=x", "A B=x"):
        with pytest.raises(UsageError):
            read_variables([word])


def test_every_run_has_a_room_of_its_own_and_finds_the_builds_of_the_last() -> None:
    top = Path("/somewhere")
    with rooms.enter(top) as first:
        (first.builds / "kept").touch()
        (first.data / "gone").touch()
        with rooms.enter(top) as second:
            assert second.builds != first.builds
            assert second.caches == first.caches
    with rooms.enter(top) as again:
        assert again == first
        assert (again.builds / "kept").exists()
        assert not (again.data / "gone").exists()
        assert again.data.stat().st_mode & 0o077 == 0
