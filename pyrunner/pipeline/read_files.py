"""Readers of the keywords about files and containers: artifacts, cache, image, services."""

from __future__ import annotations

import re
from typing import Any

from pyrunner.pipeline.job import Artifacts, Cache, CacheKeyFiles, Image, Report
from pyrunner.pipeline.read_simple import read_variables
from pyrunner.pipeline.spot import Spot, duration
from pyrunner.pipeline.yaml_source import Items, Table

OUTCOMES = ("on_success", "on_failure", "always")
PULL_POLICIES = ("always", "if-not-present", "never")
POLICIES = ("pull-push", "pull", "push")
#: Reports that are stored and nothing else; the others need a server that reads them.
REPORTS = (
    "accessibility",
    "api_fuzzing",
    "browser_performance",
    "cluster_image_scanning",
    "codequality",
    "container_scanning",
    "coverage_fuzzing",
    "cyclonedx",
    "dast",
    "dependency_scanning",
    "junit",
    "load_performance",
    "metrics",
    "performance",
    "requirements",
    "sast",
    "secret_detection",
    "terraform",
)
REFUSED_REPORTS = ("annotations", "coverage_report", "dotenv", "repository_xray")
_KEY = re.compile(r"[^/]+")


def read_artifacts(spot: Spot) -> Artifacts:
    """``artifacts``."""
    known = ("name", "paths", "exclude", "untracked", "when", "expire_in", "reports")
    refused = ("expose_as", "public", "access")
    fields = spot.fields(known, "a mapping with paths, untracked or reports", refused=refused)
    expire = fields.get("expire_in")
    if expire and duration(str(expire.value)) is None:
        raise expire.wrong("a duration such as 1 week, or never")
    return Artifacts(
        name=fields["name"].text() if "name" in fields else "",
        paths=_paths(fields, "paths"),
        exclude=_paths(fields, "exclude"),
        untracked="untracked" in fields and fields["untracked"].flag(),
        when=fields["when"].one_of(OUTCOMES) if "when" in fields else "on_success",
        expire_in=str(expire.value) if expire else "",
        reports=_reports(fields["reports"]) if "reports" in fields else (),
    )


def _paths(fields: dict[str, Spot], key: str) -> tuple[str, ...]:
    if key not in fields:
        return ()
    return tuple(item.text() for item in fields[key].items("a list of paths"))


def _reports(spot: Spot) -> tuple[Report, ...]:
    fields = spot.fields(REPORTS, "a mapping of report kinds to paths", refused=REFUSED_REPORTS)
    return tuple(Report(kind=kind, paths=field.texts()) for kind, field in fields.items())


def read_cache(spot: Spot) -> tuple[Cache, ...]:
    """``cache``: one mapping or a list of at most four."""
    if not isinstance(spot.value, Items):
        caches = [_cache(spot)]
    else:
        items = spot.items("a list")
        if len(items) > 4:
            raise spot.error(f"has {len(items)} caches; at most 4 are allowed")
        caches = [_cache(item) for item in items]
    return tuple(cache for cache in caches if cache.paths or cache.untracked)


def _cache(spot: Spot) -> Cache:
    known = ("key", "paths", "untracked", "policy", "when", "fallback_keys")
    fields = spot.fields(known, "a mapping with paths", refused=("unprotect",))
    fallback = fields.get("fallback_keys")
    policy = fields.get("policy")
    if policy and "$" not in str(policy.value):
        policy.one_of(POLICIES)
    return Cache(
        key=_key(fields["key"]) if "key" in fields else "default",
        paths=_paths(fields, "paths"),
        untracked="untracked" in fields and fields["untracked"].flag(),
        policy=policy.text() if policy else "pull-push",
        when=fields["when"].one_of(OUTCOMES) if "when" in fields else "on_success",
        fallback_keys=fallback.texts() if fallback else (),
    )


def _key(spot: Spot) -> str | CacheKeyFiles:
    if not isinstance(spot.value, Table):
        text = str(spot.value) if isinstance(spot.value, (int, float)) else spot.text()
        if not _KEY.fullmatch(text) or text.strip(".") == "":
            raise spot.error(f'"{text}" cannot be a cache key: it has no / and is more than dots')
        return text
    fields = spot.fields(("files", "prefix"), refused=("files_commits",))
    if "files" not in fields:
        raise spot.error("files is missing")
    files = _paths(fields, "files")
    if not 1 <= len(files) <= 2:
        raise fields["files"].error("must list one or two files")
    return CacheKeyFiles(files=files, prefix=fields["prefix"].text() if "prefix" in fields else "")


def read_image(spot: Spot) -> Image:
    """``image``."""
    return _image(spot, ("name", "entrypoint", "pull_policy", "docker", "kubernetes"))


def read_services(spot: Spot) -> tuple[Image, ...]:
    """``services``."""
    known = ("name", "alias", "entrypoint", "command", "variables", "pull_policy", "docker", "kubernetes")
    return tuple(_image(item, known) for item in spot.items("a list of images"))


def _image(spot: Spot, known: tuple[str, ...]) -> Image:
    if not isinstance(spot.value, Table):
        return Image(name=spot.text())
    fields = spot.fields(known, "a name or a mapping", refused=("ports",))
    if "name" not in fields:
        raise spot.error("name is missing")
    policy = fields.get("pull_policy")
    return Image(
        name=fields["name"].text(),
        alias=fields["alias"].text() if "alias" in fields else "",
        entrypoint=_words(fields, "entrypoint"),
        command=_words(fields, "command"),
        variables=read_variables(fields["variables"]) if "variables" in fields else {},
        pull_policy=tuple(_policies(policy)) if policy else (),
        options={key: _options(fields[key]) for key in ("docker", "kubernetes") if key in fields},
    )


def _words(fields: dict[str, Spot], key: str) -> tuple[str, ...] | None:
    if key not in fields:
        return None
    spot = fields[key]
    if isinstance(spot.value, str):
        return (spot.value,)
    found = []
    for item in spot.items("a list of words"):
        # an empty word is how an image's entrypoint is switched off
        if not isinstance(item.value, str):
            raise item.wrong("a text")
        found.append(item.value)
    return tuple(found)


def _policies(spot: Spot) -> list[str]:
    items = spot.items("a list") if isinstance(spot.value, Items) else [spot]
    return [item.one_of(PULL_POLICIES) for item in items]


def _options(spot: Spot) -> dict[str, Any]:
    fields = spot.fields(("platform", "user"))
    found: dict[str, Any] = {}
    for key, field in fields.items():
        number = isinstance(field.value, int) and not isinstance(field.value, bool)
        found[key] = field.value if number and key == "user" else field.text()
    return found
