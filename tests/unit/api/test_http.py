"""The HTTP client against real sockets, one hazard each."""

from __future__ import annotations

import gzip
import io
import itertools
import socket
import threading
import time

import pytest

from pyrunner.api.dial import Timeouts
from pyrunner.api.errors import ClientError, RequestCancelledError, TransportError
from pyrunner.api.http import HttpClient
from pyrunner.api.retry import RetryPolicy
from pyrunner.base.cancel import CancelToken
from tests.unit.api.conftest import Request, Server, hang_up, json_reply, raw, reply

QUICK = RetryPolicy(minimum=0.001, maximum=0.002)


@pytest.fixture
def client() -> HttpClient:
    return HttpClient(retry=QUICK)


def test_a_request_carries_the_headers_of_every_api_call(server: Server, client: HttpClient) -> None:
    server.script(reply(200, b"hello"))
    response = client.request("GET", f"{server.url}/a%20b?x=1", {"JOB-TOKEN": "t"})
    request = server.requests[0]
    assert (response.status, response.body, response.status_line) == (200, b"hello", "200 Some Reason")
    assert request.target == "/a%20b?x=1"
    assert request.headers["host"] == f"localhost:{server.port}"
    assert request.headers["user-agent"].startswith("gitlab-runner 19.4.0 (")
    assert request.headers["accept-encoding"] == "gzip"
    assert request.headers["job-token"] == "t"
    assert "content-length" not in request.headers
    sent_id = request.headers["x-request-id"]
    assert len(sent_id) == 32
    assert sent_id[12] == "4"
    assert response.correlation_id == sent_id


def test_the_correlation_id_of_the_answer_wins(server: Server, client: HttpClient) -> None:
    server.script(reply(200, X_Request_Id="from-server"))
    assert client.request("GET", server.url).correlation_id == "from-server"


def test_connections_are_kept_and_used_again(server: Server, client: HttpClient) -> None:
    server.script(reply(200, b"x"))
    for _ in range(5):
        client.request("POST", server.url, {}, b"body")
    assert server.connections == 1
    client.close()


def test_a_kept_connection_that_the_server_closed_is_noticed(server: Server, client: HttpClient) -> None:
    server.script(reply(200))
    client.request("POST", server.url, {}, b"1")
    server.drop_connections()
    assert client.request("POST", server.url, {}, b"2").status == 200
    assert [request.body for request in server.requests] == [b"1", b"2"]


def test_a_connection_that_dies_under_the_second_request_is_replaced_once(server: Server, client: HttpClient) -> None:
    server.script(reply(200), hang_up, reply(201))
    client.request("POST", server.url, {}, b"1")
    assert client.request("POST", server.url, {}, b"2").status == 201
    assert [(request.body, request.connection) for request in server.requests] == [
        (b"1", 0),
        (b"2", 0),
        (b"2", 1),
    ]


def test_no_answer_on_a_fresh_connection_is_an_error_and_not_tried_again(server: Server, client: HttpClient) -> None:
    server.script(hang_up)
    with pytest.raises(TransportError, match=r"^POST http://localhost:\d+/x: "):
        client.request("POST", f"{server.url}/x?secret=1", {}, b"")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"x" * 9999, mtime=0)[:20],
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nfake",
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"garbage\r\n\r\n",
        b"\r\n",
    ],
)
@pytest.mark.parametrize("to_file", [False, True])
def test_half_an_answer_is_an_error_and_leaves_the_file_empty(
    server: Server, client: HttpClient, answer: bytes, to_file: bool
) -> None:
    server.script(raw(answer))
    sink = io.BytesIO() if to_file else None
    with pytest.raises(TransportError):
        client.request("GET", server.url, sink=sink)
    assert sink is None or sink.getvalue() == b""


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 512, 599])
def test_retriable_statuses_get_five_attempts_and_then_stand(server: Server, client: HttpClient, status: int) -> None:
    server.script(reply(status))
    response = client.request("POST", server.url, {}, b"again")
    assert (response.status, response.attempts, response.retried) == (status, 5, True)
    assert [request.body for request in server.requests] == [b"again"] * 5
    assert len({request.headers["x-request-id"] for request in server.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 416, 501, 505, 511])
def test_other_statuses_get_one_attempt(server: Server, client: HttpClient, status: int) -> None:
    server.script(reply(status))
    response = client.request("GET", server.url)
    assert (response.status, response.attempts, response.retried) == (status, 1, False)


def test_an_answer_after_a_retriable_one_is_flagged(server: Server, client: HttpClient) -> None:
    server.script(reply(500), reply(204))
    response = client.request("GET", server.url)
    assert (response.status, response.attempts, response.retried) == (204, 2, True)


def test_cancel_ends_a_long_poll_at_once(server: Server, client: HttpClient) -> None:
    server.script(server.silence)
    token = CancelToken()
    cause = RuntimeError("stop")

    def cancel_when_it_waits() -> None:
        server.arrived.wait(5)
        token.cancel(cause)

    helper = threading.Thread(target=cancel_when_it_waits)
    helper.start()
    begin = time.monotonic()
    with pytest.raises(RequestCancelledError) as caught:
        client.request("GET", server.url, cancel=token)
    helper.join()
    assert time.monotonic() - begin < 3
    assert caught.value.__cause__ is cause


def test_a_cancelled_token_sends_nothing(server: Server, client: HttpClient) -> None:
    token = CancelToken()
    token.cancel(RuntimeError("stop"))
    with pytest.raises(RequestCancelledError):
        client.request("GET", server.url, cancel=token)
    assert server.connections == 0


def test_cancel_ends_the_pause_between_attempts(server: Server) -> None:
    server.script(reply(503, Retry_After="600"))
    token = CancelToken().child(timeout=0.05)
    with pytest.raises(RequestCancelledError):
        HttpClient().request("GET", server.url, cancel=token)


def test_a_used_token_keeps_no_reference_to_connections(server: Server, client: HttpClient) -> None:
    server.script(reply(200))
    token = CancelToken()
    client.request("GET", server.url, cancel=token)
    token.cancel(RuntimeError("later"))
    assert client.request("GET", server.url).status == 200
    assert server.connections == 1


def test_a_slow_server_runs_into_the_header_timeout(server: Server) -> None:
    server.script(server.silence)
    with pytest.raises(TransportError, match="timed out"):
        HttpClient(timeouts=Timeouts(header=0.05)).request("GET", server.url)


def test_an_answer_that_never_ends_runs_into_the_total_timeout(server: Server) -> None:
    def drip(_request: Request, sock) -> bool:  # type: ignore[no-untyped-def]
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
        return server.silence(_request, sock)

    server.script(drip)
    with pytest.raises(TransportError, match="timed out"):
        HttpClient(timeouts=Timeouts(total=0.1)).request("GET", server.url)


def test_an_upload_that_never_ends_runs_into_the_total_timeout(server: Server) -> None:
    server.script(reply(201))
    with pytest.raises(TransportError, match="timed out"):
        HttpClient(timeouts=Timeouts(total=0.05)).request("POST", server.url, {}, lambda: itertools.repeat(b"x" * 1000))


def test_nobody_listens(client: HttpClient) -> None:
    with pytest.raises(TransportError, match=r"cannot connect to 127\.0\.0\.1:1: connection refused"):
        client.request("GET", "http://127.0.0.1:1/")


@pytest.mark.parametrize("url", ["ftp://host/", "host/path", "http://", "http://a b/", "http://[::1", "https://h:x/"])
def test_an_unusable_url_is_a_client_error(client: HttpClient, url: str) -> None:
    with pytest.raises(ClientError):
        client.request("GET", url)


def test_a_url_with_credentials_authorizes_and_never_shows_them(server: Server, client: HttpClient) -> None:
    server.script(hang_up)
    url = server.url.replace("//", "//user:s3cret@")
    with pytest.raises(TransportError) as caught:
        client.request("GET", url)
    assert "s3cret" not in str(caught.value)
    assert server.requests[0].headers["authorization"] == "Basic dXNlcjpzM2NyZXQ="


def test_a_header_with_a_line_break_is_refused(server: Server, client: HttpClient) -> None:
    server.script(reply(200))
    with pytest.raises(TransportError, match="line break"):
        client.request("GET", server.url, {"JOB-TOKEN": "a\r\nX: y"})
    assert server.requests == []


@pytest.mark.parametrize("status", [307, 308])
def test_method_and_body_follow_a_temporary_redirect(server: Server, client: HttpClient, status: int) -> None:
    server.script(reply(status, Location="/there"), reply(201))
    response = client.request("POST", server.url, {"JOB-TOKEN": "t"}, b"body")
    second = server.requests[1]
    assert (response.status, response.url) == (201, f"{server.url}/there")
    assert (second.method, second.target, second.body) == ("POST", "/there", b"body")
    assert second.headers["job-token"] == "t"


@pytest.mark.parametrize("status", [301, 302, 303])
def test_other_redirects_turn_into_get(server: Server, client: HttpClient, status: int) -> None:
    server.script(reply(status, Location="/there"), reply(200))
    client.request("POST", server.url, {"Content-Type": "application/json"}, b"{}")
    second = server.requests[1]
    assert (second.method, second.body) == ("GET", b"")
    assert "content-type" not in second.headers


def test_tokens_do_not_follow_to_another_server(server: Server, client: HttpClient, make_server) -> None:  # type: ignore[no-untyped-def]
    other = make_server()
    other.script(reply(200))
    server.script(reply(307, Location=f"{other.url}/there"))
    client.request("PUT", server.url, {"JOB-TOKEN": "a", "RUNNER-TOKEN": "b", "PRIVATE-TOKEN": "c"}, b"x")
    assert not {"job-token", "runner-token", "private-token"} & set(other.requests[0].headers)


def test_redirects_end(server: Server, client: HttpClient) -> None:
    server.script(reply(302, Location="/again"))
    with pytest.raises(TransportError, match="after 10 redirects"):
        client.request("GET", server.url)
    assert len(server.requests) == 11


def test_gzip_is_read(server: Server, client: HttpClient) -> None:
    text = b"0123456789" * 300_000
    server.script(reply(200, gzip.compress(text), Content_Encoding="gzip"))
    assert client.request("GET", server.url).body == text


def test_a_huge_answer_is_refused(server: Server, client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrunner.api.exchange.BODY_LIMIT", 1000)
    server.script(reply(200, gzip.compress(b"0" * 5_000_000), Content_Encoding="gzip"))
    with pytest.raises(TransportError, match="larger than 1000 bytes"):
        client.request("GET", server.url)


def test_a_download_goes_to_the_file_and_only_with_success(server: Server, client: HttpClient) -> None:
    content = bytes(range(256)) * 20_000
    server.script(reply(200, content), json_reply(404, '{"message":"404 Not found"}'))
    sink = io.BytesIO()
    assert client.request("GET", server.url, sink=sink).body == b""
    assert sink.getvalue() == content
    assert client.request("GET", server.url, sink=sink).body.startswith(b'{"message"')
    assert sink.getvalue() == content


def test_a_chunked_upload_is_made_anew_for_each_attempt(server: Server, client: HttpClient) -> None:
    server.script(reply(500), reply(201))
    made = []

    def pieces() -> list[bytes | memoryview]:
        made.append(1)
        return [b"one", b"", memoryview(b"two" * 100_000)]

    assert client.request("POST", server.url, {}, pieces).status == 201
    assert len(made) == 2
    assert [request.body for request in server.requests] == [b"one" + b"two" * 100_000] * 2
    assert server.requests[0].headers["transfer-encoding"] == "chunked"


def test_an_early_refusal_of_an_upload_is_the_answer(client: HttpClient) -> None:
    sent = []

    def pieces():  # type: ignore[no-untyped-def]
        for _ in range(10_000):
            sent.append(1)
            yield b"x" * 65536

    def refuse_early() -> None:
        sock, _ = early.accept()
        with sock:
            while b"\r\n\r\n" not in sock.recv(65536):
                pass
            sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as early:
        thread = threading.Thread(target=refuse_early)
        thread.start()
        response = client.request("POST", f"http://127.0.0.1:{early.getsockname()[1]}/", {}, pieces)
        thread.join()
    assert response.status == 413
    assert len(sent) < 10_000


def test_idle_connections_are_dropped_when_the_pool_is_old(server: Server) -> None:
    server.script(reply(200))
    client = HttpClient(connection_max_age=0.01)
    client.request("GET", server.url)
    deadline = time.monotonic() + 0.02
    while time.monotonic() < deadline:
        threading.Event().wait(0.005)
    client.request("GET", server.url)
    assert server.connections == 2


def test_many_threads_share_a_client(server: Server, client: HttpClient) -> None:
    server.script(reply(200, b"ok"))
    results = []

    def work() -> None:
        results.extend(client.request("POST", server.url, {}, b"x" * 20_000).body for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [b"ok"] * 160
    assert server.connections <= 8
    client.close()
