"""One store of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.secrets.stores import Aws, Azure, Gcp, Vault


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault() as store:
        yield store


@pytest.fixture
def gcp() -> Iterator[Gcp]:
    with Gcp() as store:
        yield store


@pytest.fixture
def azure() -> Iterator[Azure]:
    with Azure() as store:
        yield store


@pytest.fixture
def aws() -> Iterator[Aws]:
    with Aws() as store:
        yield store
