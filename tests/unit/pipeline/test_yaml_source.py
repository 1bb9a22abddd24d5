from __future__ import annotations

import pytest

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.yaml_source import Items, Table, load_yaml


def load(text: str | bytes) -> Table:
    return load_yaml(text.encode() if isinstance(text, str) else text, "ci.yml").root


def error_of(text: str | bytes) -> str:
    with pytest.raises(PipelineError) as caught:
        load(text)
    return str(caught.value)


def test_every_key_and_item_knows_its_line() -> None:
    root = load("a:\n  b: 1\n  c:\n    - x\n    - y\n")
    table = root["a"]
    assert isinstance(table, Table)
    assert table.places["c"][1:] == (3, 3)
    items = table["c"]
    assert isinstance(items, Items)
    assert [place.line for place in items.places] == [4, 5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("0644", 420),
        ("0x1F", 31),
        ("1_000", 1000),
        ("1:30", 90),
        ("-7", -7),
        ("1.50", 1.5),
        ("08", "08"),
        ("2024-01-02", "2024-01-02"),
        ("'yes'", "yes"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("1e3", "1e3"),
        ("=", "="),
    ],
)
def test_scalars_follow_yaml_1_1(text: str, value: object) -> None:
    assert load(f"a: {text}")["a"] == value


def test_keys_stay_as_written() -> None:
    assert list(load("on: 1\n1: 2\nno: 3\n")) == ["on", "1", "no"]


def test_a_merge_replaces_what_stands_above_it_and_is_replaced_by_what_stands_below() -> None:
    root = load("b: &b {x: 1, y: 1, z: 1}\na:\n  x: 0\n  <<: *b\n  y: 2\n")
    assert root["a"] == {"x": 1, "y": 2, "z": 1}


def test_of_several_merged_mappings_the_first_wins() -> None:
    assert load("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n")["c"] == {"x": 1, "y": 2}


def test_two_merge_keys_are_both_used() -> None:
    assert load("a: &a {x: 1}\nb: &b {y: 2}\nc:\n  <<: *a\n  <<: *b\n")["c"] == {"x": 1, "y": 2}


def test_a_repeated_key_is_noticed() -> None:
    document = load_yaml(b"a: 1\na: 2\n", "ci.yml")
    assert document.root["a"] == 2
    assert [str(notice) for notice in document.notices] == [
        "ci.yml:2: a is given again; this one replaces the one of line 1"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "ci.yml:2:1: invalid YAML: did not find expected node content, while parsing a flow node"),
        ("a: b: c", "ci.yml:1:5: invalid YAML: mapping values are not allowed in this context"),
        ("a:\n\t- b", "ci.yml:2:1: invalid YAML: "),
        ("a: *x", "ci.yml:1:4: there is no anchor &x above this line"),
        ("a: &a [*a]", "ci.yml:1:8: the anchor &a contains itself"),
        ("a: !!python/object:os.system x", "ci.yml:1:4: the YAML tag !!python/object:os.system is not known"),
        ("a: !vault x", "ci.yml:1:4: the YAML tag !vault is not known"),
        ("a: !vault {b: 1}", "ci.yml:1:4: the YAML tag !vault is not known"),
        ("a: 1\n---\nb: 2", "ci.yml:2:1: the file holds more than one YAML document"),
        ("spec: {inputs: {}}\n---\nb: 2", "ci.yml:1:1: the keyword spec is not supported in this version"),
        ("- a", "ci.yml:1:1: the file must be a mapping"),
        ("", "ci.yml:1:1: the file is empty"),
        ("# nothing", "ci.yml:1:1: the file is empty"),
        ("? [a]\n: b", "ci.yml:1:3: a key must be a name"),
        ("a: {<<: 1}", "ci.yml:1:9: << merges a mapping or a list of mappings"),
        ("a: !reference x", "ci.yml:1:4: the YAML tag !reference is not known"),
        ("a: !reference []", "ci.yml:1:4: !reference takes a list of names"),
        ("a: !reference [[b]]", "ci.yml:1:4: !reference takes a list of names"),
        ("a: \x01", "ci.yml:1: the character 1 is not allowed in YAML"),
        ("a: 1\nb: \x07", "ci.yml:2: the character 7 is not allowed in YAML"),
        (b"a: 1\nb: \xff", "ci.yml:2: the file is not UTF-8 text"),
        ("a: !!int x", "ci.yml:1:4: x is not a number"),
        (f"a: {'9' * 5000}", "ci.yml:1:4: 9999999999"),
        ("a: " + "[" * 200, "ci.yml:1:103: nested more than 100 levels deep"),
    ],
)
def test_bad_files_are_refused_with_their_place(text: str | bytes, message: str) -> None:
    assert error_of(text).startswith(message)


def test_aliases_cannot_expand_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases expand to more than 1000000 values" in error_of("\n".join(lines))


def test_aliases_cannot_nest_without_end() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))]
    assert "nested more than 100 levels deep" in error_of("\n".join(lines))


def test_a_huge_file_is_refused() -> None:
    assert error_of(b"a: " + b"x" * (2 * 1024 * 1024)) == "ci.yml: the file is larger than 2 MiB"


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert list(load(b"\xef\xbb\xbfa: 1")) == ["a"]
