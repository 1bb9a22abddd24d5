"""The engine's images."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.errors import EngineError, NotFoundError
from pyrunner.executors.docker.engine.records import ImageFacts, Listed
from pyrunner.executors.docker.engine.transport import Transport


class ImageCalls:
    """Part of `Engine`."""

    _http: Transport

    def image(self, reference: str) -> ImageFacts:
        """A present image.

        Raises:
            NotFoundError: it is not here.
        """
        told = self._http.call("get", f"/images/{quote(reference)}/json")
        config = told.get("Config") or {}
        return ImageFacts(
            id=told["Id"],
            digests=told.get("RepoDigests") or (),
            entrypoint=config.get("Entrypoint") or (),
            user=config.get("User") or "",
            exposed_ports=tuple(config.get("ExposedPorts") or ()),
            environment=config.get("Env") or (),
        )

    @contextmanager
    def pull(
        self, reference: str, auth: Mapping[str, str] | None, token: CancelToken, platform: str = ""
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Pull an image; progress as the engine tells it, errors as objects with a key ``error``.

        `auth` has ``username``, ``password`` and so on. The engine ends the pull when the block is left early or
        `token` is cancelled; then the sequence raises its cause.
        """
        params = {"fromImage": reference, **({"platform": platform} if platform else {})}
        headers = {}
        if auth:
            headers["X-Registry-Auth"] = base64.urlsafe_b64encode(json.dumps(auth).encode()).decode()
        with self._http.stream("/images/create", token, params=params, headers=headers) as progress:
            yield progress

    def import_image(self, archive: IO[bytes], repository: str, tag: str, changes: Sequence[str] = ()) -> None:
        """Make an image from a file system (tar, may be xz or gzip); `changes` are lines of a Dockerfile."""
        params = {"fromSrc": "-", "repo": repository, "tag": tag, "changes": list(changes)}
        _checked(self._http.upload("/images/create", archive, params=params))

    def build_image(self, context: IO[bytes], reference: str) -> None:
        """Build an image from a tar archive with a ``Dockerfile`` in it."""
        _checked(self._http.upload("/build", context, params={"t": reference, "rm": "true", "forcerm": "true"}))

    def images(self, repository: str) -> list[Listed]:
        """All images of a repository, the newest first; `id` is the image's."""
        params = {"filters": json.dumps({"reference": [repository]})}
        found = [
            Listed(
                id=item["Id"],
                name=(item.get("RepoTags") or [""])[0],
                labels=item.get("Labels") or {},
                created=float(item.get("Created") or 0),
            )
            for item in self._http.call("get", "/images/json", params=params)
        ]
        return sorted(found, key=lambda image: -image.created)

    def load_image(self, archive: IO[bytes]) -> str:
        """Take over what ``docker save`` wrote; name or id of the image."""
        steps = _checked(self._http.upload("/images/load", archive))
        told = "".join(str(step.get("stream", "")) for step in steps)
        for line in told.splitlines():
            words, _, name = line.partition(": ")
            if words in ("Loaded image", "Loaded image ID"):
                return name.strip()
        raise EngineError("the archive holds no image")

    def tag_image(self, image: str, repository: str, tag: str) -> None:
        """Give a present image another name."""
        self._http.call("post", f"/images/{quote(image)}/tag", params={"repo": repository, "tag": tag})

    def remove_image(self, image: str) -> None:
        """Take a name from an image, and the image with its last name; one that is not there is fine."""
        try:
            self._http.call("delete", f"/images/{quote(image)}")
        except NotFoundError:
            return


def _checked(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for step in steps:
        if error := step.get("error"):
            raise EngineError(str(error))
    return steps
