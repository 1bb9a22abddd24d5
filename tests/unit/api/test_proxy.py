"""Requests through a real proxy: plain ones, tunnels, credentials, refusals."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrunner.api.errors import TransportError
from pyrunner.api.http import HttpClient
from pyrunner.api.tls import TlsFiles
from tests.unit.api.conftest import Server, reply
from tests.unit.api.test_tls import make_authority, make_certificate, server_context


class TunnelProxy:
    """Connects every CONNECT to one fixed port, whatever the name: only the proxy can resolve it."""

    def __init__(self, port: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.heads: list[str] = []
        self.refuse = False
        self._target = port
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heads.append(head.decode())
            if self.refuse:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", self._target)) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(server, client))
                back.start()
                _pump(client, server)
                back.join(10)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def test_a_plain_request_names_the_whole_url_to_the_proxy(server: Server) -> None:
    server.script(reply(200, b"by proxy"))
    proxy = server.url.replace("//", "//user:pa%20ss@")
    client = HttpClient(environment={"HTTP_PROXY": proxy})
    assert client.request("GET", "http://gitlab.invalid:8080/path?x=1").body == b"by proxy"
    request = server.requests[0]
    assert request.target == "http://gitlab.invalid:8080/path?x=1"
    assert request.headers["host"] == "gitlab.invalid:8080"
    assert request.headers["proxy-authorization"] == "Basic dXNlcjpwYSBzcw=="
    client.close()


@pytest.fixture
def tunnel(make_server: Callable[..., Server], tmp_path: Path) -> Iterator[tuple[TunnelProxy, HttpClient, Server]]:
    make_authority(tmp_path, "authority")
    make_certificate(tmp_path, "authority", "server", "DNS:gitlab.invalid")
    served = make_server(server_context(tmp_path))
    served.script(reply(200, b"tunnelled"))
    proxy = TunnelProxy(served.port)
    environment = {"https_proxy": f"http://user:secret@{proxy.address}"}
    client = HttpClient(TlsFiles(str(tmp_path / "authority.crt")), environment=environment)
    yield proxy, client, served
    client.close()
    proxy.stop()


def test_tls_goes_through_a_tunnel_and_its_connection_is_kept(
    tunnel: tuple[TunnelProxy, HttpClient, Server],
) -> None:
    proxy, client, served = tunnel
    for _ in range(3):
        assert client.request("GET", "https://gitlab.invalid/path", {"JOB-TOKEN": "t"}).body == b"tunnelled"
    assert len(proxy.heads) == 1
    assert proxy.heads[0].startswith("CONNECT gitlab.invalid:443 HTTP/1.1\r\nHost: gitlab.invalid:443\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in proxy.heads[0]
    assert "JOB-TOKEN" not in proxy.heads[0]
    assert "proxy-authorization" not in served.requests[0].headers


def test_a_proxy_that_refuses_is_named_without_its_password(
    tunnel: tuple[TunnelProxy, HttpClient, Server],
) -> None:
    proxy, client, _ = tunnel
    proxy.refuse = True
    with pytest.raises(TransportError, match=rf"the proxy {proxy.address} refused .* 407 Proxy Auth") as caught:
        client.request("GET", "https://gitlab.invalid/path")
    assert "secret" not in str(caught.value)


def test_a_proxy_that_is_down_is_named() -> None:
    client = HttpClient(environment={"HTTPS_PROXY": "http://127.0.0.1:1"})
    with pytest.raises(TransportError, match=r"cannot connect to 127\.0\.0\.1:1: connection refused"):
        client.request("GET", "https://gitlab.invalid/")
