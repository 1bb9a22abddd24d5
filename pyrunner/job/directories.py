"""Where a job's files live (facts/job-lifecycle.md section 2): pure path arithmetic on ``/``-separated paths."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyrunner.base.errors import SystemFailure

_CONFIGURATION = "runner_configuration_error"


@dataclass(frozen=True, kw_only=True)
class Place:
    """What the directories of a job depend on."""

    #: Roots as the executor gives them.
    builds_dir: str
    cache_dir: str
    #: Several jobs may work in `builds_dir`: the project dir then holds short token and concurrent id.
    shared: bool
    short_token: str
    concurrent_project_id: int
    repo_url: str
    project_id: int
    git_strategy: str = "fetch"
    #: Whether ``GIT_CLONE_PATH`` may be used, and its expanded value (empty = not set).
    custom_allowed: bool = False
    clone_path: str = ""


@dataclass(frozen=True, kw_only=True)
class Directories:
    """The directories of one job, inside the executor's environment."""

    builds_dir: str
    cache_dir: str
    #: The working copy, ``CI_PROJECT_DIR``.
    project_dir: str
    #: Home of local cache archives of the project.
    project_cache_dir: str

    @property
    def temp_dir(self) -> str:
        """``RUNNER_TEMP_PROJECT_DIR``: file variables and everything that must not be in the working copy."""
        return f"{self.project_dir}.tmp"


def resolve_directories(place: Place) -> Directories:
    """All directories of a job.

    Raises:
        SystemFailure: ``runner_configuration_error`` when a root is missing or ``GIT_CLONE_PATH`` is not allowed.
    """
    for name, value in (("builds_dir", place.builds_dir), ("cache_dir", place.cache_dir)):
        if not value:
            raise SystemFailure(f"the {name} is not configured", reason=_CONFIGURATION)
    slug = project_slug(place.repo_url, place.project_id)
    return Directories(
        builds_dir=place.builds_dir,
        cache_dir=place.cache_dir,
        project_dir=_clone_path(place) if place.clone_path else _project_dir(place, slug),
        project_cache_dir=posixpath.join(place.cache_dir, slug),
    )


def project_slug(repo_url: str, project_id: int) -> str:
    """``group/proj`` of the repository URL, or ``project-<id>`` when the URL gives no safe path."""
    fallback = f"project-{project_id}"
    try:
        parts = urlsplit(repo_url)
        host = parts.hostname
    except ValueError:
        return fallback
    path = unquote(parts.path).rstrip("/").removesuffix(".git")
    if not host or "\0" in path or ".." in path.split("/"):
        return fallback
    # two leading slashes survive normpath, POSIX gives them a meaning that URLs do not have
    cleaned = posixpath.normpath("/" + path.lstrip("/")).lstrip("/")
    return cleaned or fallback


def _project_dir(place: Place, slug: str) -> str:
    if place.git_strategy == "empty":
        slug += "-empty"
    if not place.shared:
        return posixpath.join(place.builds_dir, slug)
    return posixpath.join(place.builds_dir, place.short_token, str(place.concurrent_project_id), slug)


def _clone_path(place: Place) -> str:
    if not place.custom_allowed:
        raise SystemFailure(
            "setting GIT_CLONE_PATH is not allowed, enable `custom_build_dir` feature", reason=_CONFIGURATION
        )
    root = posixpath.normpath(place.builds_dir)
    path = posixpath.normpath(place.clone_path)
    if path != root and not path.startswith(root.rstrip("/") + "/"):
        raise SystemFailure(
            f'the GIT_CLONE_PATH="{place.clone_path}" has to be within "{place.builds_dir}"', reason=_CONFIGURATION
        )
    return path
