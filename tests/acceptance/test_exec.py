"""`pyrunner exec` as a real process in real repositories."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

PROGRAM = Path(sys.executable).parent / "pyrunner"
HELLO = Path(__file__).parents[2] / "examples" / "hello"

Result = subprocess.CompletedProcess[str]


class Project:
    """A git repository to run in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *words: str) -> str:
        return subprocess.run(["git", "-C", str(self.path), *words], check=True, capture_output=True, text=True).stdout

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "work")

    def exec(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Result:
        return subprocess.run(
            [str(PROGRAM), "exec", *words],
            cwd=cwd or self.path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def jobs(self, *words: str) -> dict[str, dict[str, object]]:
        result = self.exec("--output", "json", *words)
        return {job["name"]: job for job in json.loads(result.stdout)["jobs"]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = tmp_path / "project"
    path.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(path)], check=True)
    return Project(path)


def log_of(job: dict[str, object]) -> str:
    return Path(str(job["log"])).read_text()


def test_the_sample_project_passes(project: Project) -> None:
    shutil.copytree(HELLO, project.path, dirs_exist_ok=True)
    project.commit()
    result = project.exec()
    assert (result.returncode, result.stderr) == (0, "")
    assert "failed (allowed)" in result.stdout
    assert "greetings/eo.txt: longer than 20 characters" in result.stdout
    assert "The pipeline passed in" in result.stdout
    assert "\x1b" not in result.stdout
    again = project.jobs("build")
    assert "de: from the cache" in log_of(again["build"])
    assert "Reinitialized existing Git repository" in log_of(again["build"])


def snapshot_of(project: Project) -> dict[str, object]:
    """Everything about a repository that a run must not change."""
    git = project.path / ".git"
    paths = [path for path in project.path.rglob("*") if not path.is_dir()]
    stored = [path for path in paths if path.is_relative_to(git / "objects")]
    # git renews the time of an object that it would have written again; its content is what counts
    objects = {path: path.read_bytes() for path in stored}
    files = {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in paths if path not in objects}
    return {
        "index": (git / "index").read_bytes(),
        "refs": project.git("for-each-ref"),
        "head": (git / "HEAD").read_text(),
        "config": (git / "config").read_text(),
        "objects": objects,
        "files": files,
    }


def test_the_work_tree_is_run_as_it_is_and_nothing_of_it_is_touched(project: Project) -> None:
    project.write("kept", "old\n")
    project.write("gone", "x\n")
    project.write(".gitignore", "*.tmp\n")
    project.write("with space/a", "x\n")
    project.commit()
    project.write("kept", "new\n")
    (project.path / "gone").unlink()
    project.write("staged", "staged\n")
    project.git("add", "staged")
    project.write("staged", "changed after staging\n")
    project.write("untracked", "untracked\n")
    project.write("ignored.tmp", "x\n")
    (project.path / "link").symlink_to("kept")
    project.write(
        ".gitlab-ci.yml",
        """
        look:
          script:
            - cat kept staged untracked
            - readlink link
            - test ! -e gone
            - test ! -e ignored.tmp
            - echo "branch=$CI_COMMIT_BRANCH parent=$(git rev-parse HEAD^) clean=$(git status --porcelain)."
        """,
    )
    head = project.git("rev-parse", "HEAD").strip()
    before = snapshot_of(project)
    job = project.jobs()["look"]
    assert job["status"] == "success", log_of(job)
    log = log_of(job)
    for line in ("new\n", "changed after staging\n", "untracked\n", f"branch=main parent={head} clean=."):
        assert line in log
    assert snapshot_of(project) == before


def test_a_clean_work_tree_runs_its_own_commit(project: Project) -> None:
    project.write(".gitlab-ci.yml", "job: {script: ['echo sha=$CI_COMMIT_SHA title=$CI_COMMIT_TITLE']}")
    project.commit()
    assert f"sha={project.git('rev-parse', 'HEAD').strip()} title=work" in log_of(project.jobs()["job"])


def test_a_repository_without_commits_runs(project: Project) -> None:
    project.write(".gitlab-ci.yml", "job: {script: [ls -a]}")
    job = project.jobs()["job"]
    assert job["status"] == "success"
    assert not (project.path / ".git/index").exists()


def test_a_detached_head_in_a_linked_work_tree_and_a_subdirectory(project: Project, tmp_path: Path) -> None:
    project.write(".gitlab-ci.yml", "job: {script: ['cat deep/file', 'echo ref=$CI_COMMIT_REF_NAME']}")
    project.write("deep/file", "committed\n")
    project.commit()
    linked = Project(tmp_path / "linked")
    project.git("worktree", "add", "--quiet", "--detach", str(linked.path))
    linked.write("deep/file", "changed here\n")
    result = linked.exec("--logs", "all", cwd=linked.path / "deep")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "changed here" in result.stdout
    assert linked.git("status", "--porcelain") == " M deep/file\n"


def test_inside_a_git_hook_jobs_work_on_their_own_clone(project: Project) -> None:
    project.write(".gitlab-ci.yml", "job: {script: ['git rm --quiet --cached file', 'pwd']}")
    project.write("file", "x\n")
    project.commit()
    index = project.path / ".git/index"
    before = index.read_bytes()
    result = project.exec(env={"GIT_DIR": ".git", "GIT_INDEX_FILE": str(index), "GIT_PREFIX": ""})
    assert result.returncode == 0, result.stdout + result.stderr
    assert index.read_bytes() == before


def test_a_shallow_clone_runs(project: Project, tmp_path: Path) -> None:
    project.write(".gitlab-ci.yml", "job: {script: ['git log --oneline | wc -l', cat file]}")
    for number in range(3):
        project.write("file", f"{number}\n")
        project.commit()
    shallow = Project(tmp_path / "shallow")
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{project.path}", str(shallow.path)], check=True)
    shallow.write("file", "changed\n")
    for depth in ("0", "20", "1"):
        job = shallow.jobs("--variable", f"GIT_DEPTH={depth}")["job"]
        assert job["status"] == "success", log_of(job)
        assert "changed\n" in log_of(job)
        assert "rejected" not in log_of(job)


def test_a_sha256_repository_runs(tmp_path: Path) -> None:
    path = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(path)], check=True)
    project = Project(path)
    project.write(".gitlab-ci.yml", "job: {script: [git cat-file commit HEAD]}")
    project.commit()
    project.write("new", "x\n")
    job = project.jobs()["job"]
    assert job["status"] == "success", log_of(job)
    assert f"parent {project.git('rev-parse', 'HEAD').strip()}" in log_of(job)


def test_artifacts_go_to_the_jobs_that_want_them(project: Project) -> None:
    project.write(
        ".gitlab-ci.yml",
        """
        one: {stage: build, script: ['echo 1 > one.txt'], artifacts: {paths: [one.txt]}}
        two: {stage: build, script: ['echo 2 > two.txt'], artifacts: {paths: [two.txt]}}
        both: {script: [test -e one.txt -a -e two.txt]}
        first: {script: [test -e one.txt -a ! -e two.txt], dependencies: [one]}
        needs: {script: [test -e two.txt -a ! -e one.txt], needs: [two]}
        none: {script: [test ! -e one.txt -a ! -e two.txt], dependencies: []}
        """,
    )
    assert {name: job["status"] for name, job in project.jobs().items()} == dict.fromkeys(
        ("one", "two", "both", "first", "needs", "none"), "success"
    )


def test_a_failure_stops_what_follows_and_is_shown(project: Project) -> None:
    project.write(
        ".gitlab-ci.yml",
        """
        bad: {stage: build, script: [echo before, exit 7], after_script: ['echo after $CI_JOB_STATUS']}
        unit: {script: [true]}
        rescue: {script: ['true'], when: on_failure}
        flaky: {stage: .post, when: always, script: [exit 3], retry: 1, allow_failure: {exit_codes: 3}}
        """.replace("[true]", "['true']"),
    )
    result = project.exec()
    assert result.returncode == 1
    for text in ("build / bad: failed", "exit code 7", "before\n", "after failed\n", "unit: skipped", "(allowed)"):
        assert text in result.stdout
    jobs = project.jobs()
    assert {name: (job["status"], job["tries"]) for name, job in jobs.items()} == {
        "bad": ("failed", 1),
        "unit": ("skipped", 0),
        "rescue": ("success", 1),
        "flaky": ("failed", 2),
    }
    assert jobs["flaky"]["allowed_to_fail"] is True


def test_chosen_jobs_variables_and_timeout(project: Project) -> None:
    project.write(
        ".gitlab-ci.yml",
        """
        variables: {WORD: file}
        make: {stage: build, script: ['echo $WORD > made'], artifacts: {paths: [made]}}
        other: {stage: build, script: ['true']}
        show: {script: [cat made], when: manual}
        slow: {script: [sleep 30], timeout: 2s}
        """,
    )
    jobs = project.jobs("show", "--variable", "WORD=from the command line")
    assert {name: job["status"] for name, job in jobs.items()} == {"make": "success", "show": "success"}
    assert "from the command line\n" in log_of(jobs["show"])
    slow = project.jobs("slow")["slow"]
    assert (slow["status"], slow["failure_reason"]) == ("failed", "job_execution_timeout")


def test_list_and_dry_run_start_nothing(project: Project) -> None:
    shutil.copytree(HELLO, project.path, dirs_exist_ok=True)
    listed = project.exec("--list")
    assert listed.stdout.splitlines()[0].split() == ["STAGE", "JOB", "WHEN", "NEEDS", "NOTES"]
    assert [job["name"] for job in json.loads(project.exec("--list", "-o", "json").stdout)["jobs"]] == [
        "build",
        "unit",
        "style",
        "package",
    ]
    assert "    $ tests/style.sh greetings\n" in project.exec("style", "--dry-run").stdout
    assert not Path(os.environ["XDG_CACHE_HOME"], "pyrunner").exists()


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (None, (), ".gitlab-ci.yml: there is no such file"),
        ("job: [", (), ".gitlab-ci.yml:2:1: invalid YAML: did not find"),
        ("job: {script: x, only: [main]}", (), ".gitlab-ci.yml:1:18: the keyword job:only is not supported"),
        ("a: {script: x, needs: [a]}", (), ".gitlab-ci.yml:1:16: a:needs: goes in a circle: a → a"),
        ("job: {script: x}", ("jbo",), "the job jbo is not in the pipeline"),
        ("job: {script: x}", ("--variable", "secret"), "--variable secret: expected NAME=VALUE"),
        ("job: {script: x}", ("--executor", "kubernetes"), 'executor "kubernetes" is not available in this version'),
        ("job: {script: x}", ("--concurrent", "0"), "--concurrent must be at least 1"),
        ("job: {script: x}", ("--file", "none.yml"), "none.yml: there is no such file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    project: Project, text: str | None, words: tuple[str, ...], message: str
) -> None:
    if text is not None:
        project.write(".gitlab-ci.yml", text)
    result = project.exec(*words)
    assert result.returncode == 1
    assert result.stdout == ""
    first, *hints = result.stderr.splitlines()
    assert first.startswith(f"FATAL: {message}")
    assert len(hints) <= 1


def test_outside_of_a_repository(tmp_path: Path) -> None:
    result = Project(tmp_path).exec(env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert (result.returncode, result.stderr.count("\n")) == (1, 2)
    assert "not a git repository" in result.stderr


def test_a_file_that_git_cannot_read_is_named(project: Project) -> None:
    project.write(".gitlab-ci.yml", "job: {script: x}")
    (project.path / "nested").mkdir()
    subprocess.run(["git", "init", "--quiet", str(project.path / "nested")], check=True)
    result = project.exec()
    assert result.returncode == 1
    assert "nested" in result.stderr
    assert "Traceback" not in result.stderr


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Starts `exec` without waiting; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(PROGRAM), "exec", *words],
            cwd=project.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP])
def test_a_stop_signal_cancels_the_jobs(project: Project, start: Start, tmp_path: Path, number: int) -> None:
    mark = tmp_path / "pid"
    project.write(
        ".gitlab-ci.yml",
        f"""
        long: {{script: ['echo $$ > {mark}', sleep 300]}}
        later: {{stage: deploy, when: always, script: ['true']}}
        """,
    )
    process = start()
    wait_for(lambda: mark.exists() and mark.read_text().strip() != "", "the job does not start")
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")
    for text in ("test / long: canceled", "deploy / later: canceled", "The pipeline was canceled"):
        assert text in output
    pid = int(mark.read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the job's shell is left behind")


def test_a_second_interrupt_leaves_at_once_and_no_job_behind(project: Project, start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    project.write(
        ".gitlab-ci.yml",
        f"""
        stubborn: {{script: ["trap '' TERM INT HUP", 'echo $$ > {mark}', 'while :; do sleep 0.1; done']}}
        """,
    )
    process = start()
    wait_for(lambda: mark.exists() and mark.read_text().strip() != "", "the job does not start")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    while "once more leaves at once" not in (line := process.stdout.readline()):
        assert line, "it ended at the first interrupt"
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    process.communicate(timeout=60)
    assert (process.returncode, time.monotonic() - begin < 15) == (1, True)
    pid = int(mark.read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the job's shell is left behind")


def test_two_runs_of_one_repository_do_not_share_a_room(project: Project, start: Start, tmp_path: Path) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    project.write(
        ".gitlab-ci.yml",
        f"""
        job:
          script:
            - touch {meet}/$$
            - for i in $(seq 600); do test $(ls {meet} | wc -l) -ge 2 && break; sleep 0.1; done
            - test $(ls {meet} | wc -l) -ge 2
            - git status --porcelain && pwd
        """,
    )
    runs = [start("--logs", "all"), start("--logs", "all")]
    results = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], results
    rooms = {line for output, _ in results for line in output.splitlines() if "/builds/" in line and "/room-" in line}
    assert any("room-0" in line for line in rooms)
    assert any("room-1" in line for line in rooms)


def test_a_terminal_gets_a_live_tree(project: Project) -> None:
    project.write(".gitlab-ci.yml", "build: {stage: build, script: [sleep 0.5]}\nunit: {script: [exit 3]}")
    output = on_terminal(project, {"TERM": "xterm"})
    assert "\x1b[" in output
    for text in ("build", "└── ", "unit", "exit code 3", "The pipeline failed in"):
        assert text in output
    plain = on_terminal(project, {"TERM": "xterm", "NO_COLOR": "1"})
    assert "\x1b[31m" not in plain
    assert "\x1b[32m" not in plain


def test_names_of_jobs_are_shown_as_they_are_and_cannot_steer_a_terminal(project: Project) -> None:
    names = ['"build: [linux, amd64]"', '"half [/bold]"', '"red \\e[31m\\n"']
    project.write(".gitlab-ci.yml", "\n".join(f"{name}: {{script: [exit 3]}}" for name in names))
    shown = on_terminal(project, {"TERM": "xterm", "NO_COLOR": "1"})
    plain = project.exec()
    assert (plain.returncode, plain.stderr) == (1, "")
    listed = project.exec("--list").stdout + project.exec("--dry-run").stdout
    for text in (shown, plain.stdout, listed):
        for name in ("build: [linux, amd64]", "half [/bold]", "red \ufffd[31m\ufffd"):
            assert name in text
        assert "\x1b[31m" not in text


def on_terminal(project: Project, env: dict[str, str]) -> str:
    """What `exec` writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), "exec"], cwd=project.path, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env}
    )
    os.close(theirs)
    chunks = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            # the other side is closed
            break
        chunks.append(chunk)
    os.close(ours)
    assert process.wait(timeout=60) == 1
    return b"".join(chunks).decode()


def test_jobs_do_not_run_on_when_nobody_reads_the_output(project: Project, start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    project.write(
        ".gitlab-ci.yml",
        f"""
        quick: {{script: ['until test -s {mark}; do sleep 0.05; done']}}
        long: {{script: ['echo $$ > {mark}', sleep 300]}}
        """,
    )
    process = start()
    assert process.stdout is not None
    process.stdout.close()
    wait_for(lambda: process.poll() is not None, "the run does not end")
    assert process.stderr is not None
    assert process.stderr.read() == ""
    if mark.exists():
        pid = int(mark.read_text())
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the job's shell is left behind")
