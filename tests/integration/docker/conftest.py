"""Tests with a real engine: images once per machine, a corner of the engine per test, checked for leftovers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrunner.testing.docker_images import TestImages, test_images
from pyrunner.testing.docker_scope import DockerScope, why_no_engine


@pytest.fixture(scope="session")
def docker_images() -> TestImages:
    """The images; a test without an engine is skipped."""
    if reason := why_no_engine():
        pytest.skip(reason)
    return test_images()


@pytest.fixture(autouse=True)
def scope(docker_images: TestImages) -> Iterator[DockerScope]:
    """This test's corner of the engine; a container, volume or network that stays in it fails the test."""
    with DockerScope(images=docker_images).checked() as scope:
        yield scope
