"""Rows of a module run together, once per executor; its tests look at what came of each.

A module has `ROWS`, and a test that takes `row` and `result`; `surroundings`, if there is one, is a context manager
that gives further placeholders. A further executor is a further entry of `PLACES`; a module names in `ON` those whose
facts it has, the shell executor alone without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import pytest

from pyrunner.testing.docker_place import docker_place
from pyrunner.testing.job_checks import Result
from pyrunner.testing.job_life import Place, Row, chosen, shell_place
from pyrunner.testing.job_table import run_rows

PLACES = [shell_place(), docker_place()]
#: Variables of the developer or the CI that would reach the jobs.
_FOREIGN = ("GITLAB_", "RUNNER_", "CI_", "GIT_", "FF_", "CACHE_", "DOCKER_")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per executor and row."""
    if "row" not in metafunc.fixturenames:
        return
    on = getattr(metafunc.module, "ON", ("shell",))
    places = [place for place in PLACES if place.name in on]
    pairs = [(place, row) for place in places for row in chosen(metafunc.module.ROWS, place)]
    metafunc.parametrize(("place", "row"), pairs, ids=[f"{place.name}-{row.id}" for place, row in pairs])


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Place], dict[str, Result]]:
    """What came of the rows that were asked for, by row; an executor's run when its first one is looked at."""

    @cache
    def of(place: Place) -> dict[str, Result]:
        wanted = [
            item.callspec.params
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.module is request.module and "row" in item.fixturenames
        ]
        rows = [params["row"] for params in wanted if params["place"] is place]
        with pytest.MonkeyPatch.context() as environment:
            for name in [name for name in os.environ if name.startswith(_FOREIGN) or name == "CI"]:
                environment.delenv(name)
            environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
            environment.setenv("GIT_CONFIG_NOSYSTEM", "1")
            with getattr(request.module, "surroundings", nullcontext)() as texts:
                return run_rows(rows, place, tmp_path_factory.mktemp(place.name), texts)

    return of


@pytest.fixture
def result(results: Callable[[Place], dict[str, Result]], place: Place, row: Row) -> Result:
    """What came of the row; its test is skipped where the executor's real parts are missing."""
    if reason := place.missing():
        pytest.skip(reason)
    return results(place)[row.id]
