from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrunner.archive.expand import expand

ENVIRONMENT = {"NAME": "value", "EMPTY": "", "PATH_": "a/b/c.tar.gz", "SPACE": "two words"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("plain/path/*.txt", "plain/path/*.txt"),
        ("$NAME/x", "value/x"),
        ("${NAME}x", "valuex"),
        ("$NAMEx", ""),
        ("a $SPACE b", "a two words b"),
        ("${MISSING:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY-other}", ""),
        ("${MISSING:-$NAME}", "value"),
        ("${MISSING:-${EMPTY:-deep}}", "deep"),
        ("${MISSING:=set}", "set"),
        ("${NAME:+yes}${EMPTY:+no}", "yes"),
        ("${#NAME}", "5"),
        ("${PATH_%.*}", "a/b/c.tar"),
        ("${PATH_%%.*}", "a/b/c"),
        ("${PATH_#*/}", "b/c.tar.gz"),
        ("${PATH_##*/}", "c.tar.gz"),
        ("'$NAME'", "$NAME"),
        ('"$NAME"', "value"),
        ("a'b c'd", "ab cd"),
        (r"\$NAME", "$NAME"),
        (r"100\%", r"100\%"),
        ("price$", "price$"),
        ("$1", "$1"),
    ],
)
def test_words_expand_as_in_a_shell(word: str, expected: str) -> None:
    assert expand(word, ENVIRONMENT) == expected


@pytest.mark.parametrize("word", ["it's", 'half "quoted', "$(rm -rf /)", "${NAME", "${!NAME}", "${NAME:?}x${"])
def test_what_is_no_shell_word_means_itself(word: str) -> None:
    assert expand(word, ENVIRONMENT) == word


def test_a_backslash_before_a_glob_character_stays_for_the_glob() -> None:
    assert expand(r"$NAME/\*.txt", ENVIRONMENT) == r"value/\*.txt"


@given(st.text())
def test_a_quoted_value_survives(text: str) -> None:
    assert expand(shlex.quote(text), {}) == text


@given(st.text(alphabet="$'\"\\{}:-+=?%#NAME x*[/"))
def test_no_input_breaks_it(text: str) -> None:
    expand(text, ENVIRONMENT)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
def test_the_operators_agree_with_sh() -> None:
    operators = ["", ":-d", "-d", ":+d", "+d", ":=d", "=d", "%.*", "%%.*", "#*/", "##*/", "%x", "#[av]"]
    words = [f"${{{name}{operator}}}" for name in ("NAME", "EMPTY", "MISSING", "PATH_") for operator in operators]
    script = "\n".join(f"(printf '%s\\n' \"{word}\")" for word in words)
    done = subprocess.run(["sh", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert [expand(word, ENVIRONMENT) for word in words] == done.stdout.splitlines()
