"""Where artifacts come from: an in-toto statement beside them (facts/cache-artifacts.md 3.2)."""

from __future__ import annotations

import os
import stat

from pyrunner.archive.errors import ArchiveError
from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.archive.selection import Selection

log = Log(__name__)

_STATEMENT = "https://in-toto.io/Statement/v0.1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "https://gitlab.com/gitlab-org/gitlab-runner/-/blob/{}/PROVENANCE.md"
_SCHEMA = "v1"


class Provenance:
    """What is known about the job; times in RFC 3339."""

    def __init__(self) -> None:
        self.runner_id = ""
        self.repo_url = ""
        self.repo_digest = ""
        self.job_name = ""
        self.executor_name = ""
        self.runner_name = ""
        self.parameters: list[str] = []
        self.started_at = ""
        self.ended_at = ""
        self.schema_version = ""

    def write(self, selection: Selection, artifact_name: str, job_id: int) -> str:
        """Write ``<artifact name>-metadata.json`` into the selection's root; returns its name.

        Raises:
            ArchiveError: a file cannot be read, or the statement cannot be written.
        """
        import json

        if self.schema_version != _SCHEMA:
            log.warning("unsupported schema version %s, falling back to %s", self.schema_version, _SCHEMA)
        name = f"{artifact_name}-metadata.json"
        path = os.path.join(selection.root, name)
        text = json.dumps(self.statement(_subjects(selection), job_id), indent=1)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o644)
        except OSError as error:
            raise ArchiveError(f"{name}: {error.strerror}") from error
        return name

    def statement(self, subjects: list[dict[str, object]], job_id: int) -> dict[str, object]:
        """The statement about `subjects`."""
        from pyrunner.base.host import goarch
        from pyrunner.base.version import GITLAB_RUNNER_VERSION, REVISION

        version = GITLAB_RUNNER_VERSION if GITLAB_RUNNER_VERSION.startswith("v") else REVISION
        external: dict[str, object] = dict.fromkeys(self.parameters, "")
        external |= {"entryPoint": self.job_name, "source": self.repo_url}
        return {
            "_type": _STATEMENT,
            "predicateType": _PREDICATE,
            "subject": subjects,
            "predicate": {
                "buildDefinition": {
                    "buildType": _BUILD_TYPE.format(version),
                    "externalParameters": external,
                    "internalParameters": {
                        "name": self.runner_name,
                        "executor": self.executor_name,
                        "architecture": goarch(),
                        "job": str(job_id),
                    },
                    "resolvedDependencies": [{"uri": self.repo_url, "digest": {"sha256": self.repo_digest}}],
                },
                "runDetails": {
                    "builder": {
                        "id": f"{self.repo_url}/-/runners/{self.runner_id}",
                        "version": {"gitlab-runner": version},
                    },
                    "metadata": {
                        "invocationId": str(job_id),
                        "startedOn": self.started_at,
                        "finishedOn": self.ended_at,
                    },
                },
            },
        }


def _subjects(selection: Selection) -> list[dict[str, object]]:
    import hashlib

    subjects: list[dict[str, object]] = []
    for path, info in selection.sorted():
        if stat.S_ISREG(info.st_mode):
            try:
                with open(os.path.join(selection.root, path), "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise ArchiveError(f"{path}: {error.strerror}") from error
            subjects.append({"name": path, "digest": {"sha256": digest}})
    return subjects
