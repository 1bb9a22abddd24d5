"""The stream of a container: frames in any pieces, scripts of any size, cancel at any time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.hijack import Demultiplexer, Ended, Hijacked


def frame(payload: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50))), st.lists(st.integers(1, 30)))
def test_payload_is_the_same_however_the_stream_is_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(frame(payload, stream) for stream, payload in frames)
    demultiplexer, out = Demultiplexer(), b""
    for size in cuts:
        out += demultiplexer.feed(data[:size])
        data = data[size:]
    out += demultiplexer.feed(data)
    assert out == b"".join(payload for _, payload in frames)


@given(st.binary())
def test_any_bytes_are_survived(data: bytes) -> None:
    demultiplexer = Demultiplexer()
    assert len(demultiplexer.feed(data)) <= len(data)


@pytest.fixture
def pair() -> Iterator[tuple[Hijacked, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    stream = Hijacked(ours, b"", ours.close)
    yield stream, theirs
    stream.close()
    theirs.close()


def test_bytes_that_came_with_the_head_come_first() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        stream = Hijacked(ours, frame(b"early ") + frame(b"split")[:10], ours.close)
        theirs.sendall(frame(b"split")[10:] + frame(b" late"))
        theirs.shutdown(socket.SHUT_WR)
        out = bytearray()
        assert stream.pump(out.extend, CancelToken()) is Ended.CLOSED
        assert out == b"early split late"
        stream.close()


def test_script_larger_than_any_buffer_does_not_block_output(pair: tuple[Hijacked, socket.socket]) -> None:
    stream, theirs = pair
    script, said = b"x" * 5_000_000, frame(b"y" * 1_000_000)
    got = bytearray()

    def container() -> None:
        # says much before it reads anything: a runner that only writes would wait for ever
        theirs.sendall(said)
        while data := theirs.recv(1 << 20):
            got.extend(data)
        theirs.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=container)
    thread.start()
    out = bytearray()
    stream.send(script)
    assert stream.pump(out.extend, CancelToken()) is Ended.CLOSED
    thread.join()
    assert bytes(got) == script
    assert bytes(out) == b"y" * 1_000_000


def test_cancel_wakes_a_silent_stream(pair: tuple[Hijacked, socket.socket]) -> None:
    stream, _ = pair
    token = CancelToken()
    timer = threading.Timer(0.05, lambda: token.cancel(RuntimeError("stop")))
    timer.start()
    assert stream.pump(lambda data: None, token) is Ended.CANCELLED
    timer.join()


def test_silence_is_told(pair: tuple[Hijacked, socket.socket]) -> None:
    stream, theirs = pair
    theirs.sendall(frame(b"a"))
    out = bytearray()
    assert stream.pump(out.extend, CancelToken(), idle=0.05) is Ended.IDLE
    assert out == b"a"


def test_enough_leaves_the_rest_for_the_next_time(pair: tuple[Hijacked, socket.socket]) -> None:
    stream, theirs = pair
    theirs.sendall(frame(b"ready\n"))
    out = bytearray()
    assert stream.pump(out.extend, CancelToken(), enough=lambda: b"ready" in out) is Ended.ENOUGH
    theirs.sendall(frame(b"more"))
    theirs.shutdown(socket.SHUT_WR)
    assert stream.pump(out.extend, CancelToken()) is Ended.CLOSED
    assert out == b"ready\nmore"


def test_chatty_script_is_read_in_few_pieces(pair: tuple[Hijacked, socket.socket]) -> None:
    stream, theirs = pair

    def container() -> None:
        for _ in range(2000):
            theirs.sendall(frame(b"line\n"))
        theirs.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=container)
    thread.start()
    pieces: list[bytes] = []
    stream.pump(pieces.append, CancelToken())
    thread.join()
    assert b"".join(pieces) == b"line\n" * 2000
    assert len(pieces) < 200
