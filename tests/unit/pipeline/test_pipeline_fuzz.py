"""Whatever a file holds, reading it gives a pipeline or a `PipelineError` that names the file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.graph import whole
from pyrunner.pipeline.keywords import KEYWORDS
from pyrunner.pipeline.load import load_pipeline
from pyrunner.pipeline.payload import job_payload
from pyrunner.pipeline.variables import RunContext

SEED = b"""\
stages: [build, test]
variables:
  A: &a "1"
  B: {value: x, expand: false}
default: {image: debian, retry: 1}
.base: &base
  script: [make, [more, *a]]
  cache: {key: {files: [x]}, paths: [y]}
build:
  <<: *base
  stage: build
  artifacts: {paths: [out], expire_in: 1 week, reports: {junit: r.xml}}
test:
  extends: .base
  needs: [build, {job: gone, optional: true}]
  script: !reference [.base, script]
  allow_failure: {exit_codes: [1, 2]}
  services: [{name: redis, alias: r}]
  timeout: 1h 30m
"""


def read(data: bytes) -> None:
    try:
        pipeline = load_pipeline(data, "ci.yml")
    except PipelineError as error:
        assert str(error).startswith("ci.yml:")
        assert "\n" not in str(error)
        return
    context = RunContext(server_url="http://127.0.0.1:1")
    for job in whole(pipeline).jobs.values():
        job_payload(job, context, 1, "t")


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    read(data)


@given(st.text(alphabet="abc:-[]{}&*!<>#|?'\"%@`,\n\t $0x1.~", max_size=80))
def test_any_punctuation(text: str) -> None:
    read(text.encode())


@settings(max_examples=300)
@given(st.data())
def test_mutations_of_a_good_file(data: st.DataObject) -> None:
    text = bytearray(SEED)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text[start:end] = data.draw(
            st.one_of(st.binary(max_size=6), st.sampled_from([b"*a", b"&a ", b"[", b"{", b": "]))
        )
    read(bytes(text))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["build", "test", ".base", "always", "$A", "1h", "on_success"]),
)
NAMES = st.one_of(
    st.sampled_from(
        [*KEYWORDS, "paths", "key", "files", "name", "value", "job", "max", "exit_codes", "build", ".base"]
    ),
    st.text(max_size=5),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["build", "test", ".base", *KEYWORDS]), st.dictionaries(NAMES, TREES, max_size=4), max_size=4
    )
)
def test_any_value_under_any_keyword(tree: dict[str, object]) -> None:
    # JSON is YAML: no emitter is needed that might not write what we mean
    import json

    for job in tree.values():
        assert isinstance(job, dict)
        job.setdefault("script", "x")
    read(json.dumps(tree).encode())
