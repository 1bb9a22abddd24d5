"""What a pipeline file says about its jobs, typed and complete; defaults are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from pyrunner.pipeline.yaml_source import Notice, Place

FIRST_STAGE, LAST_STAGE = ".pre", ".post"
DEFAULT_STAGES = ("build", "test", "deploy")
DEFAULT_STAGE = "test"


class When(StrEnum):
    """When a job runs, by the outcome of the jobs before it."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ALWAYS = "always"
    MANUAL = "manual"
    NEVER = "never"


class Variable(Struct, frozen=True, kw_only=True):
    """One entry of ``variables``."""

    value: str
    #: Not to be expanded (``expand: false``).
    raw: bool = False
    description: str = ""


class Need(Struct, frozen=True, kw_only=True):
    """One entry of ``needs``."""

    job: str
    artifacts: bool = True
    optional: bool = False
    place: Place


class AllowFailure(Struct, frozen=True, kw_only=True):
    """``allow_failure``: always, never, or on certain exit codes."""

    always: bool = False
    exit_codes: frozenset[int] = frozenset()

    def allows(self, exit_code: int) -> bool:
        """Whether a job may fail like this."""
        return self.always or exit_code in self.exit_codes


class Retry(Struct, frozen=True, kw_only=True):
    """``retry``: how often, and after which failures."""

    times: int = 0
    reasons: frozenset[str] = frozenset({"always"})
    exit_codes: frozenset[int] = frozenset()

    def applies(self, failures: int, reason: str, exit_code: int) -> bool:
        """Whether to run the job again after its failure number `failures` (from 1)."""
        if failures > self.times:
            return False
        return "always" in self.reasons or reason in self.reasons or exit_code in self.exit_codes


class Image(Struct, frozen=True, kw_only=True):
    """``image`` or one entry of ``services``."""

    name: str
    alias: str = ""
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    pull_policy: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Report(Struct, frozen=True, kw_only=True):
    """One kind of ``artifacts:reports``."""

    kind: str
    paths: tuple[str, ...]


class Artifacts(Struct, frozen=True, kw_only=True):
    """``artifacts``."""

    name: str = ""
    paths: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    untracked: bool = False
    when: str = "on_success"
    #: As it is written; empty = the server's default.
    expire_in: str = ""
    reports: tuple[Report, ...] = ()

    @property
    def archived(self) -> bool:
        """Whether there is an archive that later jobs can download."""
        return bool(self.paths) or self.untracked


class CacheKeyFiles(Struct, frozen=True, kw_only=True):
    """``cache:key:files``: the key follows the content of files."""

    files: tuple[str, ...]
    prefix: str = ""


class Cache(Struct, frozen=True, kw_only=True):
    """One entry of ``cache``."""

    key: str | CacheKeyFiles = "default"
    paths: tuple[str, ...] = ()
    untracked: bool = False
    policy: str = "pull-push"
    when: str = "on_success"
    fallback_keys: tuple[str, ...] = ()


class Job(Struct, frozen=True, kw_only=True):
    """One job."""

    name: str
    place: Place
    stage: str = DEFAULT_STAGE
    script: tuple[str, ...]
    before_script: tuple[str, ...] = ()
    after_script: tuple[str, ...] = ()
    #: Of the whole file and of the job, the job's win.
    variables: Mapping[str, Variable] = field(default_factory=dict)
    when: When = When.ON_SUCCESS
    allow_failure: AllowFailure = AllowFailure()
    #: None = after all jobs of earlier stages; empty = at once.
    needs: tuple[Need, ...] | None = None
    #: Whose artifacts are downloaded; None = of all jobs before this one.
    dependencies: tuple[str, ...] | None = None
    artifacts: Artifacts = Artifacts()
    cache: tuple[Cache, ...] = ()
    #: Seconds; None = the project's default.
    timeout: int | None = None
    retry: Retry = Retry()
    tags: tuple[str, ...] = ()
    image: Image | None = None
    services: tuple[Image, ...] = ()
    #: Where keywords stand that later checks talk about.
    places: Mapping[str, Place] = field(default_factory=dict)

    def place_of(self, keyword: str) -> Place:
        """Where `keyword` of this job stands, or the job itself."""
        return self.places.get(keyword, self.place)


class Pipeline(Struct, frozen=True, kw_only=True):
    """The jobs of a file in order of appearance, and all stages in order, ``.pre`` and ``.post`` included."""

    path: str
    stages: tuple[str, ...]
    jobs: Mapping[str, Job]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
