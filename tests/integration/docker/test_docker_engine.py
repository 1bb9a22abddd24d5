"""The typed engine against the real one, and against sockets that stop answering."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.engine.errors import ConflictError, EngineError, EngineUnreachableError, NotFoundError
from pyrunner.executors.docker.engine.hijack import Ended
from pyrunner.executors.docker.engine.records import EngineFacts
from pyrunner.testing.docker_images import TestImages

FACTS = EngineFacts(api=(1, 41), version="20", os="linux", arch="amd64")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with opened(EngineAddress()) as engine:
        yield engine


def test_engine_tells_of_itself(engine: Engine) -> None:
    assert engine.facts.os == "linux"
    assert engine.facts.api >= (1, 41)


def test_missing_objects_are_told_apart_from_other_errors(engine: Engine) -> None:
    with pytest.raises(NotFoundError):
        engine.image("pyrunner-test/none:1")
    with pytest.raises(NotFoundError):
        engine.container_state("pyrunner-test-none")
    with pytest.raises(EngineError) as caught:
        engine.create_volume("bad name!", {})
    assert caught.value.status == 400


def test_name_that_is_taken_is_a_conflict(engine: Engine, docker_images: TestImages) -> None:
    name = f"pyrunner-test-{os.getpid()}"
    container = engine.create_container(name, {"Image": docker_images.build})
    try:
        with pytest.raises(ConflictError):
            engine.create_container(name, {"Image": docker_images.build})
    finally:
        engine.remove_container(container)


def test_removing_what_is_gone_is_fine(engine: Engine) -> None:
    engine.remove_container("pyrunner-test-none")
    engine.remove_volume("pyrunner-test-none")
    engine.remove_network("pyrunner-test-none")


def test_address_where_nobody_listens_is_one_clear_line() -> None:
    address = EngineAddress(host="unix:///no/such/docker.sock")
    with pytest.raises(EngineUnreachableError) as caught, opened(address):
        pass
    assert str(caught.value) == (
        "cannot talk to the Docker engine at unix:///no/such/docker.sock: No such file or directory"
    )


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[tuple[Engine, socket.socket]]:
    """An engine that accepts connections; the test says what it answers."""
    path = str(tmp_path / "engine.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(10)
        engine = Engine(EngineAddress(host=f"unix://{path}"), FACTS)
        yield engine, listener
        engine.close()


def test_pull_that_hangs_ends_when_it_is_cancelled(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine
    token = CancelToken()
    held: list[socket.socket] = []

    def answer() -> None:
        connection, _ = listener.accept()
        held.append(connection)
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        line = b'{"status": "waiting"}\n'
        connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(JobCanceled), engine.pull("image:1", None, token) as progress:
        assert next(progress) == {"status": "waiting"}
        token.cancel(JobCanceled())
        next(progress)
    thread.join()
    held[0].close()


def test_answer_that_breaks_off_is_an_error_of_the_engine(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"Id": ')

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(EngineUnreachableError):
        engine.image("image:1")
    thread.join()


def test_pull_is_cancelled_before_the_engine_says_anything(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine
    token = CancelToken()
    held: list[socket.socket] = []

    def answer() -> None:
        connection, _ = listener.accept()
        held.append(connection)
        connection.recv(65536)
        token.cancel(JobCanceled())

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(JobCanceled), engine.pull("image:1", None, token):
        pytest.fail("there was no answer")
    thread.join()
    held[0].close()


def test_connection_that_the_engine_has_closed_is_not_used_again(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine

    def answer() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(2):
        assert engine.containers({}) == []
        thread.join(0.2)
    thread.join()


def test_bytes_behind_the_head_of_a_stream_are_not_lost(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine
    said = b"\x01\0\0\0\0\0\0\x05hello"

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + said)

    thread = threading.Thread(target=answer)
    thread.start()
    out = bytearray()
    stream = engine.start_exec("id")
    assert stream.pump(out.extend, token := CancelToken()) is Ended.CLOSED
    assert out == b"hello"
    token.close()
    stream.close()
    thread.join()


def test_redirects_are_not_followed(silent_engine: tuple[Engine, socket.socket]) -> None:
    engine, listener = silent_engine

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 307 Moved\r\nLocation: http://elsewhere.invalid/\r\nContent-Length: 0\r\n\r\n"
            )

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(EngineError) as caught:
        engine.image("image:1")
    assert caught.value.status == 307
    thread.join()
