"""The grammar of the command line: Go's, word for word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.base.errors import UsageError
from pyrunner.cli.parse import HelpRequested, parse
from pyrunner.cli.spec import Flag

FLAGS = [
    Flag("config", aliases=["c"], env=["CONFIG_FILE"]),
    Flag("paused", "bool", env=["PAUSED"]),
    Flag("locked", "bool", default=True),
    Flag("limit", "int", env=["RUNNER_LIMIT"]),
    Flag("volumes", "list", env=["DOCKER_VOLUMES"]),
    Flag("labels", "map"),
    Flag("feature-flags", "map-bool"),
    Flag("pull-policy", "comma"),
    Flag("clean", "bool?"),
    Flag("timeout", "duration"),
    Flag("style", choices=["a", "b"], strict_choices=True),
]


@pytest.mark.parametrize(
    "words", [["--config", "x"], ["-config", "x"], ["-c", "x"], ["--c", "x"], ["--config=x"], ["-c=x"]]
)
def test_one_or_two_dashes_and_equals_mean_the_same(words: list[str]) -> None:
    call = parse(FLAGS, words, {})
    assert call.text("config") == "x"
    assert call.given == {"config"}


def test_a_bare_word_after_a_boolean_is_an_argument_and_ends_the_flags() -> None:
    call = parse(FLAGS, ["--paused", "true", "--config", "x"], {})
    assert call.flag("paused")
    assert call.arguments == ["true", "--config", "x"]


def test_our_own_commands_take_flags_after_arguments() -> None:
    call = parse(FLAGS, ["job", "--config", "x", "--", "--other"], {}, interspersed=True)
    assert call.text("config") == "x"
    assert call.arguments == ["job", "--other"]


def test_booleans_can_be_switched_off() -> None:
    assert not parse(FLAGS, ["--locked=false"], {}).flag("locked")
    assert parse(FLAGS, [], {}).flag("locked")
    assert parse(FLAGS, [], {"PAUSED": ""}).flag("paused"), "a set but empty boolean variable means true"


def test_lists_repeat_without_comma_splitting_and_follow_the_variable() -> None:
    call = parse(FLAGS, ["--volumes", "/a,b", "--volumes", "/c"], {"DOCKER_VOLUMES": "/env"})
    assert call.items("volumes") == ["/env", "/a,b", "/c"]


def test_comma_lists_are_split_and_replaced_by_a_later_use() -> None:
    call = parse(FLAGS, ["--pull-policy", "always, never", "--pull-policy", "if-not-present"], {})
    assert call.items("pull-policy") == ["if-not-present"]


def test_maps_split_at_the_first_colon() -> None:
    call = parse(FLAGS, ["--labels", "a:b:c", "--labels", "d:e", "--feature-flags", "FF_X:false"], {})
    assert call.pairs("labels") == {"a": "b:c", "d": "e"}
    assert call.values["feature-flags"] == {"FF_X": False}


def test_a_flag_beats_its_variable_and_the_variable_beats_the_default() -> None:
    assert parse(FLAGS, ["--limit", "3"], {"RUNNER_LIMIT": "2"}).number("limit") == 3
    assert parse(FLAGS, [], {"RUNNER_LIMIT": "2"}).number("limit") == 2
    assert parse(FLAGS, [], {}).number("limit") == 0


def test_defaults_are_never_shared_between_calls() -> None:
    parse(FLAGS, ["--volumes", "/a"], {})
    assert parse(FLAGS, [], {}).items("volumes") == []


@pytest.mark.parametrize(
    ("words", "environment", "text"),
    [
        (["--nope"], {}, "flag provided but not defined: -nope"),
        (["--config"], {}, "flag needs an argument: -config"),
        (["--limit", "x"], {}, 'invalid value "x" for flag -limit'),
        (["--paused=maybe"], {}, 'invalid value "maybe" for flag -paused'),
        (["--timeout", "10"], {}, 'invalid duration: "10"'),
        (["--labels", "x"], {}, "expected key:value"),
        (["--style", "c"], {}, "expected one of a, b"),
        ([], {"RUNNER_LIMIT": ""}, "RUNNER_LIMIT"),
        ([], {"RUNNER_LIMIT": "x"}, "could not parse x as int value for flag limit"),
    ],
)
def test_bad_input_names_the_flag_and_what_is_wrong(words: list[str], environment: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(FLAGS, words, environment)
    assert text in str(caught.value)


def test_a_misspelt_flag_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        parse(FLAGS, ["--volume", "x"], {})
    assert caught.value.hint == "did you mean --volumes?"


@pytest.mark.parametrize("word", ["--help", "-h", "-help"])
def test_help_is_asked_for_with_any_dashes(word: str) -> None:
    with pytest.raises(HelpRequested):
        parse(FLAGS, [word], {})


@given(st.lists(st.text(max_size=8), max_size=6))
def test_no_words_break_the_parser(words: list[str]) -> None:
    try:
        parse(FLAGS, words, {}, interspersed=True)
    except (UsageError, HelpRequested) as error:
        assert "\n" not in str(error) or any("\n" in word for word in words)
