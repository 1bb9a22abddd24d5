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
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyrunner
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, opened
from pyrunner.executors.docker.engine.errors import EngineError, NotFoundError
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
        EngineError: the engine refused.
    """
    with _one_at_a_time(), opened(EngineAddress()) as engine:
        return TestImages(build=_build_image(engine), helper=_helper_image(engine))


test_images.__test__ = False  # type: ignore[attr-defined]


def _build_image(engine: Engine) -> str:
    reference = f"{BUILD}:{_digest([which('busybox')], __file__)}"
    if not _present(engine, reference):
        root = RootFs()
        root.busybox()
        _import(engine, root, reference)
    return reference


def _helper_image(engine: Engine) -> str:
    base = _helper_base(engine)
    sources = sorted(path for path in _PACKAGE.rglob("*.py"))
    recipe = sorted(_RECIPE.iterdir())
    reference = f"{HELPER}:{_digest([*sources, *recipe], base)}"
    if not _present(engine, reference):
        root = RootFs()
        for path in sources:
            root.file(str(path), f"/pyrunner/{path.relative_to(_PACKAGE)}")
        for path in recipe:
            root.file(str(path), f"/bin/{path.name}")
        dockerfile = f"FROM {base}\nCOPY pyrunner {site_packages()}/pyrunner\nCOPY bin /usr/bin\n"
        root.text("/Dockerfile", dockerfile.encode())
        engine.build_image(BytesIO(root.data()), reference)
        _forget_old(engine)
    return reference


def _helper_base(engine: Engine) -> str:
    programs = [which(name) for name in ("busybox", "bash", "git")]
    reference = f"{_HELPER_BASE}:{_digest(programs, __file__, sys.version, *_PACKAGES)}"
    if not _present(engine, reference):
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
        _import(engine, root, reference)
    return reference


def _import(engine: Engine, root: RootFs, reference: str) -> None:
    name, _, tag = reference.partition(":")
    engine.import_image(BytesIO(root.data()), name, tag, ["ENV PATH=/usr/local/bin:/usr/bin:/bin", 'CMD ["sh"]'])


def _present(engine: Engine, reference: str) -> bool:
    try:
        engine.image(reference)
    except NotFoundError:
        return False
    return True


def _forget_old(engine: Engine) -> None:
    for image in engine.images(HELPER)[_KEPT:]:
        # one that a test runs with stays
        with contextlib.suppress(EngineError):
            engine.remove_image(image.name)


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
