"""Images for tests, made on this machine without any registry and kept as tagged images of its engine.

========= ==========================================================================================
`BUILD`   busybox: ``sh`` and the usual programs, users ``root`` and ``tester`` (1000)
`HELPER`  the same with bash, git, certificates, Python and this very pyrunner as the runner's helper
========= ==========================================================================================
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import docker

import pyrunner
from pyrunner.testing.docker_rootfs import RootFs, site_packages, which

BUILD = "pyrunner-test/build"
HELPER = "pyrunner-test/helper"
_HELPER_BASE = "pyrunner-test/helper-base"
#: Packages that the helper commands may import.
_PACKAGES = ("isal", "zstandard", "msgspec")
_PACKAGE = Path(pyrunner.__file__).parent
_RECIPE = _PACKAGE.parent / "examples/helper-image"
#: Images of older sources that stay for tests which are running with them.
_KEPT = 5


@dataclass(frozen=True, kw_only=True)
class TestImages:
    """References of the images, present in the engine."""

    #: For pytest: this is no class of tests.
    __test__ = False

    build: str
    helper: str


def test_images() -> TestImages:
    """Make the images unless they are there.

    Raises:
        FileNotFoundError: a program to put into them is not installed.
        RuntimeError: the engine refused.
    """
    with _one_at_a_time(), contextlib.closing(docker.APIClient()) as client:
        return TestImages(build=_build_image(client), helper=_helper_image(client))


test_images.__test__ = False  # type: ignore[attr-defined]


def _build_image(client: Any) -> str:
    reference = f"{BUILD}:{_digest([which('busybox')], __file__)}"
    if not _present(client, reference):
        root = RootFs()
        root.busybox()
        _import(client, root, reference)
    return reference


def _helper_image(client: Any) -> str:
    base = _helper_base(client)
    sources = sorted(path for path in _PACKAGE.rglob("*.py"))
    recipe = sorted(_RECIPE.iterdir())
    reference = f"{HELPER}:{_digest([*sources, *recipe], base)}"
    if not _present(client, reference):
        root = RootFs()
        for path in sources:
            root.file(str(path), f"/pyrunner/{path.relative_to(_PACKAGE)}")
        for path in recipe:
            root.file(str(path), f"/bin/{path.name}")
        dockerfile = f"FROM {base}\nCOPY pyrunner {site_packages()}/pyrunner\nCOPY bin /usr/bin\n"
        root.text("/Dockerfile", dockerfile.encode())
        _build(client, root, reference)
        _forget_old(client)
    return reference


def _helper_base(client: Any) -> str:
    programs = [which(name) for name in ("busybox", "bash", "git")]
    reference = f"{_HELPER_BASE}:{_digest(programs, __file__, sys.version, *_PACKAGES)}"
    if not _present(client, reference):
        root = RootFs()
        root.busybox()
        root.program(programs[1], "/bin/bash")
        root.link("/usr/bin/env", "/bin/env")
        root.program(programs[2], "/usr/bin/git")
        git_programs = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip()
        root.tree(git_programs)
        for name in ("git-remote-http", "git-http-backend"):
            root.program(f"{git_programs}/{name}")
        for path in ("/etc/ssl/certs/ca-certificates.crt", "/usr/share/git-core/templates/description"):
            if os.path.exists(path):
                root.file(path)
        root.python()
        root.packages(site_packages(), _PACKAGES)
        _import(client, root, reference)
    return reference


def _import(client: Any, root: RootFs, reference: str) -> None:
    name, _, tag = reference.partition(":")
    changes = ["ENV PATH=/usr/local/bin:/usr/bin:/bin", 'CMD ["sh"]']
    _check(client.import_image_from_data(root.data(), repository=name, tag=tag, changes=changes).splitlines())


def _build(client: Any, root: RootFs, reference: str) -> None:
    _check(client.build(fileobj=BytesIO(root.data()), custom_context=True, tag=reference, rm=True, forcerm=True))


def _check(progress: Iterable[bytes | str]) -> None:
    """Read what the engine says to the end."""
    for line in progress:
        for step in filter(None, (line if isinstance(line, str) else line.decode()).splitlines()):
            if error := json.loads(step).get("error"):
                raise RuntimeError(f"the engine cannot make an image: {error}")


def _present(client: Any, reference: str) -> bool:
    return bool(client.images(name=reference, quiet=True))


def _forget_old(client: Any) -> None:
    found = sorted(client.images(name=HELPER), key=lambda image: -image["Created"])
    for image in found[_KEPT:]:
        # one that a test runs with stays
        with contextlib.suppress(docker.errors.APIError):
            client.remove_image(image["Id"], force=True)


def _digest(files: list[str] | list[Path], *texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text}\n".encode())
    for file in files:
        digest.update(f"{file}\n".encode())
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Parallel test processes wait for the first who makes the images."""
    with open(os.path.join(tempfile.gettempdir(), f"pyrunner-test-images-{os.getuid()}"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
