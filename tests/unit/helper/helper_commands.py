"""How the tests call helper commands."""

from __future__ import annotations

from collections.abc import Callable

#: ``run(name, *words, environment={})`` gives the exit code.
Run = Callable[..., int]
