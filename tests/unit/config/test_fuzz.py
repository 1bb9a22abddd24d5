"""Whatever stands in config.toml, the answer is a config or one line: never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrunner.base.errors import ConfigError
from pyrunner.config.keys import fields_of
from pyrunner.config.lint import lint_text
from pyrunner.config.load import decoded_text, load_config, parse_config
from pyrunner.config.model import Config, KubernetesConfig, RunnerConfig
from pyrunner.config.save import config_text
from pyrunner.config.toml11 import as_toml10

VALUES = (
    "1", "-1", "0", "1.0", "inf", "nan", "true", '""', '"x"', "'1h'", "[]", "[1]", "[[]]", "['a']", "{}", "{a = 1}",
    "[{}]", "9223372036854775807", "9223372036854775808", "0x" + "f" * 5000, "9" * 5000, "1e400", "2026-01-01",
    "10:00:00", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", '"\\u0000"',
    '"${"', '"%"', '"-1h"', '"9999999999999h"', '"\\U0010FFFF"',
)  # fmt: skip
BASE = config_text(
    Config(
        labels={"team": "a"},
        runners=[
            RunnerConfig(name="a", url="https://gitlab.example.com", token="glrt-x", executor="shell"),
            RunnerConfig(name="b", environment=["A=1"], kubernetes=KubernetesConfig()),
        ],
    )
)


def survives(text: str) -> None:
    try:
        parse_config(text, path="config.toml", environment={})
    except ConfigError as error:
        assert "\n" not in str(error)
        assert str(error).isprintable()
    for finding in lint_text(text):
        assert finding.message
        assert "\n" not in finding.message


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_every_value_at_every_key(value: str) -> None:
    for field in fields_of(Config):
        survives(f"{field.name} = {value}")
    for field in fields_of(RunnerConfig):
        survives(f"[[runners]]\n{field.name} = {value}")
        if field.table is not None:
            keys = "".join(f"{inner.name} = {value}\n" for inner in fields_of(field.table))
            survives(f"[[runners]]\n[runners.{field.name}]\n{keys}")
            below = "".join(
                f"[[runners.{field.name}.{inner.name}]]\nname = {value}\n" for inner in fields_of(field.table)
            )
            survives(f"[[runners]]\n{below}")


@given(st.text())
def test_any_text(text: str) -> None:
    survives(text)


@given(st.text("\"'#{}[],=\\\\a1\n ", max_size=30))
def test_rewriting_newer_toml_loses_no_character_that_matters(text: str) -> None:
    older = as_toml10(text)
    assert [char for char in older if char in "\"'[]="] == [char for char in text if char in "\"'[]="] or "#" in text
    survives(f"a = {text}")


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    try:
        survives(decoded_text(content, "config.toml"))
    except ConfigError as error:
        assert "invalid UTF-8" in str(error)


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_a_damaged_config(chance: random.Random) -> None:
    text = BASE
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + chance.randint(1, 30) :]
        elif kind == 1:
            text = text[:at] + chance.choice("\"'[]{}=#.\n\\,\x00\x1b\ud7ff\u2028 ") + text[at:]
        elif kind == 2:
            lines = text.split("\n")
            chance.shuffle(lines)
            text = "\n".join(lines)
        else:
            text = text[:at] + chance.choice(VALUES[:13]) + text[at + 1 :]
    survives(text)


def test_nesting_beyond_the_recursion_limit() -> None:
    survives("a = " + "[" * 50_000)
    survives("a = " + "{a = " * 50_000)
    survives("a" + ".a" * 1_500 + " = 1")
    survives("[" + "a." * 1_500 + "a]")


def test_a_device_that_never_ends_is_no_config() -> None:
    with pytest.raises(ConfigError, match="this is no config file"):
        load_config("/dev/zero")


def test_a_path_with_a_null_byte_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not usable"):
        load_config(f"{tmp_path}/a\0b")
