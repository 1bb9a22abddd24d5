"""``extends``: jobs built on other jobs, by deep merge."""

from __future__ import annotations

from pyrunner.pipeline.spot import Spot, suggestion
from pyrunner.pipeline.yaml_source import Table, Value

#: GitLab's limit of inheritance levels.
MAX_LEVELS = 10


def resolve_extends(root: Table) -> Table:
    """A copy of the file in which no entry has ``extends`` any more.

    Mappings merge deeply, everything else (lists too) is replaced; of several bases the later wins, the entry itself
    wins over all. A key set to null stays, so that it can take an inherited one away.

    Raises:
        PipelineError: a base that does not exist or is no mapping, a circle (its members are named), too many levels.
    """
    resolver = _Resolver(root)
    resolved = Table(root.place)
    for name, value in root.items():
        if isinstance(value, Table) and "extends" in value:
            value = resolver.resolve(name, ())
        resolved.put(name, value, root.places[name])
    return resolved


class _Resolver:
    def __init__(self, root: Table) -> None:
        self._root = root
        self._done: dict[str, Table] = {}
        #: How many levels of bases an entry stands on.
        self._levels: dict[str, int] = {}

    def resolve(self, name: str, above: tuple[str, ...]) -> Table:
        """Entry `name` with its bases merged in; `above` are those that extend it, outermost first."""
        if name in self._done:
            return self._done[name]
        entry = self._root[name]
        assert isinstance(entry, Table)  # noqa: S101
        bases = self._bases(name, entry)
        place = entry.places.get("extends", entry.place)
        chain = (*above, name)
        result = Table(entry.place)
        for base in bases:
            if base in chain:
                cycle = (*chain[chain.index(base) :], base)
                raise place.error(f"{name}:extends: goes in a circle: {' → '.join(cycle)}")
            if len(chain) <= 2 * MAX_LEVELS:
                # beyond this the answer is known, and a chain as long as the file must not be followed
                result = deep_merge(result, self.resolve(base, chain))
        self._levels[name] = 1 + max((self._levels.get(base, MAX_LEVELS) for base in bases), default=-1)
        if self._levels[name] > MAX_LEVELS:
            raise place.error(f"{name}:extends: more than {MAX_LEVELS} levels of jobs that extend each other")
        own = Table(entry.place)
        own.merge(entry)
        own.pop("extends", None)
        self._done[name] = deep_merge(result, own)
        return self._done[name]

    def _bases(self, name: str, entry: Table) -> tuple[str, ...]:
        if entry.get("extends") is None:
            return ()
        spot = Spot(value=entry["extends"], place=entry.places["extends"], name=f"{name}:extends")
        for base in spot.texts():
            if base not in self._root:
                raise spot.error(f"there is no {base}", hint=suggestion(base, self._root))
            if not isinstance(self._root[base], Table):
                raise spot.error(f"{base} is not a job")
        return spot.texts()


def deep_merge(base: Table, over: Table) -> Table:
    """`over` laid on `base`; neither is changed."""
    merged = Table(over.place)
    merged.merge(base)
    for key, value in over.items():
        below: Value = merged.get(key)
        if isinstance(below, Table) and isinstance(value, Table):
            value = deep_merge(below, value)
        merged.put(key, value, over.places[key])
    return merged
