"""Artifacts: facts/job-lifecycle.md section 9, facts/cache-artifacts.md 3.1 to 3.3. Names begin with the section."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import io
import json
import stat
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from job_life.world import Result, World
from pyrunner.testing.faults import Fault, drop, status

UPLOAD = r"/jobs/\d+/artifacts$"
FILL = ("mkdir -p out/empty", "echo made > out/file; seq 2000 >> out/file", "ln -s file out/link", "chmod 750 out/file")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def artifact(**fields: Any) -> list[dict[str, Any]]:
    """One entry."""
    return [{"name": "", "paths": ["out/"], "artifact_type": "archive", "artifact_format": "zip", **fields}]


def run(world: World, *script: str, **fields: Any) -> Result:
    """A job without sources in an empty directory."""
    variables = {"GIT_STRATEGY": "empty", **fields.pop("variables", {})}
    return world.run(*script, variables=variables, **fields)


def content(result: Result, kind: str = "archive") -> bytes:
    """The stored file."""
    return Path(result.job.artifacts[kind]).read_bytes()


def names(result: Result) -> list[str]:
    """What is in the stored zip."""
    return sorted(zipfile.ZipFile(io.BytesIO(content(result))).namelist())


# --- formats ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("archive_format", ["zip", ""])
def test_9_zip(world: World, archive_format: str) -> None:
    result = run(world, *FILL, artifacts=artifact(name="made", artifact_format=archive_format))
    assert "Uploading artifacts..." in result.text
    assert "out/: found 4 matching artifact files and directories" in result.text
    assert 'Uploading artifacts as "archive" to coordinator... 201 Created' in result.text
    assert names(result) == ["out/", "out/empty/", "out/file", "out/link"]
    assert Path(result.job.artifacts["archive"]).name == "made.zip"
    archive = zipfile.ZipFile(io.BytesIO(content(result)))
    info = archive.getinfo("out/file")
    assert stat.S_IMODE(info.external_attr >> 16) == 0o750
    assert (info.create_system, info.compress_type) == (3, zipfile.ZIP_DEFLATED)
    assert archive.read("out/link") == b"file"
    assert stat.S_ISLNK(archive.getinfo("out/link").external_attr >> 16)


def test_9_gzip_is_one_member_per_file(world: World) -> None:
    script = ("mkdir d; echo b > d/b.xml; echo a > a.xml",)
    result = run(world, *script, artifacts=artifact(paths=["*.xml", "d/*.xml"], artifact_format="gzip", name="report"))
    data = content(result)
    assert gzip.decompress(data) == b"a\nb\n"
    assert data.count(b"\x1f\x8b\x08") == 2
    assert data.index(b"a.xml\0a.xml\0") < data.index(b"b.xml\0d/b.xml\0"), "name and comment"
    assert Path(result.job.artifacts["archive"]).name == "report.gz"


def test_9_gzip_of_a_directory_is_an_error(world: World) -> None:
    result = run(world, *FILL, artifacts=artifact(artifact_format="gzip"), state="failed")
    assert "not a regular file" in result.text.lower()


def test_9_raw(world: World) -> None:
    entry = artifact(paths=["out/file"], artifact_format="raw", name="gl-report.json", artifact_type="sast")
    result = run(world, *FILL, artifacts=entry)
    assert content(result, "sast").startswith(b"made\n1\n2\n")
    assert Path(result.job.artifacts["sast"]).name == "gl-report.json"


def test_9_raw_takes_one_file_only(world: World) -> None:
    entry = artifact(paths=["a", "b"], artifact_format="raw")
    result = run(world, "touch a b", artifacts=entry, state="failed")
    assert "only one file can be sent as raw" in result.text


def test_9_zstd(world: World) -> None:
    result = run(world, *FILL, artifacts=artifact(artifact_format="zipzstd", name="z"))
    assert {info.compress_type for info in zipfile.ZipFile(io.BytesIO(content(result))).infolist()} >= {93}
    result = run(world, *FILL, artifacts=artifact(artifact_format="tarzstd", name="t"))
    tar = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content(result))).read()
    assert tar[257:262] == b"ustar"
    assert Path(result.job.artifacts["archive"]).name == "t.tar.zst"


def test_9_levels(world: World) -> None:
    result = run(world, *FILL, artifacts=artifact(), variables={"ARTIFACT_COMPRESSION_LEVEL": "fastest"})
    assert zipfile.ZipFile(io.BytesIO(content(result))).getinfo("out/file").compress_type == zipfile.ZIP_STORED


# --- selection --------------------------------------------------------------------------------------------------


def test_9_globs_and_excludes(world: World) -> None:
    script = ("mkdir -p a/b/c d; touch a/1.o a/b/2.o a/b/c/3.o a/b/4.c d/5.c d/5.h; ln -s a linked",)
    entry = artifact(paths=["**/*.{o,c}", "link*/**/*.o"], exclude=["a/b/**/*.o", "d/[5]*"])
    result = run(world, *script, artifacts=entry)
    assert names(result) == ["a/1.o", "a/b/4.c"]
    assert "a/b/**/*.o: excluded 2 files" in result.text
    assert "link*/**/*.o: no matching files." in result.text


def test_9_untracked(world: World) -> None:
    script = ("echo x > new; mkdir d; echo y > d/ignored.o", "echo '*.o' > .git/info/exclude || true")
    result = world.run("mkdir -p .git/info", *script, artifacts=artifact(paths=[], untracked=True))
    assert "untracked: found 2 files" in result.text
    assert names(result) == ["d/ignored.o", "new"]


def test_9_untracked_and_paths(world: World) -> None:
    result = world.run("echo x > new", artifacts=artifact(paths=["README.md"], untracked=True))
    assert names(result) == ["README.md", "new"]


def test_9_outside_of_the_project(world: World) -> None:
    (world.base / "secret").write_text("x")
    entry = artifact(paths=["out", "../../../../../secret", str(world.base / "secret"), "/etc/passwd"])
    result = run(world, *FILL, artifacts=entry)
    assert result.text.count("artifact path is not a subpath of project directory") == 3
    assert names(result) == ["out/", "out/empty/", "out/file", "out/link"]


def test_9_no_files_is_no_failure(world: World) -> None:
    result = run(world, artifacts=artifact(paths=["nowhere/"]))
    assert "nowhere/: no matching files. Ensure that the artifact path is relative to the working dir" in result.text
    assert "ERROR: No files to upload" in result.text
    assert result.job.artifacts == {}


def test_3_1_names_with_variables(world: World) -> None:
    entry = artifact(name="$CI_JOB_NAME/${REF:-none} x", paths=["$DIR/file"])
    result = run(world, *FILL, artifacts=entry, variables={"CI_JOB_NAME": "test", "DIR": "out"})
    assert Path(result.job.artifacts["archive"]).name == "none x.zip"
    assert names(result) == ["out/file"]
    result = run(world, *FILL, artifacts=artifact(name="$NOBODY"))
    assert Path(result.job.artifacts["archive"]).name == "default.zip"


def test_3_1_variables_of_gitlab_env_count(world: World) -> None:
    result = run(world, *FILL, "echo WHERE=out >> $GITLAB_ENV", artifacts=artifact(paths=["$WHERE/file"]))
    assert names(result) == ["out/file"]


# --- when, types, queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["success", "failed"])
def test_3_1_when(world: World, state: str) -> None:
    entries = [
        artifact(when=when, artifact_type=kind)[0]
        for when, kind in (("", "archive"), ("on_success", "trace"), ("on_failure", "metadata"), ("always", "junit"))
    ]
    result = run(world, *FILL, "true" if state == "success" else "exit 2", artifacts=entries, state=state)
    expected = {"archive", "trace", "junit"} if state == "success" else {"metadata", "junit"}
    assert set(result.job.artifacts) == expected
    assert f"upload_artifacts_on_{'success' if state == 'success' else 'failure'}" in result.sections


def test_3_1_nothing_for_this_outcome_leaves_no_section(world: World) -> None:
    result = run(world, *FILL, artifacts=artifact(when="on_failure"))
    assert not [name for name in result.sections if name.startswith("upload")]


def test_3_1_reports_are_entries_of_their_own(world: World) -> None:
    entries = [
        *artifact(),
        *artifact(paths=["out/file"], artifact_type="junit", artifact_format="gzip", name="junit.xml", when="always"),
        *artifact(paths=["out/file"], artifact_type="dotenv", artifact_format="gzip", name=".env"),
    ]
    result = run(world, *FILL, artifacts=entries)
    assert result.text.count("Uploading artifacts...\n") == 3
    assert [f'as "{kind}"' in result.text for kind in ("archive", "junit", "dotenv")] == [True] * 3
    assert gzip.decompress(content(result, "junit")).startswith(b"made\n1\n2\n")


def test_3_1_the_request(world: World) -> None:
    entry = artifact(expire_in="1 week", artifact_type="junit", artifact_format="gzip", paths=["out/file"])
    result = run(world, *FILL, artifacts=entry)
    seen = world.gitlab.requests_to("POST", UPLOAD)[-1]
    assert seen.query == "artifact_format=gzip&artifact_type=junit&expire_in=1+week"
    assert seen.headers["job-token"] == result.job.token
    assert "content-length" not in seen.headers
    assert result.job.token.encode() not in seen.body


def test_3_1_limits_of_the_config(world: World) -> None:
    debug = {"CI_DEBUG_TRACE": "true"}
    result = run(world, *FILL, artifacts=artifact(), variables=debug)
    assert "--timeout 1h0m0s --response-header-timeout 10m0s" in result.text
    runner = {"artifact": {"upload_timeout": "90s", "response_header_timeout": "5s"}}
    result = run(world, *FILL, artifacts=artifact(), variables=debug, runner=runner)
    assert "--timeout 1m30s --response-header-timeout 5s" in result.text
    assert result.job.token not in result.raw


def test_3_1_no_token_is_on_a_command_line(world: World) -> None:
    log = world.base / "commands"
    script = f"(for i in $(seq 400); do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' >> {log}; done) &"
    result = run(world, *FILL, script, artifacts=artifact())
    assert result.job.token not in log.read_text(errors="replace")


# --- answers ----------------------------------------------------------------------------------------------------


def upload_with(world: World, fault: Fault, *, times: int | None, state: str) -> Result:
    """A job whose first uploads meet `fault`."""
    world.gitlab.inject("POST", UPLOAD, fault, times=times)
    return run(world, *FILL, artifacts=artifact(), state=state)


@pytest.mark.parametrize(
    ("code", "tries", "requests", "says"),
    [
        (403, 1, 1, ["ERROR: Uploading artifacts", "forbidden", "permission denied"]),
        (413, 1, 1, ["too large archive", "too large"]),
        (400, 3, 3, ["WARNING: Uploading artifacts", "failed"]),
        (501, 3, 3, ["WARNING: Uploading artifacts", "failed"]),
        # below each try, requests are made up to five times
        pytest.param(500, 3, 15, ["WARNING: Uploading artifacts", "failed"], marks=pytest.mark.slow),
        pytest.param(503, 6, 30, ["service unavailable"], marks=pytest.mark.slow),
    ],
)
def test_3_1_answers_that_stay(world: World, code: int, tries: int, requests: int, says: list[str]) -> None:
    result = upload_with(world, status(code), times=None, state="failed")
    for text in says:
        assert text in result.text, result.text
    assert result.text.count("WARNING: Retrying...") == tries - 1
    assert len(world.gitlab.requests_to("POST", UPLOAD)) == requests
    assert "ERROR: Job failed: exit status 1" in result.text


@pytest.mark.parametrize("fault", [status(500), status(501), drop()], ids=["500", "501", "drop"])
def test_3_1_another_try_helps(world: World, fault: Fault) -> None:
    result = upload_with(world, fault, times=1, state="success")
    assert names(result) == ["out/", "out/empty/", "out/file", "out/link"]


def test_3_1_a_redirect_names_the_server_from_now_on(world: World) -> None:
    port = world.gitlab.url.rpartition(":")[2]
    moved = status(307, {"Location": f"http://localhost:{port}/elsewhere?x=1"})
    result = upload_with(world, moved, times=1, state="success")
    assert [seen.headers["host"] for seen in world.gitlab.requests_to("POST", UPLOAD)][-1] == f"localhost:{port}"
    assert names(result)


def test_3_1_the_jobs_failure_counts_more_than_the_uploads(world: World) -> None:
    world.gitlab.inject("POST", UPLOAD, status(403))
    result = run(world, *FILL, "exit 7", artifacts=artifact(when="always"), state="failed")
    assert "ERROR: Job failed: exit status 7" in result.text


# --- 3.2 --------------------------------------------------------------------------------------------------------


def test_3_2_provenance(world: World) -> None:
    variables = {"RUNNER_GENERATE_ARTIFACTS_METADATA": "true", "SLSA_PROVENANCE_SCHEMA_VERSION": "v1"}
    variables |= {"CI_RUNNER_ID": "77", "SECRET_NAME": "secret-value"}
    result = world.run(*FILL, artifacts=artifact(name="made"), variables=variables)
    archive = zipfile.ZipFile(io.BytesIO(content(result)))
    assert "made-metadata.json" in archive.namelist()
    text = archive.read("made-metadata.json").decode()
    assert "secret-value" not in text
    statement = json.loads(text)
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert [subject["name"] for subject in statement["subject"]] == ["out/file"]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["SECRET_NAME"] == ""
    assert definition["externalParameters"]["entryPoint"] == "job"
    assert definition["externalParameters"]["source"] == f"{world.gitlab.url}/group/proj"
    assert definition["internalParameters"]["executor"] == "shell"
    assert definition["resolvedDependencies"][0]["digest"]["sha256"] == world.repository.sha
    run_details = statement["predicate"]["runDetails"]
    assert run_details["builder"]["id"] == f"{world.gitlab.url}/group/proj/-/runners/77"
    times = run_details["metadata"]
    assert times["invocationId"] == str(result.job.id)
    assert times["startedOn"] <= times["finishedOn"]
    assert times["startedOn"].startswith("20")


def test_3_2_provenance_is_for_zip_only_and_on_demand(world: World) -> None:
    asked = {"RUNNER_GENERATE_ARTIFACTS_METADATA": "true"}
    result = run(world, *FILL, artifacts=artifact(paths=["out/file"], artifact_format="gzip"), variables=asked)
    assert b"in-toto" not in gzip.decompress(content(result))
    assert names(run(world, *FILL, artifacts=artifact())) == ["out/", "out/empty/", "out/file", "out/link"]
    result = run(world, *FILL, artifacts=artifact(), variables=asked)
    assert "unsupported schema version unknown, falling back to v1" in result.text


# --- 3.3: dependencies ------------------------------------------------------------------------------------------


@pytest.fixture
def made(world: World) -> Result:
    """A job with artifacts."""
    return run(world, *FILL, artifacts=artifact())


def download(world: World, made: Result, *script: str, **fields: Any) -> Result:
    """A job that depends on `made`."""
    dependencies = [{"id": made.job.id, "name": "build"}]
    return run(world, *(script or ("cat out/file",)), dependencies=dependencies, **fields)


def test_3_3_download(world: World, made: Result) -> None:
    script = ("cat out/file", "test $(stat -c %a out/file) = 750 -a -h out/link -a -d out/empty")
    result = download(world, made, *script)
    assert f"Downloading artifacts for build ({made.job.id})..." in result.text
    assert "Downloading artifacts from coordinator... ok" in result.text
    seen = world.gitlab.requests_to("GET", UPLOAD)
    assert [request.query for request in seen] == ["direct_download=true"]
    assert seen[0].headers["job-token"] == made.job.token
    assert made.job.token not in result.raw


def test_3_3_dependencies_without_a_file_are_skipped(world: World) -> None:
    empty = run(world)
    result = run(world, dependencies=[{"id": empty.job.id, "name": "empty", "artifacts_file": {"filename": ""}}])
    assert "download_artifacts" not in result.sections


def test_3_3_without_direct_download(world: World, made: Result) -> None:
    download(world, made, variables={"FF_USE_DIRECT_DOWNLOAD": "false"})
    assert [seen.query for seen in world.gitlab.requests_to("GET", UPLOAD)] == [""]


@pytest.mark.parametrize(
    ("code", "tries", "says"),
    [
        (401, 1, "unauthorized"),
        (403, 1, "forbidden"),
        (404, 1, "not found"),
        (501, 3, "WARNING: Retrying..."),
    ],
)
def test_3_3_answers_that_stay(world: World, made: Result, code: int, tries: int, says: str) -> None:
    world.gitlab.inject("GET", UPLOAD, status(code), times=None)
    result = download(world, made, "echo script-ran", after=["echo after-ran"], state="failed")
    assert says in result.section("download_artifacts")
    assert "script-ran" not in result.text
    assert "after-ran" not in result.text
    seen = world.gitlab.requests_to("GET", UPLOAD)
    assert [request.query for request in seen] == ["direct_download=true", "", ""][:tries]


def test_3_3_the_stage_is_tried_as_often_as_asked(world: World, made: Result) -> None:
    world.gitlab.inject("GET", UPLOAD, status(404), times=2)
    result = download(world, made, variables={"ARTIFACT_DOWNLOAD_ATTEMPTS": "3"})
    assert result.sections.count("download_artifacts") == 3
    assert result.text.count("WARNING: Retrying...") == 2


def test_3_3_a_broken_archive_fails_the_job(world: World, made: Result) -> None:
    path = Path(made.job.artifacts["archive"])
    path.write_bytes(path.read_bytes()[:-40])
    result = download(world, made, "echo script-ran", state="failed")
    assert "FATAL: " in result.section("download_artifacts")
    assert "Traceback" not in result.text
    assert "script-ran" not in result.text


class _Storage(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        body = self.server.body  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@contextlib.contextmanager
def object_storage(body: bytes) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server on a port of its own that gives `body` to everyone and remembers who asked."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Storage) as server:
        server.body, server.seen = body, []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("code", [302, 307])
def test_3_3_object_storage_gets_no_token(world: World, made: Result, code: int) -> None:
    with object_storage(content(made)) as storage:
        place = f"http://127.0.0.1:{storage.server_address[1]}/bucket/x.zip?X-Amz-Signature=signed"
        world.gitlab.inject("GET", UPLOAD, status(code, {"Location": place}))
        result = download(world, made)
    ((path, headers),) = storage.seen  # type: ignore[attr-defined]
    assert path == "/bucket/x.zip?X-Amz-Signature=signed"
    assert not [name for name in headers if "token" in name.lower() or name.lower() == "authorization"]
    assert made.job.token not in str(headers)
    assert "\nmade\n" in result.text
    assert "signed" not in result.raw


def test_3_3_several_dependencies_overlay_in_order(world: World, made: Result) -> None:
    second = run(world, "mkdir out; echo later > out/file; echo own > own", artifacts=artifact(paths=["out", "own"]))
    dependencies = [{"id": job.job.id, "name": f"job{i}"} for i, job in enumerate((made, second))]
    result = run(world, "cat out/file own", dependencies=dependencies)
    assert "\nlater\nown\n" in result.text
    assert result.sections.count("download_artifacts") == 1


def test_9_a_missing_runner_command_fails_no_job(world: World, made: Result) -> None:
    from pyrunner.executors.shell.directories import runner_command

    (world.home / ".bash_profile").write_text('command() { [ "$2" != "$MISSING" ] && builtin command "$@"; }\n')
    missing = {"MISSING": runner_command()}
    result = download(world, made, "mkdir -p out; touch out/x", artifacts=artifact(), variables=missing)
    assert f"Missing {runner_command()}. Artifacts downloading is disabled." in result.text
    assert f"Missing {runner_command()}. Uploading artifacts is disabled." in result.text


def test_5_4_the_trace_reads_as_captured(world: World, made: Result) -> None:
    section = made.section("upload_artifacts_on_success")
    lines = section.splitlines()
    assert lines[0] == "Uploading artifacts for successful job"
    assert lines[1] == "Uploading artifacts..."
    assert lines[2].startswith("Runtime platform                                    arch=")
    assert lines[3].startswith("out/: found 4 matching artifact files and directories")
    upload = 'Uploading artifacts as "archive" to coordinator... 201 Created'
    assert lines[4].startswith(f"{upload}  id={made.job.id} responseStatus=201 Created token=")
