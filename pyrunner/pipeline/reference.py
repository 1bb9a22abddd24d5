"""``!reference [job, keyword, …]``: a value taken from elsewhere in the file."""

from __future__ import annotations

from pyrunner.pipeline.spot import suggestion
from pyrunner.pipeline.yaml_source import MAX_DEPTH, MAX_VALUES, Items, Reference, Table, Value

#: GitLab's limit of references inside references.
MAX_LEVELS = 10


def resolve_references(root: Table) -> Table:
    """A copy of the file in which every reference is replaced by what it points to.

    Raises:
        PipelineError: a reference to nothing, in a circle, more than 10 levels deep, or expanding without end.
    """
    return _Resolver(root).resolved()


_Above = tuple[tuple[str, ...], ...]


class _Resolver:
    def __init__(self, root: Table) -> None:
        self._root = root
        self._values = 0
        self._depth = 0

    def resolved(self) -> Table:
        result = self._walk(self._root, ())
        assert isinstance(result, Table)  # noqa: S101
        return result

    def _walk(self, value: Value, above: _Above) -> Value:
        if isinstance(value, Reference):
            return self._walk(self._target(value, above), (*above, value.keys))
        if isinstance(value, Table):
            table = Table(value.place)
            for key, item in value.items():
                table.put(key, self._count(item, above, value), value.places[key])
            return table
        if isinstance(value, Items):
            items = Items(value.place)
            for item, place in zip(value, value.places, strict=True):
                items.put(self._count(item, above, value), place)
            return items
        return value

    def _count(self, item: Value, above: _Above, inside: Table | Items) -> Value:
        self._values += 1
        if self._values > MAX_VALUES:
            raise inside.place.error(f"references expand to more than {MAX_VALUES} values")
        if self._depth >= MAX_DEPTH:
            raise inside.place.error(f"references nest values more than {MAX_DEPTH} levels deep")
        self._depth += 1
        try:
            return self._walk(item, above)
        finally:
            self._depth -= 1

    def _target(self, reference: Reference, above: _Above) -> Value:
        words = f"!reference [{', '.join(reference.keys)}]"
        if reference.keys in above:
            raise reference.place.error(f"{words} goes in a circle")
        if len(above) >= MAX_LEVELS:
            raise reference.place.error(f"{words}: more than {MAX_LEVELS} references inside each other")
        found: Value = self._root
        for key in reference.keys:
            if not isinstance(found, Table) or key not in found:
                near = suggestion(key, found) if isinstance(found, Table) else ""
                raise reference.place.error(f"{words}: there is no {key}", hint=near)
            found = found[key]
        return found
