"""YAML → plain values in which every key and item knows its place.

Read from libyaml's events instead of PyYAML's constructors, because those lose positions, recurse as deeply as the
input says, and expand aliases without end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import yaml
from msgspec import Struct, field

from pyrunner.base.errors import PipelineError
from pyrunner.pipeline.scalars import TAG, converted, resolved_tag

#: Limits against input that is small on disk and endless in memory.
MAX_DEPTH = 100
MAX_VALUES = 1_000_000
#: GitLab's limit of a configuration file.
MAX_BYTES = 2 * 1024 * 1024


class Place(NamedTuple):
    """Where something stands: a file as the user knows it, line and column from 1."""

    path: str
    line: int
    column: int

    def error(self, message: str, *, hint: str = "") -> PipelineError:
        """An error that points here."""
        return PipelineError(message, path=self.path, line=self.line, column=self.column, hint=hint)


class Table(dict[str, "Value"]):
    """A YAML mapping; `places` tells where each key stands."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.places: dict[str, Place] = {}

    def put(self, key: str, value: Value, place: Place) -> None:
        """Set `key`, which stands at `place`."""
        self[key] = value
        self.places[key] = place

    def merge(self, other: Table) -> None:
        """Take all keys of `other` over, with their places."""
        self.update(other)
        self.places.update(other.places)


class Items(list["Value"]):
    """A YAML sequence; `places` tells where each item stands."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.places: list[Place] = []

    def put(self, value: Value, place: Place) -> None:
        """Append `value`, which stands at `place`."""
        self.append(value)
        self.places.append(place)


class Reference(Struct, frozen=True, kw_only=True):
    """``!reference [job, keyword, …]``, resolved after ``extends``."""

    keys: tuple[str, ...]
    place: Place


Value: TypeAlias = "str | int | float | bool | None | Table | Items | Reference"


class Notice(Struct, frozen=True, kw_only=True):
    """Something legal that is probably not meant."""

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place.path}:{self.place.line}: {self.message}"


class Document(Struct, frozen=True, kw_only=True):
    """The content of one file."""

    root: Table
    notices: list[Notice]
    #: Whether a `Reference` stands anywhere.
    referring: bool


class _Node(Struct, kw_only=True):
    """A finished value with what the limits and mapping keys need."""

    value: Value
    place: Place
    size: int = 1
    depth: int = 1
    #: The scalar as it is written; None for mappings and sequences.
    text: str | None = None
    merges: bool = False


class _Open(Struct, kw_only=True):
    """A mapping or sequence whose end has not been seen."""

    place: Place
    mapping: bool
    tag: str | None
    anchor: str | None
    nodes: list[_Node] = field(default_factory=list)


def load_yaml(data: bytes, path: str) -> Document:
    """Read one YAML file.

    Args:
        data: the file's bytes, UTF-8.
        path: the name for messages.

    Raises:
        PipelineError: not YAML, not a mapping, or beyond the limits; says where.
    """
    start = Place(path, 1, 1)
    if len(data) > MAX_BYTES:
        raise PipelineError(f"the file is larger than {MAX_BYTES // 2**20} MiB", path=path)
    text = _decoded(data, path)
    builder = _Builder(path)
    try:
        root = builder.build(yaml.parse(text, Loader=yaml.CLoader))
    except yaml.MarkedYAMLError as error:
        raise _marked(error, path) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise PipelineError(f"the character {error.character!r} is not allowed in YAML", path=path, line=line) from None
    if root is None:
        raise start.error("the file is empty", hint="a pipeline has at least one job with a script")
    if not isinstance(root.value, Table):
        raise root.place.error("the file must be a mapping of keywords and jobs")
    return Document(root=root.value, notices=builder.notices, referring=builder.referring)


def _decoded(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PipelineError("the file is not UTF-8 text", path=path, line=line) from None
    return text


def _marked(error: yaml.MarkedYAMLError, path: str) -> PipelineError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    words = ", ".join(part for part in (error.problem, error.context) if part)
    if error.context_mark and mark and error.context_mark.line != mark.line:
        words += f" that begins in line {error.context_mark.line + 1}"
    return PipelineError(f"invalid YAML: {words}", path=path, line=line, column=column)


class _Builder:
    """Turns events into values, without recursion."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: list[_Open] = []
        self._anchors: dict[str, _Node] = {}
        self._root: _Node | None = None
        self._documents = 0
        self.notices: list[Notice] = []
        self.referring = False

    def build(self, events: Iterable[Any]) -> _Node | None:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event), event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._add(self._alias(event), None)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                closed = self._open.pop()
                self._add(self._mapping(closed) if closed.mapping else self._sequence(closed), closed.anchor)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._document(event)
        return self._root

    def _place(self, event: Any) -> Place:
        return Place(self._path, event.start_mark.line + 1, event.start_mark.column + 1)

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents == 1:
            return
        first = self._root.value if self._root else None
        if isinstance(first, Table) and "spec" in first:
            raise first.places["spec"].error("the keyword spec is not supported in this version")
        raise self._place(event).error("the file holds more than one YAML document")

    def _start(self, event: Any) -> None:
        place = self._place(event)
        if len(self._open) >= MAX_DEPTH:
            raise place.error(f"nested more than {MAX_DEPTH} levels deep")
        mapping = isinstance(event, yaml.MappingStartEvent)
        tag = None if event.implicit or event.tag in (f"{TAG}map", f"{TAG}seq", "!") else event.tag
        if tag is not None and (mapping or tag != "!reference"):
            raise _unknown_tag(tag, place)
        self._open.append(_Open(place=place, mapping=mapping, tag=tag, anchor=event.anchor))
        if event.anchor:
            self._anchors.pop(event.anchor, None)

    def _add(self, node: _Node, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].nodes.append(node)
        else:
            self._root = node

    def _alias(self, event: Any) -> _Node:
        place = self._place(event)
        found = self._anchors.get(event.anchor)
        if found is None:
            if any(open_.anchor == event.anchor for open_ in self._open):
                raise place.error(f"the anchor &{event.anchor} contains itself")
            raise place.error(f"there is no anchor &{event.anchor} above this line")
        return _Node(value=found.value, place=place, size=found.size, depth=found.depth, text=found.text)

    def _scalar(self, event: Any) -> _Node:
        place = self._place(event)
        text, tag = event.value, event.tag
        if tag in (None, "!"):
            plain = tag is None and event.implicit[0]
            tag = resolved_tag(text) if plain else f"{TAG}str"
        if tag == f"{TAG}merge":
            return _Node(value=text, place=place, text=text, merges=True)
        try:
            return _Node(value=converted(text, tag), place=place, text=text)
        except KeyError:
            raise _unknown_tag(tag, place) from None
        except ValueError:
            raise place.error(f"{text[:40]} is not a number that can be read") from None

    def _sequence(self, closed: _Open) -> _Node:
        nodes = closed.nodes
        if closed.tag:
            keys = tuple(str(node.value) for node in nodes if node.text is not None)
            if not keys or len(keys) != len(nodes):
                raise closed.place.error("!reference takes a list of names, e.g. !reference [.setup, script]")
            self.referring = True
            return _Node(value=Reference(keys=keys, place=closed.place), place=closed.place)
        items = Items(closed.place)
        for node in nodes:
            items.put(node.value, node.place)
        return self._measured(items, closed)

    def _mapping(self, closed: _Open) -> _Node:
        table = Table(closed.place)
        for key, value in zip(closed.nodes[::2], closed.nodes[1::2], strict=True):
            if key.merges:
                self._merge(table, value)
                continue
            if key.text is None:
                raise key.place.error("a key must be a name, not a mapping or a list")
            if key.text in table.places and table.places[key.text].line != key.place.line:
                first = table.places[key.text].line
                text = f"{key.text} is given again; this one replaces the one of line {first}"
                self.notices.append(Notice(place=key.place, message=text))
            table.put(key.text, value.value, key.place)
        return self._measured(table, closed)

    @staticmethod
    def _merge(table: Table, node: _Node) -> None:
        # in order of appearance, like GitLab's parser: a merge replaces what stands above it
        sources = [node.value]
        if isinstance(node.value, Items):
            sources = list(reversed(node.value))
        for source in sources:
            if not isinstance(source, Table):
                raise node.place.error("<< merges a mapping or a list of mappings")
            table.merge(source)

    @staticmethod
    def _measured(value: Table | Items, closed: _Open) -> _Node:
        size = 1 + sum(node.size for node in closed.nodes)
        depth = 1 + max((node.depth for node in closed.nodes), default=0)
        if size > MAX_VALUES:
            raise closed.place.error(f"aliases expand to more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise closed.place.error(f"nested more than {MAX_DEPTH} levels deep")
        return _Node(value=value, place=closed.place, size=size, depth=depth)


def _unknown_tag(tag: str, place: Place) -> PipelineError:
    return place.error(f"the YAML tag {tag.replace(TAG, '!!')} is not known; only !reference is")
