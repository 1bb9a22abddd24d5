from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest
from helper_commands import Run
from storage_server import Answer, StorageServer

FILE = "../cache/key/cache.zip"
OLD, NEW = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
NO_UPLOAD = "No URL provided, cache will not be uploaded to shared cache server. Cache will be stored only locally."


@pytest.fixture
def tree(work: Path) -> Path:
    (work / "vendor").mkdir()
    (work / "vendor/a").write_text("a")
    (work / "vendor/b").write_text("b")
    for path in ("vendor/a", "vendor/b", "vendor"):
        os.utime(work / path, (1_000_000_000, 1_000_000_000))
    return work


def test_it_saves_and_restores_locally(tree: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run("cache-archiver", "--file", FILE, "--path", "vendor/", "--metadata", '{"CacheKey": "k"}') == 0
    assert caplog.messages == [
        "Runtime platform",
        "vendor/: found 3 matching artifact files and directories",
        NO_UPLOAD,
    ]
    assert sorted(vars(caplog.records[0]).keys() & {"arch", "os", "pid", "revision", "version"}) == [
        "arch", "os", "pid", "revision", "version",
    ]  # fmt: skip
    assert json.loads((tree / "../cache/key/metadata.json").read_text()) == {"cachekey": "k"}
    (tree / "vendor/a").unlink()
    assert run("cache-extractor", "--file", FILE) == 0
    assert (tree / "vendor/a").read_text() == "a"


def test_nothing_new_is_not_archived_again(tree: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    before = (tree / FILE).stat().st_ino
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    assert caplog.messages[-1] == "Archive is up to date!"
    (tree / "vendor/a").write_text("changed")
    os.utime(tree / "vendor/a", (4_000_000_000, 4_000_000_000))
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    assert (tree / FILE).stat().st_ino != before


def test_no_files_leave_the_earlier_archive(tree: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    before = (tree / FILE).read_bytes()
    assert run("cache-archiver", "--file", FILE, "--path", "nothing") == 0
    assert caplog.messages[-1] == "No files to cache."
    assert (tree / FILE).read_bytes() == before


@pytest.mark.parametrize(("format_name", "magic"), [("tarzstd", b"\x28\xb5"), ("zipzstd", b"PK"), ("odd", b"PK")])
def test_formats(tree: Path, run: Run, format_name: str, magic: bytes) -> None:
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--compression-format", format_name) == 0
    assert (tree / FILE).read_bytes().startswith(magic)
    (tree / "vendor/b").unlink()
    assert run("cache-extractor", "--file", FILE) == 0
    assert (tree / "vendor/b").exists()


def test_paths_are_expanded(tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "vendor")
    run("cache-archiver", "--file", FILE, "--path", "${WHERE}/${LEAF:-a}", "--exclude", "$WHERE/b")
    with zipfile.ZipFile(tree / FILE) as archive:
        assert archive.namelist() == ["vendor/a"]


def test_missing_file_flag(tree: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run("cache-archiver", "--path", "vendor") == 1
    assert caplog.messages[-1] == "Missing --file"


def test_no_cache_is_exit_code_one(work: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run("cache-extractor", "--file", "nope.zip") == 1
    assert caplog.messages[1:] == [
        "No URL provided, cache will not be downloaded from shared cache server. "
        "Instead a local version of cache will be extracted.",
        "Cache file does not exist",
    ]


@pytest.mark.parametrize("flag", ["--gocloud-url", "--alternate-gocloud-url"])
def test_cloud_urls_are_refused(work: Path, run: Run, caplog: pytest.LogCaptureFixture, flag: str) -> None:
    assert run("cache-extractor", "--file", FILE, flag, "s3://bucket/key") == 1
    assert "not available in this version" in caplog.messages[1]


# -- presigned URLs ----------------------------------------------------------------------------------------------------


def test_upload(tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture) -> None:
    server.answer("PUT", Answer(200))
    url = f"{server.url}/bucket/key?signature=secret"
    words = ("--file", FILE, "--path", "vendor", "--url", url, "--header", "X-Amz-Meta-Cachekey: a: b")
    assert run("cache-archiver", *words) == 0
    request = server.requests[0]
    assert request.path == "/bucket/key?signature=secret"
    assert request.body == (tree / FILE).read_bytes()
    assert request.headers["content-length"] == str(len(request.body))
    assert request.headers["content-type"] == "application/octet-stream"
    assert request.headers["x-amz-meta-cachekey"] == "a: b"
    assert request.headers["last-modified"].endswith("GMT")
    assert caplog.messages[-2:] == [
        "Using presigned URL for cache upload",
        f"Uploading cache.zip to {server.url}/bucket/key",
    ]
    assert "secret" not in caplog.text


def test_upload_is_tried_again_after_server_errors(
    tree: Path, run: Run, server: StorageServer, no_pauses: list[float]
) -> None:
    server.answer("PUT", Answer(500), Answer(503), Answer(200))
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--url", server.url) == 0
    assert len(server.requests) == 3
    assert no_pauses == [1.0, 1.0]


def test_a_refused_upload_is_not_tried_again(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    body = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>No\nway</Message></Error>"
    server.answer("PUT", Answer(403, body, {"Content-Type": "application/xml"}))
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--url", server.url) == 1
    assert len(server.requests) == 1
    assert caplog.messages[-1] == "received: 403 Forbidden. Request failed with code: AccessDenied, message: No way"


def test_a_large_archive_stays_local(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("--file", FILE, "--path", "vendor", "--url", server.url, "--max-uploaded-archive-size", "10")
    assert run("cache-archiver", *words) == 0
    assert "is too big (Limit is set to 10). Cache will be stored only locally." in caplog.messages[-1]
    assert server.requests == []


def test_an_archive_that_is_missing_remotely_is_uploaded_again(tree: Path, run: Run, server: StorageServer) -> None:
    words = ("--file", FILE, "--path", "vendor", "--alternate-file", "../other")
    run("cache-archiver", *words)
    server.answer("PUT", Answer(200))
    server.answer("HEAD", Answer(404), Answer(200))
    for _ in range(2):
        assert run("cache-archiver", *words, "--url", server.url, "--check-url", f"{server.url}/check") == 0
    assert [request.method for request in server.requests] == ["HEAD", "PUT", "HEAD"]


def _archive(tree: Path, run: Run) -> bytes:
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    data = (tree / FILE).read_bytes()
    (tree / FILE).unlink()
    (tree / "../cache/key/metadata.json").unlink()
    (tree / "vendor/a").unlink()
    return data


def test_download(tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture) -> None:
    data = _archive(tree, run)
    headers = {"Last-Modified": OLD, "ETag": '"tag"', "x-amz-meta-CacheKey": "k"}
    server.answer("GET", Answer(200, data, headers))
    assert run("cache-extractor", "--file", FILE, "--url", f"{server.url}/k?sig=secret") == 0
    assert (tree / "vendor/a").read_text() == "a"
    assert (tree / FILE).stat().st_mtime == 978_307_200
    assert json.loads((tree / "../cache/key/metadata.json").read_text()) == {"cachekey": "k"}
    assert caplog.messages[-1] == f"Downloading cache from {server.url}/k"
    assert caplog.records[-1].etag == '"tag"'  # type: ignore[attr-defined]
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [200, 304])
def test_a_current_archive_is_not_replaced(
    tree: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    run("cache-archiver", "--file", FILE, "--path", "vendor")
    before = (tree / FILE).stat()
    server.answer("GET", Answer(status, b"other", {"Last-Modified": OLD}))
    assert run("cache-extractor", "--file", FILE, "--url", server.url) == 0
    assert caplog.messages[-1] == "cache.zip is up to date"
    assert (tree / FILE).stat().st_ino == before.st_ino
    assert "if-modified-since" in server.requests[0].headers


@pytest.mark.parametrize(
    ("first", "second", "chosen"), [(OLD, NEW, "/two"), (NEW, OLD, "/one"), ("", OLD, "/two"), (OLD, "", "/one")]
)
def test_the_newer_of_two_objects_wins(
    tree: Path, run: Run, server: StorageServer, first: str, second: str, chosen: str
) -> None:
    data = _archive(tree, run)
    answers = [Answer(200, b"", {"Last-Modified": date}) if date else Answer(404) for date in (first, second)]
    server.answer("HEAD", *answers)
    server.answer("GET", Answer(200, data))
    words = ["--url", f"{server.url}/one", "--head-url", f"{server.url}/one", "--alternate-url", f"{server.url}/two"]
    assert run("cache-extractor", "--file", FILE, *words, "--alternate-head-url", f"{server.url}/two") == 0
    assert server.seen("GET")[0].path == chosen


@pytest.mark.parametrize(
    ("status", "tries", "message"),
    [(404, 1, "file does not exist"), (403, 1, "received: 403 Forbidden"), (502, 3, "received: 502 Bad Gateway")],
)
def test_failed_downloads(
    work: Path,
    run: Run,
    server: StorageServer,
    caplog: pytest.LogCaptureFixture,
    status: int,
    tries: int,
    message: str,
) -> None:
    server.answer("GET", Answer(status))
    assert run("cache-extractor", "--file", FILE, "--url", server.url) == 1
    assert len(server.requests) == tries
    assert caplog.messages[-1] == message
    assert caplog.records[-1].levelname == "WARNING"
    assert list((work / "../cache/key").iterdir()) == []


def test_an_unreachable_storage_is_tried_again(
    work: Path, run: Run, caplog: pytest.LogCaptureFixture, no_pauses: list[float]
) -> None:
    words = ("--retry", "1", "--retry-time", "3s")
    assert run("cache-extractor", "--file", FILE, "--url", "http://127.0.0.1:1/x", *words) == 1
    assert no_pauses == [3.0]
    assert "Retrying..." in caplog.messages


def test_credentials_come_from_the_env_file(
    tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CACHE_METADATA", "")
    (tree / "env").write_text('# note\nCACHE_METADATA=\'{"cachekey": "from file"}\'\nexport OTHER="a\\nb"\n')
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--env-file", "env") == 0
    assert json.loads((tree / "../cache/key/metadata.json").read_text()) == {"cachekey": "from file"}
    assert os.environ.pop("OTHER") == "a\nb"
    (tree / "env").write_text("SECRET WORD\n")
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--env-file", "env") == 1
    assert caplog.messages[-1] == "--env-file env:1: expected KEY=value"


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_bad_metadata_is_one_line(tree: Path, run: Run, caplog: pytest.LogCaptureFixture, text: str) -> None:
    assert run("cache-archiver", "--file", FILE, "--path", "vendor", "--metadata", text) == 1
    assert caplog.messages[-1].startswith("--metadata: ")
