"""Artifacts up and down, against real sockets (facts/runner-api.md section 8)."""

from __future__ import annotations

import email.parser
import email.policy
import io
from collections.abc import Callable

import pytest

from pyrunner.api import artifacts
from pyrunner.api.artifacts import download_artifacts, upload_artifacts
from pyrunner.api.http import HttpClient
from pyrunner.api.retry import RetryPolicy
from tests.unit.api.conftest import Server, hang_up, json_reply, reply


@pytest.fixture
def http() -> HttpClient:
    return HttpClient(retry=RetryPolicy(minimum=0.001, maximum=0.002))


def upload(http: HttpClient, url: str, name: str = "artifacts.zip") -> artifacts.TransferAnswer:
    return upload_artifacts(
        http,
        url,
        101,
        "job-token",
        file_name=name,
        pieces=lambda: [b"PK", memoryview(b"\x00" * 300_000)],
        options={"expire_in": "1 week", "artifact_format": "zip", "artifact_type": ""},
    )


def test_an_upload_is_one_streamed_form_part(server: Server, http: HttpClient) -> None:
    server.script(reply(201, reason="Created"))
    answer = upload(http, f"{server.url}/ci", 'na"me ü.zip')
    assert (answer.state, answer.status_line) == (artifacts.DONE, "201 Created")
    request = server.requests[0]
    assert (request.method, request.target) == (
        "POST",
        "/api/v4/jobs/101/artifacts?artifact_format=zip&expire_in=1+week",
    )
    assert request.headers["job-token"] == "job-token"
    assert request.headers["transfer-encoding"] == "chunked"
    header = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    (part,) = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(header + request.body).iter_parts()
    assert part.get_param("name", header="content-disposition") == "file"
    assert 'filename="na\\"me ü.zip"'.encode() in request.body
    assert part.get_content_type() == "application/octet-stream"
    assert part.get_payload(decode=True) == b"PK" + b"\x00" * 300_000


@pytest.mark.parametrize(
    ("status", "state", "attempts"),
    [
        (403, artifacts.FORBIDDEN, 1),
        (413, artifacts.TOO_LARGE, 1),
        (503, artifacts.UNAVAILABLE, 5),
        (500, artifacts.FAILED, 5),
        (400, artifacts.FAILED, 1),
        (200, artifacts.FAILED, 1),
        (307, artifacts.FAILED, 1),
    ],
)
def test_refused_uploads(server: Server, http: HttpClient, status: int, state: str, attempts: int) -> None:
    server.script(json_reply(status, '{"message": "because"}'))
    answer = upload(http, server.url)
    assert (answer.state, answer.status) == (state, status)
    assert len(server.requests) == attempts
    if status >= 300:
        assert answer.text.endswith(f": {status} Some Reason (because)")


def test_an_upload_that_is_sent_elsewhere_names_the_new_server(server: Server, http: HttpClient) -> None:
    server.script(reply(307, Location="https://other.example:8443/api/v4/jobs/101/artifacts?x=1"))
    answer = upload(http, server.url)
    assert (answer.state, answer.moved_to) == (artifacts.MOVED, "https://other.example:8443")


def test_an_upload_without_an_answer(server: Server, http: HttpClient) -> None:
    server.script(hang_up)
    answer = upload(http, server.url)
    assert (answer.state, answer.status, answer.status_line) == (artifacts.FAILED, 0, "")


def test_a_download(server: Server, http: HttpClient) -> None:
    server.script(reply(200, b"archive"))
    sink = io.BytesIO()
    answer = download_artifacts(http, server.url, 7, "dependency-token", sink)
    assert (answer.state, answer.direct_host, sink.getvalue()) == (artifacts.DONE, "", b"archive")
    assert server.requests[0].target == "/api/v4/jobs/7/artifacts"
    assert server.requests[0].headers["job-token"] == "dependency-token"


def test_a_direct_download_does_not_show_the_token_to_the_storage(
    server: Server, http: HttpClient, make_server: Callable[[], Server]
) -> None:
    storage = make_server()
    storage.script(reply(200, b"archive"))
    server.script(reply(302, Location=f"{storage.url}/bucket?signature=s3cret"))
    sink = io.BytesIO()
    answer = download_artifacts(http, server.url, 7, "t", sink, direct_download=True)
    assert (answer.state, answer.direct_host, sink.getvalue()) == (artifacts.DONE, "localhost", b"archive")
    assert server.requests[0].target == "/api/v4/jobs/7/artifacts?direct_download=true"
    assert storage.requests[0].target == "/bucket?signature=s3cret"
    assert "job-token" not in storage.requests[0].headers
    assert "s3cret" not in answer.text


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (401, artifacts.UNAUTHORIZED),
        (403, artifacts.FORBIDDEN),
        (404, artifacts.NOT_FOUND),
        (400, artifacts.FAILED),
        (500, artifacts.FAILED),
        (206, artifacts.FAILED),
    ],
)
def test_refused_downloads(server: Server, http: HttpClient, status: int, state: str) -> None:
    server.script(reply(status, b"x"))
    assert download_artifacts(http, server.url, 7, "t", io.BytesIO()).state == state


def test_the_error_of_an_object_storage_is_told(server: Server, http: HttpClient) -> None:
    body = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
    server.script(reply(403, body, Content_Type="application/xml"))
    answer = download_artifacts(http, server.url, 7, "t", io.BytesIO())
    assert answer.text.endswith("/artifacts: 403 Some Reason (AccessDenied: Request has expired)")


def test_a_cut_download_leaves_nothing(server: Server, http: HttpClient) -> None:
    from tests.unit.api.conftest import raw

    server.script(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"))
    sink = io.BytesIO(b"")
    answer = download_artifacts(http, server.url, 7, "t", sink)
    assert (answer.state, sink.getvalue()) == (artifacts.FAILED, b"")
