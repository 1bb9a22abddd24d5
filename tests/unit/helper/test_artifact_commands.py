from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from helper_commands import Run
from storage_server import Answer, StorageServer


@pytest.fixture
def tree(work: Path) -> Path:
    (work / "out").mkdir()
    (work / "out/a").write_text("a" * 100)
    (work / "out/b").write_text("b")
    return work


def _job(server: StorageServer) -> list[str]:
    return ["--url", f"{server.url}/", "--id", "101", "--token", "glcbt-64_secretsecret"]


def _file_of(body: bytes) -> tuple[str, bytes]:
    head, _, rest = body.partition(b"\r\n\r\n")
    name = re.search(rb'name="file"; filename="([^"]*)"', head)
    assert name is not None
    return name.group(1).decode(), rest[: rest.rindex(b"\r\n--")]


def test_upload(tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture) -> None:
    server.answer("POST", Answer(201))
    words = ["--path", "out", "--name", "my/art", "--artifact-type", "archive", "--artifact-format", "zip"]
    assert run("artifacts-uploader", *_job(server), *words, "--expire-in", "1 week") == 0
    request = server.requests[0]
    assert request.path == ("/api/v4/jobs/101/artifacts?artifact_format=zip&artifact_type=archive&expire_in=1+week")
    assert request.headers["job-token"] == "glcbt-64_secretsecret"
    assert request.headers["transfer-encoding"] == "chunked"
    name, data = _file_of(request.body)
    assert name == "art.zip"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == ["out/", "out/a", "out/b"]
    last = caplog.records[-1]
    assert last.getMessage() == 'Uploading artifacts as "archive" to coordinator... 201 Created'
    assert (last.id, last.responseStatus, last.token) == (101, "201 Created", "64_secret")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "artifacts.zip"),
        (["--name", "$MISSING"], "default.zip"),
        (["--name", "a/b/"], "b.zip"),
        (["--artifact-format", "zipzstd"], "artifacts.zip"),
        (["--artifact-format", "tarzstd"], "artifacts.tar.zst"),
        (["--artifact-format", "gzip", "--name", "junit.xml"], "junit.xml.gz"),
        (["--artifact-format", "raw", "--name", "x.txt"], "x.txt"),
    ],
)
def test_file_names(tree: Path, run: Run, server: StorageServer, words: list[str], name: str) -> None:
    server.answer("POST", Answer(201))
    assert run("artifacts-uploader", *_job(server), "--path", "out/a", *words) == 0
    assert _file_of(server.requests[0].body)[0] == name


def test_no_files_is_no_failure(tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture) -> None:
    assert run("artifacts-uploader", *_job(server), "--path", "nope") == 0
    assert (caplog.messages[-1], caplog.records[-1].levelname) == ("No files to upload", "ERROR")
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "requests", "message"),
    [(403, 1, "permission denied"), (413, 1, "too large"), (400, 3, "400 Bad Request"), (501, 3, "501")],
)
def test_refused_uploads(
    tree: Path,
    run: Run,
    server: StorageServer,
    caplog: pytest.LogCaptureFixture,
    status: int,
    requests: int,
    message: str,
) -> None:
    server.answer("POST", Answer(status))
    assert run("artifacts-uploader", *_job(server), "--path", "out") == 1
    assert len(server.requests) == requests
    assert message in caplog.messages[-1]
    assert "secretsecret" not in caplog.text


def test_an_unavailable_server_gets_more_tries(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer("POST", Answer(503))
    assert run("artifacts-uploader", *_job(server), "--path", "out") == 1
    assert caplog.messages.count("Retrying...") == 5
    # each try goes through the API's own five attempts
    assert len(server.requests) == 30


def test_a_redirect_moves_all_further_tries(tree: Path, run: Run, server: StorageServer) -> None:
    with StorageServer() as other:
        server.answer("POST", Answer(307, b"", {"Location": f"{other.url}/elsewhere"}))
        other.answer("POST", Answer(201))
        assert run("artifacts-uploader", *_job(server), "--path", "out") == 0
        assert other.requests[0].path == "/api/v4/jobs/101/artifacts"


def test_each_try_sends_the_whole_archive(tree: Path, run: Run, server: StorageServer) -> None:
    server.answer("POST", Answer(400), Answer(201))
    assert run("artifacts-uploader", *_job(server), "--path", "out") == 0
    first, second = (_file_of(request.body)[1] for request in server.requests)
    assert first == second


def test_missing_credentials(tree: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run("artifacts-uploader", "--path", "out") == 1
    assert caplog.messages[-1] == "Missing runner credentials"
    assert run("artifacts-uploader", "--path", "out", "--url", "http://x", "--token", "t") == 1
    assert caplog.messages[-1] == "Missing build ID"
    assert run("artifacts-downloader") == 1
    assert caplog.messages[1:] == [
        "Missing URL (--url)",
        "Missing runner credentials (--token)",
        "Missing build ID (--id)",
        "Incomplete arguments",
    ]


def test_credentials_come_from_the_environment(tree: Path, run: Run, server: StorageServer) -> None:
    server.answer("POST", Answer(201))
    environment = {"CI_SERVER_URL": server.url, "CI_JOB_TOKEN": "t", "CI_JOB_ID": "7"}
    assert run("artifacts-uploader", "--path", "out", environment=environment) == 0
    assert server.requests[0].path == "/api/v4/jobs/7/artifacts"


def test_raw_with_two_files_is_refused_before_anything_is_sent(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert run("artifacts-uploader", *_job(server), "--path", "out/*", "--artifact-format", "raw") == 1
    assert caplog.messages[-1] == "only one file can be sent as raw"
    assert server.requests == []


def test_the_meter_shows_the_upload(
    tree: Path, run: Run, server: StorageServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("POST", Answer(201))
    run("artifacts-uploader", *_job(server), "--path", "out", "--transfer-meter-frequency", "1s")
    assert re.fullmatch(r"\rUploading artifacts \d+ B \([^)]*/s\) {16}\n", capsys.readouterr().out)


def test_answers_are_shown_on_demand(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer("POST", Answer(201, b"{}" * 1000, {"X-Test": "yes"}))
    run("artifacts-uploader", *_job(server), "--path", "out", "--ci-debug-trace")
    shown = next(record for record in caplog.records if record.getMessage() == "received response")
    assert "x-test: yes" in shown.responseHeader.lower()  # type: ignore[attr-defined]
    assert len(shown.responseBody) == 512  # type: ignore[attr-defined]


def test_the_provenance_statement_goes_along(tree: Path, run: Run, server: StorageServer) -> None:
    server.answer("POST", Answer(201))
    words = ["--path", "out", "--generate-artifacts-metadata", "--runner-id", "5", "--repo-url", "https://h/g/p"]
    words += ["--repo-digest", "abc", "--job-name", "build", "--metadata-parameter", "CI", "--schema-version", "v1"]
    assert run("artifacts-uploader", *_job(server), *words) == 0
    with zipfile.ZipFile(io.BytesIO(_file_of(server.requests[0].body)[1])) as archive:
        statement = json.loads(archive.read("artifacts-metadata.json"))
    assert [subject["name"] for subject in statement["subject"]] == ["out/a", "out/b"]
    assert statement["subject"][1]["digest"]["sha256"].startswith("3e23e8160039594a33894f6564e1b134")
    predicate = statement["predicate"]
    assert predicate["buildDefinition"]["externalParameters"] == {
        "CI": "", "entryPoint": "build", "source": "https://h/g/p",
    }  # fmt: skip
    assert predicate["runDetails"]["builder"]["id"] == "https://h/g/p/-/runners/5"
    assert (tree / "artifacts-metadata.json").stat().st_mode & 0o777 == 0o644


# -- downloads ---------------------------------------------------------------------------------------------------------


def _zip(content: str = "hello") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("dir/file", content)
    return data.getvalue()


def test_download(
    work: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    server.answer("GET", Answer(200, _zip()))
    assert run("artifacts-downloader", *_job(server), "--archiver-staging-dir", str(tmp_path / "staging")) == 0
    assert (work / "dir/file").read_text() == "hello"
    assert server.requests[0].path == "/api/v4/jobs/101/artifacts?direct_download=true"
    assert caplog.messages[-1] == "Downloading artifacts from coordinator... ok"
    assert list((tmp_path / "staging").iterdir()) == []


def test_direct_download_is_asked_for_once_and_the_token_stays_home(
    work: Path, run: Run, server: StorageServer
) -> None:
    with StorageServer() as storage:
        server.answer("GET", Answer(302, b"", {"Location": f"{storage.url}/object?sig=1"}), Answer(200, _zip()))
        storage.answer("GET", Answer(418))
        assert run("artifacts-downloader", *_job(server), "--direct-download") == 0
        assert "job-token" not in storage.requests[0].headers
    assert [request.path for request in server.requests] == [
        "/api/v4/jobs/101/artifacts?direct_download=true",
        "/api/v4/jobs/101/artifacts",
    ]


@pytest.mark.parametrize(
    ("status", "requests", "message"),
    [(401, 1, "permission denied"), (403, 1, "permission denied"), (404, 1, "file does not exist"), (418, 3, "418")],
)
def test_refused_downloads(
    work: Path,
    run: Run,
    server: StorageServer,
    caplog: pytest.LogCaptureFixture,
    status: int,
    requests: int,
    message: str,
) -> None:
    server.answer("GET", Answer(status))
    assert run("artifacts-downloader", *_job(server)) == 1
    assert len(server.requests) == requests
    assert message in caplog.messages[-1]
    assert list(work.iterdir()) == []


def test_a_broken_archive_is_one_line(
    work: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer("GET", Answer(200, _zip()[:-30]))
    assert run("artifacts-downloader", *_job(server)) == 1
    assert caplog.messages[-1] == "zip: not a valid zip file"
