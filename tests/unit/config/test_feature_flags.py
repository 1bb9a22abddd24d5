"""The list of feature flags says the truth about which of them do something."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyrunner
from pyrunner.config.feature_flags import FEATURE_FLAGS, FeatureFlag
from pyrunner.executors.loader import executor_names

_ROOT = Path(pyrunner.__file__).parent
_LIST = _ROOT / "config/feature_flags.py"
#: What it asks for is what is always done.
_ALWAYS_ON = ("FF_USE_FASTZIP",)


@pytest.fixture(scope="module")
def source() -> str:
    """All code that can run, without the list itself: an executor that is not offered yet does not count."""
    executors = {
        path for path in (_ROOT / "executors").iterdir() if path.is_dir() and path.name not in executor_names()
    }
    paths = [path for path in _ROOT.rglob("*.py") if path != _LIST and not executors & set(path.parents)]
    return "\n".join(path.read_text() for path in paths)


@pytest.mark.parametrize("flag", FEATURE_FLAGS.values(), ids=lambda flag: flag.name)
def test_a_flag_counts_as_built_when_code_looks_at_it(flag: FeatureFlag, source: str) -> None:
    looked_at = f'"{flag.name}"' in source or flag.name in _ALWAYS_ON
    assert flag.built is looked_at, f"{flag.name}: `built` in config/feature_flags.py should be {looked_at}"
