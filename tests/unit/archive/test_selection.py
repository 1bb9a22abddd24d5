from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pytest

from pyrunner.archive.selection import select


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("out/a.txt", "out/deep/b.txt", "out/deep/c.log", "top"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def names(selection: object) -> list[str]:
    return sorted(selection.files)  # type: ignore[attr-defined]


def test_a_directory_is_taken_with_all_in_it(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    chosen = select(str(tree), ["out/"])
    assert names(chosen) == ["out", "out/a.txt", "out/deep", "out/deep/b.txt", "out/deep/c.log"]
    assert lines.messages == ["out/: found 5 matching artifact files and directories"]


def test_parents_that_were_not_matched_are_not_added(tree: Path) -> None:
    assert names(select(str(tree), ["**/*.txt"])) == ["out/a.txt", "out/deep/b.txt"]


def test_an_absolute_path_inside_is_relative(tree: Path) -> None:
    assert names(select(str(tree), [f"{tree}/out/a.txt"])) == ["out/a.txt"]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "out/../../x", "/", ".."])
def test_nothing_outside_is_taken(tree: Path, lines: pytest.LogCaptureFixture, path: str) -> None:
    assert names(select(str(tree), [path])) == []
    assert lines.messages == [f"processPath: artifact path is not a subpath of project directory: {path}"]


def test_a_link_that_leads_out_is_stored_but_not_entered(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "secret").write_text("s")
    (tree / "door").symlink_to(elsewhere)
    assert names(select(str(tree), ["door"])) == ["door"]
    assert names(select(str(tree), ["door/secret", "door/*", "**/secret"])) == []


def test_what_is_not_there_is_told(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    select(str(tree), ["nope*", ""])
    assert lines.messages == [
        f"nope*: no matching files. Ensure that the artifact path is relative to the working directory ({tree})",
        "No matching files. Path is empty.",
    ]


def test_excludes_are_counted(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    chosen = select(str(tree), ["out"], excludes=["out/**/*.log", "never"])
    assert "out/deep/c.log" not in chosen.files
    assert lines.messages == [
        "out: found 4 matching artifact files and directories",
        "out/**/*.log: excluded 1 files",
    ]


def test_the_whole_working_directory(tree: Path) -> None:
    assert "." not in select(str(tree), ["."]).files
    assert len(select(str(tree), ["./"]).files) == 6


def test_untracked_files_include_ignored_ones(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "top"], cwd=tree, check=True)
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "new\nline").write_text("x")
    chosen = select(str(tree), [], untracked=True, excludes=["**/b.txt"])
    assert names(chosen) == [".gitignore", "new\nline", "out/a.txt", "out/deep/c.log"]
    assert lines.messages[0] == "untracked: found 4 files"


def test_untracked_without_a_repository_warns(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    assert names(select(str(tree), [], untracked=True)) == []
    assert lines.messages[-1] == "untracked: no files"


def test_sockets_and_pipes_are_left_out(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tree / "out/pipe")
    assert "out/pipe" not in select(str(tree), ["out"]).files
    assert "File ignored: out/pipe" in lines.messages


def test_parts_of_git_are_warned_about(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    (tree / ".git").mkdir()
    (tree / ".git/config").touch()
    select(str(tree), [".git"])
    assert lines.messages[1:] == [
        "Part of .git directory is on the list of files to archive",
        "This may introduce unexpected problems",
    ]


def test_a_bad_pattern_is_a_warning(tree: Path, lines: pytest.LogCaptureFixture) -> None:
    select(str(tree), ["out/[a"], excludes=["{x"])
    assert len(lines.messages) == 2
    assert all(record.levelname == "WARNING" for record in lines.records)
