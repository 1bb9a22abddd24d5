"""Helper images as archives beside the program, for engines that reach no registry (facts/executors.md 6.8)."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError
from pyrunner.executors.docker.images.helper_image import REPOSITORY, HelperImage

log = logging.getLogger(__name__)

#: As ``docker save`` writes it; the other one is a bare file system.
_SAVED = ".docker.tar.zst"
_EXPORTED = ".tar.xz"
_ENTRYPOINT = 'ENTRYPOINT ["/usr/bin/dumb-init", "/entrypoint"]'


def archive_directories(program: str = "") -> list[Path]:
    """Where archives are looked for: near `program` (the running one), where GitLab Runner's packages have them."""
    near = Path(os.path.realpath(program or sys.argv[0])).parent
    return [near, near / "helper-images", near.parent / "lib/gitlab-runner/helper-images"]


def load_prebuilt(engine: Engine, image: HelperImage, directories: Sequence[Path] | None = None) -> bool:
    """Give the engine `image` from an archive; False when there is none, or it is of no use."""
    for path in _candidates(image, archive_directories() if directories is None else directories):
        try:
            _load(engine, image, path)
        except (EngineError, OSError) as error:
            log.warning("Cannot load helper image: %s", error, extra={"action": "prebuilt_failed", "path": str(path)})
        else:
            log.info("Loaded prebuilt helper image", extra={"action": "prebuilt_loaded", "path": str(path)})
            return True
    return False


def _candidates(image: HelperImage, directories: Sequence[Path]) -> Iterator[Path]:
    for directory in directories:
        for suffix in (_SAVED, _EXPORTED):
            path = directory / f"{image.archive}{suffix}"
            if path.is_file() and path.stat().st_size:
                yield path


def _load(engine: Engine, image: HelperImage, path: Path) -> None:
    if path.name.endswith(_EXPORTED):
        with path.open("rb") as archive:
            engine.import_image(archive, REPOSITORY, image.tag, [_ENTRYPOINT])
        return
    import zstandard

    try:
        with path.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as archive:
            loaded = engine.load_image(cast("IO[bytes]", archive))
    except zstandard.ZstdError as error:
        raise EngineError(f"the archive is damaged: {error}") from error
    engine.tag_image(loaded, REPOSITORY, image.tag)
