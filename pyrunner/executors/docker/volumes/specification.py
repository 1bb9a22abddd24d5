"""One entry of ``volumes``: ``[source:]destination[:options]`` (facts/executors.md 6.6). Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from pyrunner.base.errors import SystemFailure

_MODES = frozenset(("ro", "rw", "O"))
_SELINUX = frozenset(("z", "Z"))
_PROPAGATION = frozenset(("private", "rprivate", "shared", "rshared", "slave", "rslave"))


@dataclass(frozen=True, kw_only=True)
class VolumeSpecification:
    """A parsed entry: without `source` it is a cache, else a bind of a host path or a named volume."""

    destination: str
    source: str = ""
    #: ``ro,z``; empty = the engine's default.
    options: str = ""

    @property
    def bind(self) -> str:
        """As the engine wants it."""
        return ":".join(part for part in (self.source, self.destination, self.options) if part)

    @property
    def from_host(self) -> bool:
        """Whether it is a directory of the host."""
        return self.source.startswith("/")


def parse_volume(text: str, expand: Callable[[str], str]) -> VolumeSpecification:
    """Read an entry; `expand` replaces variables, in the destination only.

    Raises:
        SystemFailure: ``runner_configuration_error``: it does not follow the grammar.
    """
    parts = text.split(":")
    if not text or len(parts) > 3 or not all(parts):
        raise _bad(text, "expected [source:]destination[:options]")
    if len(parts) == 1:
        return VolumeSpecification(destination=expand(parts[0]))
    options = parts[2] if len(parts) == 3 else ""
    _check_options(text, options)
    return VolumeSpecification(source=parts[0], destination=expand(parts[1]), options=options)


def absolute(destination: str, project_dir: str) -> str:
    """Where the volume appears; relative ones lie in the project's directory.

    Raises:
        SystemFailure: ``runner_configuration_error``: it would be the root.
    """
    path = posixpath.normpath(posixpath.join("/", project_dir, destination))
    if path in ("/", "//"):
        raise SystemFailure("build directory needs to be a non-root path", reason="runner_configuration_error")
    return path


def _check_options(text: str, options: str) -> None:
    seen: set[frozenset[str]] = set()
    for option in filter(None, options.split(",")):
        group = next((known for known in (_MODES, _SELINUX, _PROPAGATION) if option in known), None)
        if group is None:
            raise _bad(text, f'unknown option "{option}", expected one of: ro, rw, O, z, Z, [r]private, [r]shared, …')
        if group in seen:
            raise _bad(text, f'option "{option}" contradicts another one')
        seen.add(group)


def _bad(text: str, what: str) -> SystemFailure:
    return SystemFailure(f'invalid volume specification "{text}": {what}', reason="runner_configuration_error")
