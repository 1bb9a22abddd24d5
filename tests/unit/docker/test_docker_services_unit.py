"""Services without an engine: ports, the block of a failure, names, prefixed output (facts/executors.md 6.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.executors.docker.service_health import health_ports, warning_block
from pyrunner.executors.docker.service_logs import PrefixedLines
from pyrunner.executors.docker.services import split_reference


@pytest.mark.parametrize(
    ("environment", "exposed", "ports"),
    [
        ([], ["80/tcp", "53/udp", "22/tcp", "8080"], [22, 80, 8080]),
        ([], [f"{port}/tcp" for port in range(100, 160)], list(range(100, 120))),
        (["HEALTHCHECK_TCP_PORT=9"], ["80/tcp"], [9]),
        (["HEALTHCHECK_TCP_PORT=9", "HEALTHCHECK_TCP_PORT=10"], [], [10]),
        (["HEALTHCHECK_TCP_PORT="], ["80/tcp"], [80]),
        ([], ["53/udp"], []),
    ],
)
def test_ports_that_are_tried(environment: list[str], exposed: list[str], ports: list[int]) -> None:
    assert health_ports(environment, exposed) == ports


def test_block_of_a_service_that_does_not_start() -> None:
    yellow, reset = "\x1b[0;33m", "\x1b[0;m"
    assert warning_block("r-redis-0", "service timeout", "dialing\n", "boom\n") == (
        f"\n{yellow}*** WARNING:{reset} Service r-redis-0 probably didn't start properly.\n"
        "\nHealth check error:\nservice timeout\n"
        "\nHealth check container logs:\ndialing\n"
        "\nService container logs:\nboom\n"
        f"\n{yellow}*********{reset}\n\n"
    )
    assert "Health check container logs" not in warning_block("r", "no exposed ports", None, "")


@pytest.mark.parametrize(
    ("reference", "name", "version", "image"),
    [
        ("redis", "redis", "latest", "redis:latest"),
        ("redis:7", "redis", "7", "redis:7"),
        ("tutum.example:5000/a/b:1", "tutum.example/a/b", "1", "tutum.example:5000/a/b:1"),
        ("localhost:5000/a", "localhost/a", "latest", "localhost:5000/a:latest"),
        ("a/b@sha256:00", "a/b", "@sha256:00", "a/b@sha256:00"),
        ("a/b:1@sha256:00", "a/b", "@sha256:00", "a/b:1@sha256:00"),
    ],
)
def test_reference_is_split(reference: str, name: str, version: str, image: str) -> None:
    assert split_reference(reference) == (name, version, image)


@given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\xff", b"\n")), max_size=20))
def test_every_line_of_a_service_is_marked_however_it_is_cut(pieces: list[bytes]) -> None:
    lines = PrefixedLines(["db", "a"])
    out = b"".join(lines.feed(piece) for piece in pieces) + lines.flush()
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert out == b"".join(b"\x1b[0;90m[service:db-a] " + line + b"\x1b[0;m\n" for line in expected)


def test_line_without_end_does_not_grow_in_memory() -> None:
    lines = PrefixedLines(["x"])
    assert len(lines.feed(b"x" * 100_000)) > 100_000
    assert lines.flush() == b""
