"""Every outcome of the runner API, its log line and its level (facts/runner-api.md 3, 4 and 6)."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyrunner.api.client import Endpoint, RunnerClient
from pyrunner.api.info import client_info
from pyrunner.api.outcomes import CLIENT_ERROR, NO_ANSWER, ApiRequest, PatchState, UpdateState, Verification
from pyrunner.api.retry import RetryPolicy
from pyrunner.api.wire import JobRequest, JobUpdate, RegisterRequest, TraceOutput
from pyrunner.base.cancel import CancelToken
from tests.unit.api.conftest import Server, hang_up, json_reply, raw, reply

QUICK = RetryPolicy(minimum=0.001, maximum=0.002)
JOB = '{"id": 101, "token": "glcbt-64_abc", "git_info": {"repo_url": "https://u:p@host/a.git"}, "image": null}'


@pytest.fixture(autouse=True)
def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.fixture
def client(server: Server) -> Iterator[RunnerClient]:
    made = RunnerClient(Endpoint(url=f"{server.url}/ci/", token="glrt-t1_abcdefghijkl", name="mine"), retry=QUICK)
    yield made
    made.close()


def request_job(client: RunnerClient, cancel: CancelToken | None = None) -> Any:
    return client.request_job(JobRequest(info=client_info(), system_id="s_1"), cancel)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if not record.getMessage().startswith(("Waiting before", "Updating job"))
    ]


def test_a_job_is_received(server: Server, client: RunnerClient, caplog: pytest.LogCaptureFixture) -> None:
    server.script(json_reply(201, JOB, X_Request_Id="correlated"))
    answer = request_job(client)
    assert answer.job.id == 101
    assert (answer.healthy, answer.status, answer.correlation_id) == (True, 201, "correlated")
    assert (answer.tls_chain, answer.invalid, answer.retried) == ("", "", False)
    assert lines(caplog) == [("INFO", "Checking for jobs... received")]
    fields = caplog.records[0].__dict__
    assert (fields["job"], fields["repo_url"], fields["runner"]) == (101, "https://host/a.git", "abcdefghi")
    assert (fields["runner_name"], fields["correlation_id"]) == ("mine", "correlated")
    request = server.requests[0]
    assert (request.method, request.target) == ("POST", "/api/v4/jobs/request")
    assert request.headers["runner-token"] == "glrt-t1_abcdefghijkl"
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"
    body = json.loads(request.body)
    assert (body["token"], body["system_id"]) == ("glrt-t1_abcdefghijkl", "s_1")
    assert "last_update" not in body
    assert body["info"]["features"]["two_phase_job_commit"] is True
    assert body["info"]["features"]["image"] is False


def test_last_update_is_sent_back_and_kept(server: Server, client: RunnerClient) -> None:
    server.script(
        reply(204, X_GitLab_Last_Update="one"), reply(204), reply(204, X_GitLab_Last_Update="two"), reply(204)
    )
    for _ in range(4):
        request_job(client)
    sent = [json.loads(request.body).get("last_update") for request in server.requests]
    assert sent == [None, "one", "one", "two"]


@pytest.mark.parametrize(
    ("status", "level", "text", "healthy", "attempts"),
    [
        (204, "DEBUG", "Checking for jobs...no content", True, 1),
        (403, "ERROR", "Checking for jobs... forbidden", False, 1),
        (503, "WARNING", "Checking for jobs... GitLab instance currently unavailable", True, 5),
        (200, "WARNING", "Checking for jobs... failed", True, 1),
        (401, "WARNING", "Checking for jobs... failed", True, 1),
        (404, "WARNING", "Checking for jobs... failed", True, 1),
        (409, "WARNING", "Checking for jobs... failed", True, 1),
        (429, "WARNING", "Checking for jobs... failed", True, 5),
        (500, "WARNING", "Checking for jobs... failed", True, 5),
        (502, "WARNING", "Checking for jobs... failed", True, 5),
    ],
)
def test_no_job(  # noqa: PLR0913
    server: Server,
    client: RunnerClient,
    caplog: pytest.LogCaptureFixture,
    status: int,
    level: str,
    text: str,
    healthy: bool,
    attempts: int,
) -> None:
    server.script(reply(status))
    answer = request_job(client)
    assert (answer.job, answer.healthy, answer.status, answer.retried) == (None, healthy, status, attempts > 1)
    assert lines(caplog) == [(level, text)]
    assert len(server.requests) == attempts


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_an_unreachable_server_does_not_make_the_runner_unhealthy(url: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = request_job(RunnerClient(Endpoint(url=url, token="x")))
    assert (answer.job, answer.healthy, answer.status) == (None, True, NO_ANSWER)
    assert lines(caplog) == [("WARNING", "Checking for jobs... failed")]
    assert caplog.records[0].__dict__["status"] == (
        f"POST {url}/api/v4/jobs/request: cannot connect to 127.0.0.1:1: connection refused"
    )


def test_a_broken_url_makes_the_runner_unhealthy(caplog: pytest.LogCaptureFixture) -> None:
    answer = request_job(RunnerClient(Endpoint(url="gitlab.example.com", token="x")))
    assert (answer.job, answer.healthy, answer.status) == (None, False, CLIENT_ERROR)
    assert lines(caplog) == [("ERROR", "Checking for jobs... client error")]


@pytest.mark.parametrize(
    ("body", "salvaged"),
    [
        ('{"id": 101, "token": "t", "git_info": {"depth": "x"}}', True),
        ('{"id": 101, "token": "t", "variables": {"a": 1}}', True),
        ('{"id": "101", "token": "t"}', False),
        ('{"id": 101}', False),
        ('{"token": "t"}', False),
        ("{}", False),
        ("[]", False),
        ("null", False),
        ("{", False),
        ("", False),
        ("[" * 100_000, False),
        ('{"id": 99999999999999999999999999, "token": "t"}', False),
        ('{"id": 101, "token": "t", "steps": [' + "[" * 5000 + "]" * 5000 + "]}", True),
    ],
)
def test_a_malformed_payload_is_told_and_its_job_can_be_failed(
    server: Server, client: RunnerClient, caplog: pytest.LogCaptureFixture, body: str, salvaged: bool
) -> None:
    server.script(json_reply(201, body))
    answer = request_job(client)
    assert answer.invalid
    assert "\n" not in answer.invalid
    assert answer.healthy
    if salvaged and answer.job is not None:
        assert (answer.job.id, answer.job.token) == (101, "t")
    else:
        assert answer.job is None
    assert lines(caplog) == [("WARNING", "Checking for jobs... failed")]


def test_a_payload_that_is_not_json_is_no_job(server: Server, client: RunnerClient) -> None:
    server.script(reply(201, JOB.encode(), Content_Type="text/html"))
    answer = request_job(client)
    assert answer.job is None
    assert "text/html" in answer.invalid


@pytest.mark.parametrize(
    "answer", [hang_up, raw(b"HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{"), raw(b"HTTP/1.1 20")]
)
def test_a_cut_answer_is_no_job(server: Server, client: RunnerClient, answer: Any) -> None:
    server.script(answer)
    result = request_job(client)
    assert (result.job, result.healthy, result.status) == (None, True, NO_ANSWER)


def test_a_cancelled_poll_ends_at_once_and_silently(
    server: Server, client: RunnerClient, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(server.silence)
    token = CancelToken()

    def cancel() -> None:
        server.arrived.wait(5)
        token.cancel(RuntimeError("stop"))

    thread = threading.Thread(target=cancel)
    thread.start()
    answer = request_job(client, token)
    thread.join()
    assert (answer.job, answer.cancelled, answer.healthy) == (None, True, True)
    assert lines(caplog) == []


UPDATES = [
    (200, {}, UpdateState.SUCCEEDED, "INFO", "ok"),
    (202, {}, UpdateState.ACCEPTED, "INFO", "accepted, but not yet completed"),
    (412, {}, UpdateState.TRACE_VALIDATION_FAILED, "INFO", "trace validation failed"),
    (403, {}, UpdateState.ABORT, "WARNING", " job failed"),
    (404, {}, UpdateState.NOT_FOUND, "WARNING", " not found"),
    (409, {}, UpdateState.FAILED, "WARNING", " failed"),
    (500, {}, UpdateState.FAILED, "WARNING", " failed"),
    (200, {"Job_Status": "canceled"}, UpdateState.ABORT, "WARNING", " job failed"),
    (202, {"Job_Status": "failed"}, UpdateState.ABORT, "WARNING", " job failed"),
    (200, {"Job_Status": "canceling"}, UpdateState.SUCCEEDED, "INFO", "ok"),
    (200, {"Job_Status": "running"}, UpdateState.SUCCEEDED, "INFO", "ok"),
]


@pytest.mark.parametrize(("status", "headers", "state", "level", "text"), UPDATES)
def test_a_job_update(  # noqa: PLR0913
    server: Server,
    client: RunnerClient,
    caplog: pytest.LogCaptureFixture,
    status: int,
    headers: dict[str, str],
    state: UpdateState,
    level: str,
    text: str,
) -> None:
    server.script(reply(status, b"200", **headers))
    update = JobUpdate(info=client_info(), token="job-token", state="running", output=TraceOutput())
    answer = client.update_job(7, update)
    assert (answer.state, answer.status) == (state, status)
    assert answer.cancel_requested == (headers.get("Job_Status") == "canceling")
    assert lines(caplog) == [(level, f"Submitting job to coordinator...{text}")]
    assert caplog.records[0].getMessage() == "Updating job..."
    assert caplog.records[0].__dict__["job"] == 7
    request = server.requests[0]
    assert (request.method, request.target) == ("PUT", "/api/v4/jobs/7")
    assert request.headers["job-token"] == "job-token"
    body = json.loads(request.body)
    assert (body["state"], body["token"], body["output"]) == ("running", "job-token", {})
    assert "exit_code" not in body


def test_an_update_without_a_server(caplog: pytest.LogCaptureFixture) -> None:
    update = JobUpdate(token="t", state="running")
    gone = RunnerClient(Endpoint(url="http://127.0.0.1:1", token="x")).update_job(7, update)
    assert gone.state is UpdateState.FAILED
    broken = RunnerClient(Endpoint(url="nonsense", token="x")).update_job(7, update)
    assert broken.state is UpdateState.ABORT
    assert lines(caplog) == [
        ("WARNING", "Submitting job to coordinator... failed"),
        ("ERROR", "Submitting job to coordinator... client error"),
    ]


@pytest.mark.parametrize(
    ("value", "interval"), [("", None), ("60", 60.0), ("0", None), ("-3", None), ("soon", None), ("1.5", None)]
)
def test_the_update_interval(server: Server, client: RunnerClient, value: str, interval: float | None) -> None:
    server.script(reply(200, **({"X_GitLab_Trace_Update_Interval": value} if value else {})))
    assert client.update_job(7, JobUpdate(token="t", state="running")).interval == interval


PATCHES = [
    (202, {"Range": "0-9"}, PatchState.SUCCEEDED, 15, "INFO", "ok"),
    (202, {"Job_Status": "canceled", "Range": "0-15"}, PatchState.ABORT, 10, "WARNING", " job failed"),
    (202, {"Job_Status": "canceling"}, PatchState.SUCCEEDED, 15, "INFO", "ok"),
    (403, {}, PatchState.ABORT, 10, "WARNING", " job failed"),
    (404, {}, PatchState.NOT_FOUND, 10, "WARNING", " not-found"),
    (416, {"Range": "0-2018"}, PatchState.RANGE_MISMATCH, 2018, "WARNING", " range mismatch"),
    (416, {}, PatchState.RANGE_MISMATCH, 0, "WARNING", " range mismatch"),
    (416, {"Range": "nonsense"}, PatchState.RANGE_MISMATCH, 0, "WARNING", " range mismatch"),
    (200, {}, PatchState.FAILED, 10, "WARNING", " failed"),
    (400, {}, PatchState.FAILED, 10, "WARNING", " failed"),
    (502, {}, PatchState.FAILED, 10, "WARNING", " failed"),
]


@pytest.mark.parametrize(("status", "headers", "state", "offset", "level", "text"), PATCHES)
def test_a_trace_patch(  # noqa: PLR0913
    server: Server,
    client: RunnerClient,
    caplog: pytest.LogCaptureFixture,
    status: int,
    headers: dict[str, str],
    state: PatchState,
    offset: int,
    level: str,
    text: str,
) -> None:
    server.script(reply(status, **headers))
    answer = client.patch_trace(7, "job-token", b"hello", 10, debug_trace=True)
    assert (answer.state, answer.offset, answer.status) == (state, offset, status)
    assert answer.cancel_requested == (headers.get("Job_Status") == "canceling")
    assert lines(caplog) == [(level, f"Appending trace to coordinator...{text}")]
    request = server.requests[0]
    assert (request.method, request.target) == ("PATCH", "/api/v4/jobs/7/trace?debug_trace=true")
    assert request.headers["content-range"] == "10-14"
    assert request.headers["content-type"] == "text/plain"
    assert "accept" not in request.headers
    assert request.body == b"hello"
    fields = caplog.records[-1].__dict__
    assert (fields["sent-log"], fields["job-log"], fields["code"]) == ("10-14", headers.get("Range", ""), status)


def test_a_large_patch_arrives_whole(server: Server, client: RunnerClient) -> None:
    content = bytes(range(256)) * 4096
    server.script(reply(202))
    assert client.patch_trace(7, "t", memoryview(content), 0).offset == len(content)
    assert server.requests[0].body == content


def test_an_empty_patch_is_not_sent(server: Server, client: RunnerClient, caplog: pytest.LogCaptureFixture) -> None:
    answer = client.patch_trace(7, "t", b"", 33)
    assert (answer.state, answer.offset) == (PatchState.SUCCEEDED, 33)
    assert lines(caplog) == [("INFO", "Appending trace to coordinator...skipped due to empty patch")]
    assert server.requests == []


def test_a_patch_without_a_server(caplog: pytest.LogCaptureFixture) -> None:
    answer = RunnerClient(Endpoint(url="http://127.0.0.1:1", token="x")).patch_trace(7, "t", b"x", 5)
    assert (answer.state, answer.offset) == (PatchState.FAILED, 5)
    assert lines(caplog)[0][1].startswith("Appending trace to coordinator... error PATCH http://127.0.0.1:1/")


def test_registering(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.script(json_reply(201, '{"id": 5, "token": "new", "token_expires_at": null}'))
    client = RunnerClient(Endpoint(url=server.url, token="registration"))
    answer = client.register(RegisterRequest(info=client_info(), tag_list="a,b", run_untagged=True))
    assert answer.credentials is not None
    assert (answer.credentials.id, answer.credentials.token) == (5, "new")
    assert "new" not in repr(answer)
    assert lines(caplog) == [("INFO", "Registering runner... succeeded")]
    body = json.loads(server.requests[0].body)
    assert body.items() >= {
        "token": "registration", "tag_list": "a,b", "run_untagged": True, "locked": True, "paused": False,
    }.items()  # fmt: skip
    assert "description" not in body
    assert server.requests[0].headers["runner-token"] == "registration"


@pytest.mark.parametrize(
    ("status", "text"),
    [(403, "forbidden (check registration token)"), (401, "failed"), (404, "failed"), (500, "failed")],
)
def test_registering_refused(server: Server, caplog: pytest.LogCaptureFixture, status: int, text: str) -> None:
    server.script(json_reply(status, '{"message": {"tags": ["bad", "worse"], "x": ["y"]}}'))
    client = RunnerClient(Endpoint(url=server.url, token="registration"), retry=QUICK)
    answer = client.register(RegisterRequest(info=client_info()))
    assert answer.credentials is None
    expected = f"POST {server.url}/api/v4/runners: {status} Some Reason (tags: bad; worse, x: y)"
    assert answer.failure == expected
    assert lines(caplog) == [("ERROR", f"Registering runner... {text}")]


@pytest.mark.parametrize(
    ("token", "status", "level", "text", "verification"),
    [
        ("glrt-x", 200, "INFO", "is valid", Verification.VALID),
        ("legacy", 200, "INFO", "is alive", Verification.VALID),
        ("glrt-x", 403, "INFO", "is not valid", Verification.REMOVED),
        ("legacy", 403, "ERROR", "is removed", Verification.REMOVED),
        ("legacy", 404, "ERROR", "failed", Verification.UNKNOWN),
        ("glrt-x", 502, "ERROR", "failed", Verification.UNKNOWN),
    ],
)
def test_verifying(  # noqa: PLR0913
    server: Server,
    caplog: pytest.LogCaptureFixture,
    token: str,
    status: int,
    level: str,
    text: str,
    verification: Verification,
) -> None:
    server.script(json_reply(status, '{"id": 9, "token": "x"}'))
    answer = RunnerClient(Endpoint(url=server.url, token=token), retry=QUICK).verify(client_info(), "s_1")
    assert answer.verification is verification
    assert (answer.credentials is not None) == (status == 200)
    assert lines(caplog) == [(level, f"Verifying runner... {text}")]
    body = json.loads(server.requests[0].body)
    assert (body["token"], body["system_id"]) == (token, "s_1")


def test_verifying_at_a_server_that_answers_without_json(server: Server) -> None:
    server.script(reply(200, b"200", Content_Type="text/plain"))
    answer = RunnerClient(Endpoint(url=server.url, token="x")).verify()
    assert (answer.verification, answer.credentials) == (Verification.VALID, None)


def test_unregistering(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.script(reply(204), reply(204), reply(403), reply(404))
    client = RunnerClient(Endpoint(url=server.url, token="glrt-x"))
    assert client.unregister().done
    assert client.unregister_manager("s_1").done
    assert not client.unregister().done
    assert not client.unregister_manager("s_1").done
    assert lines(caplog) == [
        ("INFO", "Unregistering runner from GitLab succeeded"),
        ("INFO", "Unregistering runner manager from GitLab succeeded"),
        ("ERROR", "Unregistering runner from GitLab forbidden"),
        ("ERROR", "Unregistering runner manager from GitLab failed"),
    ]
    assert [(request.method, request.target, json.loads(request.body)) for request in server.requests[:2]] == [
        ("DELETE", "/api/v4/runners", {"token": "glrt-x"}),
        ("DELETE", "/api/v4/runners/managers", {"token": "glrt-x", "system_id": "s_1"}),
    ]


def test_resetting_a_token(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.script(
        json_reply(201, '{"token": "new", "token_expires_at": "2030-01-01T00:00:00.000Z"}'),
        json_reply(201, '{"token": "newer"}'),
        reply(403),
        reply(500),
    )
    client = RunnerClient(Endpoint(url=server.url, token="old"), retry=QUICK)
    first = client.reset_token()
    assert first.credentials is not None
    assert first.credentials.token_expires_at == "2030-01-01T00:00:00.000Z"
    assert client.reset_token_with_pat(12, "glpat-x").credentials is not None
    assert client.reset_token().credentials is None
    assert client.reset_token().credentials is None
    plain, pat = server.requests[:2]
    assert (plain.target, json.loads(plain.body)) == (
        "/api/v4/runners/reset_authentication_token", {"token": "old"},
    )  # fmt: skip
    assert "runner-token" not in plain.headers
    assert (pat.target, pat.body) == ("/api/v4/runners/12/reset_authentication_token", b"null")
    assert pat.headers["private-token"] == "glpat-x"
    assert [text for _, text in lines(caplog)] == [
        "Resetting runner authentication token... succeeded",
        "Resetting runner authentication token... succeeded",
        "Resetting runner authentication token... failed (check used token)",
        "Resetting runner authentication token... failed",
    ]


def test_the_observer_sees_answered_requests_with_their_attempts(server: Server) -> None:
    seen: list[ApiRequest] = []
    server.script(reply(500), reply(204))
    client = RunnerClient(Endpoint(url=server.url, token="x"), retry=QUICK, observer=seen.append)
    request_job(client)
    assert [(one.endpoint, one.method, one.status, one.attempts) for one in seen] == [("request_job", "post", 204, 2)]


def test_tokens_are_not_shown() -> None:
    assert "secret" not in repr(Endpoint(url="http://host", token="secret"))
