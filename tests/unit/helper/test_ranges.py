from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest
from helper_commands import Run
from storage_server import Answer, StorageServer

FILE = "cache.zip"
CONTENT = random.Random(5).randbytes(300_000)  # noqa: S311 - any bytes that do not shrink
HEADERS = {"ETag": '"one"', "Last-Modified": "Fri, 01 Jan 2100 00:00:00 GMT"}
PARALLEL_CACHE = {"FF_USE_PARALLEL_CACHE_TRANSFER": "true"}
SMALL_CHUNKS = ("--chunk-size", "65536", "--concurrency", "4", "--retry", "0")


def archive() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as out:
        out.writestr("vendor/a", CONTENT)
    return target.getvalue()


@pytest.fixture(autouse=True)
def parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FF_USE_PARALLEL_CACHE_TRANSFER", "true")
    monkeypatch.setenv("FF_USE_PARALLEL_ARTIFACT_TRANSFER", "true")


def extract(run: Run, server: StorageServer, *words: str) -> int:
    return run("cache-extractor", "--file", FILE, "--url", f"{server.url}/o?sig=1", *(words or SMALL_CHUNKS))


def test_a_large_object_comes_in_ranges(work: Path, run: Run, server: StorageServer) -> None:
    server.answer("GET", Answer(200, archive(), HEADERS, ranged=True))
    assert extract(run, server) == 0
    assert (work / "vendor/a").read_bytes() == CONTENT
    wanted = [request.headers["range"] for request in server.seen("GET")]
    size = len(archive())
    assert wanted[0] == "bytes=0-0"
    assert sorted(wanted[1:]) == sorted(
        f"bytes={start}-{min(start + 65536, size) - 1}" for start in range(0, size, 65536)
    )
    assert (work / FILE).read_bytes() == archive()
    assert (work / FILE).stat().st_mtime == 4102444800


def test_a_server_without_ranges_is_asked_once(work: Path, run: Run, server: StorageServer) -> None:
    server.answer("GET", Answer(200, archive(), HEADERS))
    assert extract(run, server) == 0
    assert len(server.seen("GET")) == 1
    assert (work / "vendor/a").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "words", [("--chunk-size", "1048576"), ("--chunk-size", "65536", "--concurrency", "1")], ids=["small", "one"]
)
def test_small_objects_and_one_connection_take_one_request(
    work: Path, run: Run, server: StorageServer, words: tuple[str, ...]
) -> None:
    server.answer("GET", Answer(200, archive(), HEADERS, ranged=True))
    assert extract(run, server, *words) == 0
    assert [request for request in server.seen("GET") if request.headers.get("range") not in (None, "bytes=0-0")] == []


def test_no_ranges_without_the_flag(
    work: Path, run: Run, server: StorageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FF_USE_PARALLEL_CACHE_TRANSFER")
    server.answer("GET", Answer(200, archive(), HEADERS, ranged=True))
    assert extract(run, server) == 0
    assert [request.headers.get("range") for request in server.seen("GET")] == [None]


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ([Answer(206, b"x", {"Content-Range": "bytes 0-0/*"})], "the answer to a range does not tell the size"),
        ([Answer(404)], "file does not exist"),
        ([Answer(206, b"x", {"Content-Range": "bytes 0-0/300000"}), Answer(500)], "received: 500"),
        (
            [Answer(206, b"x", {"Content-Range": "bytes 0-0/300000"}), Answer(200, bytes(300_000))],
            "more than the range",
        ),
        (
            [
                Answer(206, b"x", {"Content-Range": "bytes 0-0/300000", "ETag": "a"}),
                Answer(200, bytes(300_000), {"ETag": "b"}, ranged=True),
            ],
            "has changed while it was downloaded",
        ),
    ],
    ids=["no size", "missing", "refused", "everything", "changed"],
)
def test_odd_answers_leave_no_file(
    work: Path, run: Run, server: StorageServer, caplog: pytest.LogCaptureFixture, answers: list[Answer], line: str
) -> None:
    (work / FILE).write_bytes(b"earlier")
    server.answer("GET", *answers)
    assert extract(run, server) == 1
    assert line in caplog.messages[-1]
    assert (work / FILE).read_bytes() == b"earlier"
    assert [path.name for path in work.iterdir()] == [FILE]


def test_a_current_archive_is_not_fetched(work: Path, run: Run, server: StorageServer) -> None:
    (work / FILE).write_bytes(archive())
    server.answer("GET", Answer(304))
    assert extract(run, server) == 0
    assert len(server.seen("GET")) == 1


def test_artifacts_come_from_the_object_storage_in_ranges(
    work: Path, run: Run, server: StorageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrunner.helper.ranges.Ranges.__init__.__defaults__", (65536, 4))
    with StorageServer() as storage:
        server.answer("GET", Answer(302, headers={"Location": f"{storage.url}/object?sig=1"}))
        storage.answer("GET", Answer(200, archive(), HEADERS, ranged=True))
        assert run("artifacts-downloader", "--url", server.url, "--token", "t", "--id", "7") == 0
        assert len(storage.seen("GET")) == 1 + -(-len(archive()) // 65536)
        assert all("job-token" not in request.headers for request in storage.seen("GET"))
    assert "range" not in server.seen("GET")[0].headers
    assert (work / "vendor/a").read_bytes() == CONTENT
