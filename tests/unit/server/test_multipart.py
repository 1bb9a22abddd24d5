"""The multipart reader: the same file whatever the cuts, and no form that it trips over."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.server.files import safe_name
from pyrunner.server.multipart import MultipartError, MultipartReader, PartBegin, boundary_of

BOUNDARY = b"dd8b"


def form(content: bytes, name: str = "file", filename: str = "artifacts.zip") -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: x/y'
    return b"--dd8b\r\n" + head.encode() + b"\r\n\r\n" + content + b"\r\n--dd8b--\r\n"


def read(body: bytes, cuts: list[int]) -> tuple[list[PartBegin], bytes]:
    reader = MultipartReader(BOUNDARY)
    begins, content, at = [], b"", 0
    for cut in [*sorted(cut % (len(body) + 1) for cut in cuts), len(body)]:
        for event in reader.feed(body[at:cut]):
            if isinstance(event, PartBegin):
                begins.append(event)
            else:
                content += event.content
        at = cut
    reader.close()
    return begins, content


@given(
    content=st.binary(max_size=200) | st.lists(st.sampled_from([b"\r", b"\n", b"-", b"--dd8", b"x"])).map(b"".join),
    cuts=st.lists(st.integers(min_value=0, max_value=500), max_size=20),
)
def test_any_content_survives_any_cuts(content: bytes, cuts: list[int]) -> None:
    begins, read_content = read(form(content), cuts)
    assert begins == [PartBegin(name="file", filename="artifacts.zip")]
    assert read_content == content


@given(st.binary(max_size=300), st.lists(st.integers(min_value=0, max_value=300), max_size=5))
def test_garbage_is_refused_or_read_but_never_trips(body: bytes, cuts: list[int]) -> None:
    with contextlib.suppress(MultipartError):
        read(body, cuts)


@pytest.mark.parametrize("end", range(1, len(form(b"content")) - 4))
def test_a_form_that_breaks_off_is_refused(end: int) -> None:
    with pytest.raises(MultipartError):
        read(form(b"content")[:end], [])


def test_a_header_without_end_is_refused() -> None:
    with pytest.raises(MultipartError, match="too long"):
        list(MultipartReader(BOUNDARY).feed(b"--dd8b\r\n" + b"x" * 20000))


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "multipart/mixed; boundary=x"])
def test_other_content_types_are_refused(kind: str) -> None:
    with pytest.raises(MultipartError):
        boundary_of(kind)


def test_quoted_boundaries_and_names() -> None:
    assert boundary_of('multipart/form-data; charset=utf-8; boundary="a b"') == b"a b"
    begins, _ = read(form(b"", filename='a\\"b.zip'), [])
    assert begins[0].filename == 'a"b.zip'


@given(st.text(max_size=300))
def test_file_names_stay_in_their_directory(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert "/" not in safe
    assert "\0" not in safe
    assert safe.strip(". ")
    assert len(safe.encode()) <= 255
