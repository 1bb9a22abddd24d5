from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.job import Pipeline
from pyrunner.pipeline.load import load_pipeline

FILE = ".gitlab-ci.yml"


@pytest.fixture
def load() -> Callable[[str], Pipeline]:
    """Reads a pipeline from text."""
    return lambda text: load_pipeline(dedent(text).encode(), FILE)


@pytest.fixture
def refused(load: Callable[[str], Pipeline]) -> Callable[[str], PipelineError]:
    """Reads a pipeline that is wrong; the error."""

    def error_of(text: str) -> PipelineError:
        with pytest.raises(PipelineError) as caught:
            load(text)
        return caught.value

    return error_of
